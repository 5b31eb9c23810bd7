// What a kernel is wanted for: an operator with its spec and maxima, or a program of one's own with its values.
// Choices, planner and tuner know tasks alone, so that the kernels of operators and of programs are found, compiled,
// tuned and stored in one way. Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/device/argument_names.h"
#include "runtime/engine/choices/problem_key.h"
#include "runtime/program/program_source.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace nsa {

class Device;
class LoadedKernel;
class Trial;

struct KernelTask {
  ProblemKey problem;
  std::string key; // problem.text()
  // False: all kernels of the task have one configuration.
  bool isTuned = true;
  // False: a stored kernel of another compiler revision never serves while it is compiled again in the background, so
  // that all plans of one process have the same kernel.
  bool mayBeOutdated = true;
  // True: several templates define kernels of the task, so that the option force_variant may name one of them.
  bool hasVariants = false;
  std::string definingTemplate{}; // defines what is computed; "": each template does
  DType dtype = DType::kBf16;     // of the results: says how closely the results of two candidates must agree

  // The name of the measured threshold that chooses between two templates (routes.h), and the size of this task that is
  // compared with it.
  struct Route {
    std::string family, name;
  };
  std::function<std::optional<Route>()> threshold{}; // null: there is no such threshold
  int64_t thresholdSize = 0;

  // The names of its kernels' arguments. Null stands for the names of operators' kernels.
  std::shared_ptr<const ArgumentNames> ownNames{};
  const ArgumentNames &names() const { return ownNames ? *ownNames : operatorArguments(); }
  GridSizes grid{}; // upper bounds
  ScalarSlots scalars{};
  LaunchSizes sizes() const { return {grid, &scalars}; }

  // The program of one's own; null: templates serve the operator.
  ProgramSource::Pointer program{};
  // The program with whose result the candidates' results are compared; null: one of the task's own kernels is compared
  // with. `referenceChoices` are choices of the kernel that is compared with, where this task is the reference of
  // another one, too. Empty: the kernel with the least predicted cost is.
  std::shared_ptr<const KernelTask> reference{};
  std::map<std::string, std::string> referenceChoices{};

  // Makes the calls with which candidates are compared and measured. Their tensors have about `mostBytes` bytes.
  // `serve` returns the other kernels of decode.
  using Serve = std::function<Result<std::shared_ptr<const LoadedKernel>>(const Spec &spec, const Maxima &maxima)>;
  std::function<Result<std::unique_ptr<Trial>>(Device &device, uint64_t seed, double mostBytes, const Serve &serve)>
      makeTrial{};
};

// The task of an operator that is a single kernel. It has no `makeTrial` (runtime/engine/tune/operator_trial.h).
KernelTask operatorTask(const Spec &spec, const Maxima &maxima);

} // namespace nsa
