// A safetensors file: its header, every tensor that can be read, and the file that is written of those.
#include "tests/fuzz/fuzz_target.h"

#include "tools/nsa/files/safetensors.h"

namespace nsa::fuzz {
namespace {

using tools::HostTensor, tools::SafetensorsFile;

void checkCoverage(const SafetensorsFile &file, uint64_t size) {
  uint64_t covered = 0;
  for (const auto &[name, entry] : file.entries()) {
    expect(entry.begin <= entry.end && entry.end <= size, "a tensor lies in the file");
    for (const int64_t extent : entry.shape)
      expect(extent >= 0, "extents are counts");
    covered += entry.end - entry.begin;
  }
  expect(covered <= size, "tensors do not overlap");
}

void runSafetensors(std::string_view input) {
  const std::string path = writeInput("input.safetensors", input);
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file) {
    expect(file.status().toString().find(path) != std::string::npos, "what is refused names the file");
    return;
  }
  checkCoverage(*file, input.size());
  std::vector<std::pair<std::string, HostTensor>> read;
  for (const auto &[name, entry] : file->entries()) {
    Result<HostTensor> tensor = file->read(name);
    if (!tensor) {
      expect(tensor.status().error().field == name, "a type that is refused names its tensor");
      continue;
    }
    expect(tensor->shape == entry.shape, "a tensor has the shape of its entry");
    expect(tensor->elements() * dtypeBytes(tensor->dtype) == static_cast<int64_t>(tensor->bytes.size()),
           "a tensor has the bytes of its shape");
    expect(std::string_view(reinterpret_cast<const char *>(tensor->bytes.data()), tensor->bytes.size()) ==
               input.substr(entry.begin, entry.end - entry.begin),
           "a tensor has the bytes of the file");
    read.emplace_back(name, std::move(*tensor));
  }

  std::vector<std::pair<std::string, const HostTensor *>> written;
  for (const auto &[name, tensor] : read)
    written.emplace_back(name, &tensor);
  const std::string copy = writeInput("copy.safetensors", "");
  expect(writeSafetensors(tools::OutputFile::create(copy), written).isOk(), "what was read can be written");
  const Result<SafetensorsFile> again = SafetensorsFile::open(copy);
  expect(again && again->entries().size() == read.size(), "what was written can be read");
  for (const auto &[name, tensor] : read) {
    const Result<HostTensor> back = again->read(name);
    expect(back && back->dtype == tensor.dtype && back->shape == tensor.shape && back->bytes == tensor.bytes,
           "what was written is read as the same");
  }
}

const Registration kSafetensors({"safetensors", runSafetensors});

} // namespace
} // namespace nsa::fuzz
