// The forward pass of a gradient: its call, and the tensors that the gradient takes from it.
// Thread-safety: pure functions, but for the engine and the accelerator, which one thread at a time may use.
#pragma once

#include "tools/support/operator_job.h"

#include <set>

namespace nsa::tools {

// The outputs of the forward pass that its gradient takes as inputs.
std::set<TensorName> savedFor(Operator gradient);
// The call of the forward pass whose gradient has these inputs.
OperatorInputs forwardInputs(const OperatorInputs &gradient);
// Adds what a gradient takes from the forward pass: computed by the reference, or by an engine of the accelerator.
void addReferenceSaved(OperatorInputs &inputs);
Status addSaved(OperatorInputs &inputs, nsa_engine *engine, Accelerator &accelerator);

} // namespace nsa::tools
