// Compares each kernel of a plan that had a choice with the kernel that defines its operator (the tile program with its
// first configuration), on the same inputs. A comparison is for debugging: a run that compares waits for its kernels
// and copies their results to the host.
// Ownership: a Comparison borrows all that it is made with.
// Thread-safety: a Comparison belongs to one run.
#pragma once

#include "runtime/engine/element_errors.h"
#include "runtime/engine/pipeline.h"
#include "runtime/engine/plan.h"

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nsa {

// The defining kernels by role. The defining kernel of a role is null where the role's kernel is not compared.
struct Definitions {
  std::array<std::shared_ptr<const KernelCore>, kRoles> kernels;

  size_t workspaceBytes() const;
};

// Returns whether the result of a step can be compared: the step must be an operator of its own. The small kernels of
// decode pass parts of a result to each other, and compression in decode writes into the cache.
bool isComparable(Operator whole, const Step &step);

class Comparison {
public:
  Comparison(Device &device, const CallRules &rules, const WorkspaceLayout &layout, const Definitions &definitions,
             std::byte *workspace)
      : device(device), rules(rules), layout(layout), definitions(definitions), workspace(workspace) {}

  // Takes a kernel that was launched with `call`. `add` runs the launched kernel once more, and the kernel of its
  // definition, each into memory of its own, and adds up the errors.
  Status add(Role role, const LoadedKernel &own, const KernelCall &call, const void *statusWord, void *stream);
  // Returns JSON: for each part of the plan its kernels, and the errors over all launches of the part.
  std::string report() const;

private:
  // One tensor that a kernel writes.
  struct Output {
    View view;
    DType dtype;
    std::array<int64_t, kMaxCoordinates> strides;
    int64_t elements; // how many are compared
    int64_t begin;    // elements in front of the first one, which have no memory
  };
  struct Errors {
    std::string operatorName;
    const LoadedKernel *own = nullptr, *definition = nullptr;
    ElementErrors elements;
    int64_t lists = 0, differentLists = 0;
  };
  std::vector<Output> outputsOf(Operator op, const LoadedKernel &kernel, const KernelCall &call) const;
  Status launchInto(size_t offset, const LoadedKernel &kernel, KernelCall call, const std::vector<Output> &outputs,
                    const void *statusWord, void *scratch, void *stream);
  Status compare(Errors &errors, Operator op, const std::vector<Output> &outputs);

  Device &device;
  const CallRules &rules;
  const WorkspaceLayout &layout;
  const Definitions &definitions;
  std::byte *workspace;
  std::array<Errors, kRoles> errors;
};

// What a plan that compares keeps between runs. Thread-safety: the mutex guards the report.
struct ComparisonState {
  std::shared_ptr<const Definitions> definitions;
  std::mutex mutex;
  std::string report; // of the last run; "" before the first one
};

} // namespace nsa
