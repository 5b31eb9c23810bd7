#include "bench/launch_caller.h"

#include <algorithm>

namespace nsa::bench {

Result<std::unique_ptr<LaunchCaller>> LaunchCaller::make(const std::string &device, const BareLaunch &bare,
                                                         const LaunchRequest &request, nsa_plan *plan) {
  auto caller = std::make_unique<LaunchCaller>();
  NSA_ASSIGN_OR_RETURN(caller->accelerator, tools::Accelerator::open(device));
  Bindings internal;
  for (const auto &[name, dim] : {std::pair{NSA_Q, request.spec.qkDim},
                                  {NSA_K, request.spec.qkDim},
                                  {NSA_V, request.spec.vDim},
                                  {NSA_OUT, request.spec.vDim}}) {
    NSA_ASSIGN_OR_RETURN(tools::Buffer buffer, caller->accelerator->allocate(static_cast<size_t>(dim) * 2));
    NSA_RETURN_IF_ERROR(caller->accelerator->fill(buffer.data(), 0, buffer.size()));
    nsa_tensor &tensor = caller->tensors[caller->count] = NSA_INIT(nsa_tensor);
    tensor.data = buffer.data();
    tensor.dtype = NSA_BF16;
    tensor.rank = 4;
    Tensor &same = internal[static_cast<TensorName>(name)];
    same = {.data = buffer.data(), .dtype = DType::kBf16, .rank = 4, .shape = {1, 1, 1, dim}, .strides = {}};
    same.strides = {dim, dim, dim, 1};
    std::copy_n(same.shape.begin(), 4, tensor.shape);
    std::copy_n(same.strides.begin(), 4, tensor.strides);
    caller->bindings[caller->count++] = {name, &tensor};
    caller->buffers.push_back(std::move(buffer));
  }
  NSA_ASSIGN_OR_RETURN(size_t bytes, tools::workspaceSize(plan));
  NSA_ASSIGN_OR_RETURN(caller->workspace, caller->accelerator->allocate(bytes));
  NSA_RETURN_IF_ERROR(bare.prepare(CallRules(request.spec, request.maxima), internal, caller->arguments));
  return caller;
}

Status LaunchCaller::bareLaunches(const BareLaunch &bare, int calls) const {
  for (int i = 0; i < calls; ++i)
    NSA_RETURN_IF_ERROR(bare.launch(arguments, workspace.data(), accelerator->stream()));
  return Status::ok();
}

Status LaunchCaller::runs(const nsa_plan *plan, int calls) const {
  nsa_error error;
  for (int i = 0; i < calls; ++i)
    if (nsa_run(plan, bindings.data(), count, workspace.data(), workspace.size(), accelerator->stream(), &error) !=
        NSA_OK)
      return tools::toStatus(error.code);
  return Status::ok();
}

} // namespace nsa::bench
