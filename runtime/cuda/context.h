// The device's primary context, shared with every other CUDA user of the process, and scopes that make it current.
// Thread-safety: a PrimaryContext may be entered by many threads; a ContextScope belongs to one.
#pragma once

#include "runtime/base/process.h"
#include "runtime/base/status.h"
#include "runtime/cuda/driver.h"

namespace nsa::cuda {

class PrimaryContext {
public:
  PrimaryContext(const Driver &driver, DeviceId device) : driver(driver), device(device) {}
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext &) = delete;
  PrimaryContext &operator=(const PrimaryContext &) = delete;

  Status retain();
  // CUDA does not survive a fork: nothing may be called in a child of the process that retained the context.
  Status checkProcess() const;
  bool inOwnProcess() const { return processGeneration() == generation; }
  Context handle() const { return context; }

  const Driver &driver;

private:
  DeviceId device;
  Context context = nullptr;
  uint32_t generation = processGeneration();
};

// Makes the context current for the life of the scope, and leaves the host's stack of contexts as it was.
class ContextScope {
public:
  explicit ContextScope(const PrimaryContext &context);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  // Must be asked before the first driver call.
  Status status() const;

private:
  const PrimaryContext &context;
  DriverResult result = kSuccess;
  bool pushed = false;
};

} // namespace nsa::cuda
