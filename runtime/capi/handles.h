// The handles of the C ABI, and what the functions that take them have in common.
// Thread-safety: as the engine and its plans.
#pragma once

#include "runtime/capi/convert.h"
#include "runtime/capi/errors.h"
#include "runtime/engine/engine_handle.h"

#include <cstdlib>
#include <cstring>
#include <string>

struct nsa_engine {
  nsa::EngineHandle *const handle;
  // A callback that the handle's end waits for still plans with this struct, so the pointer stays until then.
  ~nsa_engine() { delete handle; }
};

namespace nsa::capi {

// A plan's handle is the plan itself: nsa_plan is a name for the host and never defined.
inline nsa_plan *handleOf(Plan *plan) { return reinterpret_cast<nsa_plan *>(plan); }
inline Plan *planOf(nsa_plan *handle) { return reinterpret_cast<Plan *>(handle); }
inline const Plan *planOf(const nsa_plan *handle) { return reinterpret_cast<const Plan *>(handle); }

// Gives the host a text that it frees with nsa_free.
inline Status giveText(const Result<std::string> &text, char **target) {
  if (!text)
    return text.status();
  auto *copy = static_cast<char *>(malloc(text->size() + 1));
  if (!copy)
    return Status::error(ErrorCode::kOutOfMemory, "no memory for " + std::to_string(text->size()) + " bytes of JSON");
  memcpy(copy, text->c_str(), text->size() + 1);
  *target = copy;
  return Status::ok();
}

// The engine of this process.
inline Result<Engine *> engineOf(const nsa_engine *engine) {
  NSA_RETURN_IF_ERROR(requirePointer(engine, "engine"));
  return engine->handle->engine();
}

// The request of plan, explain and tune.
struct Request {
  Engine *engine;
  Spec spec;
  Maxima maxima;
};

inline Status readRequest(const nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, Request &request) {
  NSA_ASSIGN_OR_RETURN(request.engine, engineOf(engine));
  NSA_RETURN_IF_ERROR(convert(spec, request.spec));
  return convert(maxima, request.spec, request.maxima);
}

} // namespace nsa::capi
