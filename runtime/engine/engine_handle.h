// What a host holds: the engine of this process. A child of a fork cannot use its parent's: the locks may be held by
// threads that do not exist there, worker threads are gone, and CUDA does not survive. So the first call in a child
// opens a CPU engine anew, and the parent's is left behind as it is; plans made before the fork still run, as running
// takes no lock. A GPU engine is refused with what to do instead.
// Ownership: of the engine's handle. Thread-safety: all functions may be called by many threads at once.
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

  // Of the calling process.
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
