// Compares the result of each kernel that was chosen among several candidates with the result of the kernel that
// defines its operator (the tile program with its first configuration), on the same inputs. A comparison is for
// debugging: a run that compares waits for its kernels and copies their results to the host.
// Ownership: a Comparison borrows all arguments of its constructor.
// Thread-safety: a Comparison belongs to one run.
#pragma once

#include "runtime/engine/graph/element_errors.h"
#include "runtime/engine/graph/pipeline.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

// The kernels with whose results a plan compares the results of its own kernels. The kernel that defines an operator is
// the operator's tile program with its first configuration. `kernels` has one pointer for each Role of a kernel in a
// plan; the pointer is null if the plan's kernel with this Role is not compared.
struct Definitions {
  std::array<std::shared_ptr<const LoadedKernel>, kRoles> kernels;

  size_t workspaceBytes() const;
};

// Returns whether the result of a step's kernel can be compared with the result of the kernel that defines its
// operator: kernels that are tuned by themselves have results of their own. The other kernels of decode compute only a
// part of a result, and its compression kernel writes into the cache.
bool isComparable(const Step &step);

// The result of one kernel of a plan, compared with the kernel that defines its operator (nsa_comparison).
struct ComparedPart {
#define NSA_COMPARISON_INFO(type, name, place, isThere) type name{};
#include "runtime/model/info_fields.def"
};
// Returns the entry of a kernel, without `part`. `errors` are the errors of its result, if `definition` is not null.
ComparedPart comparedPart(const LoadedKernel &own, const LoadedKernel *definition, const ElementErrors &errors);
// Returns JSON: what was compared, by kind ("operator", "program") and name, and for each part its kernels and errors.
std::string describeComparison(const char *kind, std::string_view name, const std::vector<ComparedPart> &parts);

class Comparison {
public:
  Comparison(Device &device, const CallRules &rules, const WorkspaceLayout &layout, const Definitions &definitions,
             std::byte *workspace)
      : device(device), rules(rules), layout(layout), definitions(definitions), workspace(workspace) {}

  // Compares the outputs of the kernel of `step`, which was launched with the arguments `call`, with the outputs of the
  // kernel that defines its operator. `add` launches the kernel of `step` once more, and then the kernel that defines
  // the operator. The two launches write to separate memory, and `add` adds the differences between their outputs to
  // the report.
  Status add(const LaunchStep &step, const KernelCall &call, const void *statusWord, void *stream);
  std::vector<ComparedPart> parts() const;

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
    const LoadedKernel *own = nullptr, *definition = nullptr;
    ElementErrors elements;
    int64_t lists = 0, differentLists = 0;
  };
  std::vector<Output> outputsOf(Operator op, const LaunchStep &step, const KernelCall &call) const;
  Status launchInto(Operator op, size_t offset, const LoadedKernel &kernel, KernelCall call,
                    const std::vector<Output> &outputs, const void *statusWord, void *scratch, void *stream);
  Status compare(Errors &errors, const std::vector<Output> &outputs);
  // Waits for all that the stream has to do. The device copies on a stream of its own, which waits for no other.
  Status wait(void *stream) const;

  Device &device;
  const CallRules &rules;
  const WorkspaceLayout &layout;
  const Definitions &definitions;
  std::byte *workspace;
  std::array<Errors, kRoles> errors;
};

// The data that a plan keeps from one run to the next if its runs compare kernels with the kernels that define their
// operators.
// Thread-safety: a thread reads or writes `parts` only while it holds `mutex`.
struct ComparisonState {
  std::shared_ptr<const Definitions> definitions;
  std::mutex mutex;
  std::optional<std::vector<ComparedPart>> parts; // of the last run; no value before the first one
};

} // namespace nsa
