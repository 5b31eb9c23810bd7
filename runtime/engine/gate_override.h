// Replaces the values of the caller's tensor GATES, for debugging: only one branch has a gate other than 0, or all
// branches have the same gate.
// Ownership: a GateOverride owns a few bytes of device memory, so it must be destroyed before the device.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/problem.h"
#include "runtime/device/device.h"

#include <array>
#include <mutex>
#include <string>

namespace nsa {

class GateOverride {
public:
  // `branch` is "cmp", "sel" or "win": the gate of this branch is 1, and the gates of the other branches are 0. An
  // empty `branch` sets the gate of each branch to 1/3.
  GateOverride(Device &device, const std::string &branch);

  // `concerns` returns whether the spec's operator reads the tensor GATES. `check` fails if the branch that gets the
  // gate 1 is off in the spec.
  bool concerns(const Spec &spec) const { return (fieldsOf(spec.op) & kGates) != 0; }
  Status check(const Spec &spec) const;
  // Returns the view that replaces the tensor of gates, whatever the tensor's shape is. The first call of the function
  // `gates` allocates the device memory of the gates.
  Result<ViewSlots> gates(DType dtype);
  // Returns a text that describes the gate override: "only the branch cmp counts" or "all branches count alike".
  std::string text() const;

private:
  Device &device;
  std::string name;
  int32_t bit = 0; // the branch's bit; 0: all branches alike
  std::array<float, 3> factors;
  std::mutex mutex;
  DeviceBuffer buffer; // the factors in each type
};

} // namespace nsa
