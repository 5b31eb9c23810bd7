#include "runtime/engine/gate_override.h"

#include "runtime/base/half.h"

#include <cstddef>
#include <cstring>

namespace nsa {

namespace {
constexpr size_t kRoom = 16; // of three factors in any type
constexpr DType kTypes[] = {DType::kBf16, DType::kF16, DType::kF32};
} // namespace

GateOverride::GateOverride(Device &device, const std::string &branch)
    : device(device), name(branch), bit(branch == "cmp"   ? kBranchCmp
                                        : branch == "sel" ? kBranchSel
                                        : branch == "win" ? kBranchWin
                                                          : 0) {
  for (size_t i = 0; i < factors.size(); ++i)
    factors[i] = bit == 0 ? 1.0f / 3 : bit == 1 << i ? 1.0f : 0.0f;
}

Status GateOverride::check(const Spec &spec) const {
  if (bit == 0 || spec.hasBranch(bit))
    return Status::ok();
  return Status::invalid("force_branch", name, "must be one of the spec's branches",
                         "force another branch (NSA_FORCE_BRANCH), or none");
}

Result<ViewSlots> GateOverride::gates(DType dtype) {
  std::lock_guard lock(mutex);
  if (!buffer.data()) {
    std::array<std::byte, kRoom * std::size(kTypes)> bytes{};
    for (size_t type = 0; type < std::size(kTypes); ++type)
      for (size_t i = 0; i < factors.size(); ++i) {
        const uint16_t half = kTypes[type] == DType::kBf16 ? floatToBf16(factors[i]) : floatToFp16(factors[i]);
        std::byte *to = bytes.data() + type * kRoom;
        if (kTypes[type] == DType::kF32)
          memcpy(to + i * sizeof(float), &factors[i], sizeof(float));
        else
          memcpy(to + i * sizeof half, &half, sizeof half);
      }
    NSA_ASSIGN_OR_RETURN(DeviceBuffer made, DeviceBuffer::allocate(device, bytes.size()));
    NSA_RETURN_IF_ERROR(device.upload(made.data(), bytes.data(), bytes.size()));
    buffer = std::move(made);
  }
  size_t type = 0;
  while (kTypes[type] != dtype)
    ++type;
  // Every query and head reads the same three.
  return ViewSlots::make(static_cast<const std::byte *>(buffer.data()) + type * kRoom, dtype, {0, 0, 0, 1});
}

std::string GateOverride::text() const {
  return bit == 0 ? "all branches count alike" : "only the branch " + name + " counts";
}

} // namespace nsa
