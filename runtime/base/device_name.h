// The names of devices: "cpu", and "cuda:N" for the GPU with the ordinal N.
// Thread-safety: a pure function.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/text.h"

#include <optional>
#include <string>
#include <string_view>

namespace nsa {

// Returns the ordinal of a GPU, and nullopt for the CPU.
inline Result<std::optional<int>> gpuOrdinal(std::string_view device) {
  constexpr std::string_view kPrefix = "cuda:";
  int ordinal = 0;
  if (device == "cpu")
    return std::optional<int>();
  if (!device.starts_with(kPrefix) || !parseInteger(device.substr(kPrefix.size()), ordinal) || ordinal < 0)
    return Status::invalid("device", std::string(device), "must be cpu or cuda:N");
  return std::optional(ordinal);
}

} // namespace nsa
