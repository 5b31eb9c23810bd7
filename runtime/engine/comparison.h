// Compares the result of each kernel that was chosen among several candidates with the result of the kernel that
// defines its operator (the tile program with its first configuration), on the same inputs. A comparison is for
// debugging: a run that compares waits for its kernels and copies their results to the host.
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

// The defining kernels of a plan, indexed by Role. The defining kernel of an operator is the operator's tile program
// with its first configuration. The pointer of a Role is null if the kernel with this Role is not compared.
struct Definitions {
  std::array<std::shared_ptr<const KernelCore>, kRoles> kernels;

  size_t workspaceBytes() const;
};

// Returns whether the result of a step's kernel can be compared with the result of a defining kernel. Kernels that
// exist only within decode cannot be compared, because each of these kernels computes only a part of a result. The
// compression kernel of decode cannot be compared, because it writes into the cache.
bool isComparable(Operator whole, const Step &step);

class Comparison {
public:
  Comparison(Device &device, const CallRules &rules, const WorkspaceLayout &layout, const Definitions &definitions,
             std::byte *workspace)
      : device(device), rules(rules), layout(layout), definitions(definitions), workspace(workspace) {}

  // Compares the outputs of the kernel `own`, which was launched with the arguments `call`, with the outputs of the
  // kernel that defines the operator of `own`. `role` is the Role of `own`. `add` runs `own` once more and then the
  // defining kernel, each with its own memory for outputs, and adds the differences between the outputs to the report.
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

// The data that a plan keeps from one run to the next when its runs compare kernels with their defining kernels.
// Thread-safety: a thread reads or writes `report` only while it holds `mutex`.
struct ComparisonState {
  std::shared_ptr<const Definitions> definitions;
  std::mutex mutex;
  std::string report; // of the last run; "" before the first one
};

} // namespace nsa
