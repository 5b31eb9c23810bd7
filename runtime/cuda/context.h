// The primary CUDA context of a device, which all users of CUDA in a process share, and a scope object that makes the
// context current.
// Thread-safety: many threads may enter a PrimaryContext; a ContextScope belongs to one thread.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/process/process.h"

namespace nsa::cuda {

class PrimaryContext {
public:
  PrimaryContext(const Driver &driver, DeviceId device) : driver(driver), device(device) {}
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext &) = delete;
  PrimaryContext &operator=(const PrimaryContext &) = delete;

  Status retain();
  // checkProcess fails in a child of the process that retained the context. CUDA does not survive a fork, and the child
  // of a fork may call no function of CUDA.
  Status checkProcess() const;
  bool inOwnProcess() const { return processGeneration() == generation; }
  Context handle() const { return context; }

  const Driver &driver;

private:
  DeviceId device;
  Context context = nullptr;
  uint32_t generation = processGeneration();
};

// Makes the context current while the ContextScope exists, and restores the host's stack of contexts when the
// ContextScope is destroyed.
class ContextScope {
public:
  explicit ContextScope(const PrimaryContext &context);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  // Returns ok when the context is current. `status` must be checked before the first driver call within a
  // ContextScope.
  Status status() const;

private:
  const PrimaryContext &context;
  DriverResult result = kSuccess;
  bool pushed = false;
};

} // namespace nsa::cuda
