#include "runtime/engine/engine_handle.h"

namespace nsa {

Result<std::unique_ptr<EngineHandle>> EngineHandle::open(EngineOptions options,
                                                         const EngineOptions::Environment &environment) {
  NSA_ASSIGN_OR_RETURN(EnginePointer engine, Engine::open(std::move(options), environment));
  return std::unique_ptr<EngineHandle>(new EngineHandle(std::move(engine)));
}

EngineHandle::~EngineHandle() {
  Engine *engine = current.load();
  if (engine->isOfThisProcess())
    EnginePointer(engine).reset();
}

Result<Engine *> EngineHandle::reopen(Engine *parents) {
  NSA_ASSIGN_OR_RETURN(EnginePointer fresh, parents->openInChild());
  if (current.compare_exchange_strong(parents, fresh.get()))
    return fresh.release();
  return parents; // another thread of the child was faster, and this is its engine
}

} // namespace nsa
