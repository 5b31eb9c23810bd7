// The object to which the host's pointer nsa_engine points. Through an EngineHandle, a function of the C ABI finds the
// engine of the calling process. The child of a fork cannot use its parent's engine: a thread that does not exist in
// the child may hold a lock, the worker threads are gone, and CUDA does not survive a fork. The first call in the child
// of a fork opens a new CPU engine and leaves the parent's engine as it is. In the child of a fork, CPU plans that were
// made before the fork still run, because nsa_run does not take a lock. If the parent's engine uses a GPU, a call in
// the child of a fork fails, and the error says what to do instead.
// Ownership: a handle owns its engine.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/engine.h"

#include <atomic>
#include <memory>

namespace nsa {

class EngineHandle {
public:
  static Result<std::unique_ptr<EngineHandle>> open(EngineOptions options,
                                                    const EngineOptions::Environment &environment);
  ~EngineHandle();
  EngineHandle(const EngineHandle &) = delete;
  EngineHandle &operator=(const EngineHandle &) = delete;

  // Returns the engine of the calling process.
  Result<Engine *> engine() {
    Engine *found = current.load(std::memory_order_acquire);
    if (found->isOfThisProcess())
      return found;
    return reopen(found);
  }

private:
  explicit EngineHandle(EnginePointer engine) : current(engine.release()) {}
  Result<Engine *> reopen(Engine *parents);

  std::atomic<Engine *> current;
};

} // namespace nsa
