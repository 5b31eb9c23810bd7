// A tile program of the templates as a kernel on the executable's device (kTestDevice), which a test launches by
// itself. Ownership: kernels and arrays must be destroyed before their device. Thread-safety: none needed, one test
// uses one object.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/device/device.h"
#include "tests/harness/kernel_slots.h"

#include <cstring>
#include <memory>
#include <numeric>

namespace nsa::test {

// Opens the executable's device without an engine.
Result<std::unique_ptr<Device>> openTestDevice();

// A contiguous array on a device.
class DeviceArray {
public:
  // `shape` ends with the columns, of which an argument needs no stride.
  template <typename T>
  static DeviceArray of(Device &device, const std::vector<T> &values, std::vector<int64_t> shape) {
    return DeviceArray(device, values.data(), values.size() * sizeof(T), sizeof(T), std::move(shape));
  }
  // Bytes of elements that have `elementBytes` each.
  DeviceArray(Device &device, const void *bytes, size_t size, size_t elementBytes, std::vector<int64_t> shape);

  // Fails the running test where the memory cannot be read.
  template <typename T> std::vector<T> read() const {
    std::vector<T> values(size / sizeof(T));
    readInto(values.data());
    return values;
  }
  // Makes the array a view with the coordinates of all axes but the columns, or of all axes (`columnsToo`).
  void bind(Arguments &arguments, const std::string &name, bool columnsToo = false) const;

private:
  void readInto(void *to) const;
  std::vector<int64_t> stridesOf(bool columnsToo) const;

  Device *device;
  DeviceBuffer buffer;
  size_t size, elementBytes;
  std::vector<int64_t> shape;
};

class ProgramKernel {
public:
  using Pairs = std::map<std::string, std::string>;

  // The values of a choice with which the program has a kernel for the device.
  static std::vector<std::string> valuesOf(Device &device, const std::string &program, Operator op, const Pairs &fixed,
                                           const std::string &choice);
  // The cheapest kernel with the values `config` of its choices. Fails the running test where there is none.
  ProgramKernel(Device &device, const std::string &program, Operator op, const Pairs &fixed, const Pairs &config = {});

  // `sizes` are the sizes that the program's grid names. Fails the running test where the launch fails.
  void run(const Arguments &arguments, const std::map<std::string, int64_t> &sizes) const;

private:
  void compile(const std::string &program, Operator op, const Pairs &fixed, const Pairs &config);
  Status launch(const Arguments &arguments, const std::map<std::string, int64_t> &sizes) const;

  Device &device;
  Manifest manifest;
  std::unique_ptr<Kernel> kernel;
};

} // namespace nsa::test
