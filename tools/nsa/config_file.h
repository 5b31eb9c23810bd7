// The JSON file that says what is computed, with the keys of the specification. Every key may be left out
// where tensors or a default can stand in for it; an unknown or repeated one is an error.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace nsa::tools {

struct ConfigFile {
  std::string path;
  std::optional<DType> dtype;
  std::optional<Layout> layout;
  std::optional<int32_t> queryHeads, kvHeads, qkDim, vDim, window;
  std::optional<float> scale;

  static Result<ConfigFile> read(const std::string &path);
};

// A spec from the file alone: needs query_heads, kv_heads, qk_dim; v_dim is then qk_dim, dtype bf16, layout dense.
Result<Spec> specOf(Operator op, const ConfigFile &config);

} // namespace nsa::tools
