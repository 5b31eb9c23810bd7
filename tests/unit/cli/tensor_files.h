// Files of tensors that a test writes and reads as the command line does. Thread-safety: pure functions.
#pragma once

#include "tests/harness/scratch.h"
#include "tools/nsa/files/config_text.h"
#include "tools/nsa/files/operator_file.h"

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::tools {

using Tensors = std::map<std::string, HostTensor>;

inline HostTensor tensor(std::vector<int64_t> shape, DType dtype = DType::kBf16) {
  return HostTensor::make(dtype, std::move(shape));
}

inline HostTensor lengths(std::vector<int32_t> values) {
  HostTensor result = HostTensor::make(DType::kI32, {static_cast<int64_t>(values.size())});
  std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}

inline Result<OperatorFile> read(Operator op, const Tensors &tensors, std::string_view config = "{}") {
  const test::Scratch scratch;
  std::vector<std::pair<std::string, const HostTensor *>> list;
  for (const auto &[name, value] : tensors)
    list.emplace_back(name, &value);
  EXPECT_TRUE(writeSafetensors(OutputFile::create(scratch.file("t")), list).isOk());
  const Result<SafetensorsFile> file = SafetensorsFile::open(scratch.file("t"));
  EXPECT_TRUE(file);
  const Result<ConfigFile> parsed = readConfig(scratch.write("c.json", config));
  EXPECT_TRUE(parsed) << parsed.status().toString();
  return readOperatorFile(op, *parsed, *file);
}

inline Tensors with(Tensors tensors, const std::string &name, HostTensor value) {
  tensors[name] = std::move(value);
  return tensors;
}
inline Tensors without(Tensors tensors, const std::string &name) {
  tensors.erase(name);
  return tensors;
}

} // namespace nsa::tools
