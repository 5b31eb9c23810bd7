// Gates of the engine's own in the place of the caller's, for debugging: one branch alone, or all alike.
// Ownership: owns a few bytes of device memory, which must go before the device. Thread-safety: all functions may be
// called by many threads at once.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/problem.h"
#include "runtime/engine/device.h"

#include <array>
#include <mutex>
#include <string>

namespace nsa {

class GateOverride {
public:
  // `branch` is "cmp", "sel" or "win"; "" for a third each.
  GateOverride(Device &device, const std::string &branch);

  // Whether the operator reads gates at all, and has the branch.
  bool concerns(const Spec &spec) const { return (fieldsOf(spec.op) & kGates) != 0; }
  Status check(const Spec &spec) const;
  // What stands for the tensor of gates, whatever its shape. The first call takes device memory.
  Result<ViewSlots> gates(DType dtype);
  // "only the branch cmp counts", "all branches count alike"
  std::string text() const;

private:
  Device &device;
  std::string name;
  int32_t bit = 0; // of the branch; 0: all alike
  std::array<float, 3> factors;
  std::mutex mutex;
  DeviceBuffer buffer; // the factors in each type
};

} // namespace nsa
