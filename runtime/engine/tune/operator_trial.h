// The trials of an operator's kernels, by themselves or within whole calls of decode.
// Thread-safety: pure functions.
#pragma once

#include "runtime/engine/choices/kernel_task.h"
#include "runtime/engine/tune/trial.h"

namespace nsa {

// The task of an operator that is a single kernel, with its trials.
KernelTask tunableTask(const Spec &spec, const Maxima &maxima);

} // namespace nsa
