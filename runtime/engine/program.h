// A program of one's own, ready to run: what a plan is for an operator. Its calls bind tensors by the names that the
// program declares.
// Ownership: a program belongs to its caller, and its engine outlives it.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/graph/plan_core.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/program/program_call.h"
#include "runtime/program/program_interface.h"

#include <memory>
#include <span>
#include <string>

namespace nsa {

class Program {
public:
  // Checks the tensors and launches the kernel. `run` allocates nothing and takes no lock.
  Status run(std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars, void *workspace,
             size_t workspaceBytes, void *stream) const;
  // Runs the call in the interpreter instead, and returns what the program does that it must not do (program_check.h).
  // Waits for the stream before.
  Status check(std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars, void *stream) const;
  // Runs the program as `run` does and waits. Returns as JSON how far the results of its kernel are from the results of
  // its reference (program_comparison.h), which is compiled for that.
  Result<std::string> compare(std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars,
                              void *workspace, size_t workspaceBytes, void *stream) const;
  // Waits for the stream, and returns the error that a kernel has reported since the last call.
  Status status(void *stream) const;
  size_t workspaceBytes() const;
  // Describes the kernel as JSON.
  std::string describe() const;

private:
  friend class Engine;
  Program(PlanPointer held, ProgramSource::Pointer source, std::shared_ptr<const ProgramInterface> interface,
          std::shared_ptr<const KernelCore> core, PlanSource from)
      : held(std::move(held)), source(std::move(source)), interface(std::move(interface)), core(std::move(core)),
        from(from) {}
  Device &device() const;

  PlanPointer held; // its status word, and what keeps the engine; goes last
  ProgramSource::Pointer source;
  std::shared_ptr<const ProgramInterface> interface;
  std::shared_ptr<const KernelCore> core;
  PlanSource from; // where the kernel came from
};

} // namespace nsa
