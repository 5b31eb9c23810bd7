// The task of a program's kernel (kernel_task.h).
// Thread-safety: pure functions.
#pragma once

#include "runtime/engine/choices/kernel_task.h"
#include "runtime/program/program_interface.h"

namespace nsa {

// The key has the program's texts as a digest, the values that are compiled in, and the sizes of its calls, rounded up
// to powers of two. The error says what the program's reference takes otherwise than the program.
Result<KernelTask> programTask(const ProgramSource::Pointer &source,
                               const std::shared_ptr<const ProgramInterface> &interface);

} // namespace nsa
