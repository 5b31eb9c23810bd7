#include "runtime/cuda/context.h"

namespace nsa::cuda {

PrimaryContext::~PrimaryContext() {
  if (context && inOwnProcess())
    driver.devicePrimaryCtxRelease(device);
}

Status PrimaryContext::retain() {
  NSA_CUDA_CALL(driver, devicePrimaryCtxRetain, (&context, device));
  return Status::ok();
}

Status PrimaryContext::checkProcess() const {
  if (inOwnProcess())
    return Status::ok();
  return Status::error(
      ErrorCode::kUnavailable, "this process is a fork of the one that opened the CUDA device",
      "CUDA does not survive a fork: create the engine in the child of a process that has not used CUDA, or start the "
      "process with spawn or exec instead of fork");
}

ContextScope::ContextScope(const PrimaryContext &context) : context(context) {
  if (!context.inOwnProcess())
    return;
  Context current = nullptr;
  result = context.driver.ctxGetCurrent(&current);
  if (result == kSuccess && current != context.handle()) {
    result = context.driver.ctxPushCurrent(context.handle());
    pushed = result == kSuccess;
  }
}

ContextScope::~ContextScope() {
  Context ours = nullptr;
  if (pushed)
    context.driver.ctxPopCurrent(&ours);
}

Status ContextScope::status() const {
  NSA_RETURN_IF_ERROR(context.checkProcess());
  return context.driver.check(result, "ctxPushCurrent");
}

} // namespace nsa::cuda
