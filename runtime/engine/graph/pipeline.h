// The kernels of an operator in the order of their launches, and one run of them. Most operators launch one kernel; nsa
// and decode launch several. docs/operators.md has the launches, the routes and the formula of the workspace.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/device/device.h"
#include "runtime/device/loaded_kernel.h"
#include "runtime/engine/call/call.h"
#include "runtime/engine/graph/key_shares.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// What a kernel does within an operator.
enum class Role : uint8_t {
  kSequences, // checks lengths in device memory and tabulates them
  kAppend,    // new tokens into decode's cache
  kCompress,
  kCmp,
  kScores, // from here to kAscend: decode with few queries
  kRank,
  kSelect,
  kAscend,
  kSel,
  kWin,
  kCombine,
  kMain // the kernel of an operator that is a single kernel
};
inline constexpr int kRoles = 12;
// Returns the name of a role, such as "sequences", "append", "compress" or "cmp". For kMain, roleName returns the name
// of the operator.
std::string_view roleName(Role role, Operator op);

// One kernel that an operator needs. Each kernel of an operator has its own problem key, so it is stored and tuned
// separately.
struct Step {
  Role role;
  Spec spec;
  Maxima maxima;
};
// Shortcuts of the operators nsa and decode, which do not change the result. The branch sel can be computed as dense
// attention if every block is selected at every length that the maxima allow. The branch win can be computed as dense
// attention if every key is in the window at every length that the maxima allow.
enum Route : uint8_t { kSelIsDense = 1, kWinIsDense = 2 };
// Returns the shortcuts that may be taken with the given maxima, as a bit mask of Route. Whether a shortcut may be
// taken depends on the exact maxima, but a plan key has only maxima that are rounded up to powers of two. The plan key
// therefore has a separate field for the shortcuts.
uint8_t routesOf(const Spec &spec, const Maxima &maxima);
// Returns the steps of an operator in the order of their launches. `routes` is a bit mask of the shortcuts that are
// taken. The function stepsOf without `routes` takes every shortcut that may be taken with the given maxima.
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima);
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima, uint8_t routes);

using RoleKernels = std::array<const LoadedKernel *, kRoles>; // null: the operator has no such kernel

// The offsets in bytes of the arrays in a plan's workspace. nsa processes its queries in chunks, so that the size of
// the arrays for the outputs of the branches has a limit at any length. The arrays for compressed rows are not divided
// into chunks, and their size grows linearly with the number of tokens.
struct WorkspaceLayout {
  WorkspaceLayout() = default;
  WorkspaceLayout(const Spec &spec, const Maxima &maxima, const RoleKernels &kernels, bool isGpu);
  // `check` fails when the workspace has kMostBytes or more. If `check` fails, no offset of the layout may be used.
  Status check(const Maxima &maxima) const;

  // Enlarges the workspace for a plan that compares its kernels with the kernels that define the operators
  // (comparison.h). The comparison needs memory for a second output of a kernel of the plan, for the output of a
  // defining kernel, and for the scratch of a defining kernel (`definitionBytes`).
  void addComparison(const Spec &spec, const Maxima &maxima, size_t definitionBytes);

  static constexpr size_t kMostBytes = size_t{1} << 62; // a size that reaches this is stored as this

  size_t scratch = 0; // shared by all kernels, which run one after another
  size_t sequences = 0;
  size_t kComp = 0, vComp = 0;
  int64_t compRows = 0;             // of all sequences together
  KeyShares shares;                 // for decode with few queries
  size_t kStaged = 0, vStaged = 0;  // decode: the tokens of new compressed blocks, one sequence after another
  size_t lse = 0, blockList = 0;    // of one chunk
  std::array<size_t, 3> out = {};   // of one chunk, by branch
  std::array<size_t, 3> reads = {}; // of one chunk, by branch
  size_t definitionScratch = 0;
  std::array<size_t, 2> compared = {}; // second outputs of a kernel, and outputs of its definition
  int64_t chunk = 0; // queries: of each sequence in the dense layout, of all sequences in the packed one
  size_t bytes = 0;
};

// Returns the kernel arguments for an operator that is a single kernel. `table` is the table of sequence lengths that
// the kernel `sequences` writes. `table` is absent in the dense layout.
KernelCall singleCall(Operator op, const Call &call, const ViewSlots &table);

// Records which kernels a timed run launched, and the time after each launch.
struct LaunchTrace {
  LaunchClock &clock;
  std::vector<Role> launched{};
};

// An interface through which a DecodeTrial receives the arguments of each kernel that a run launches.
class LaunchTap {
public:
  virtual ~LaunchTap() = default;
  virtual void launching(Role role, const KernelCall &kernelCall) = 0;
};

class Comparison;

// The keys and values of each branch: tensors that the call binds, or tensors of decode's cache.
struct BranchKeys {
  std::array<ViewSlots, 2> cmp, sel, win; // keys, values
};

// One run of an operator. A run keeps all its data on the stack, and only launches kernels.
struct PipelineRun {
  const CallRules &rules;
  const RoleKernels &kernels;
  uint8_t routes; // the shortcuts that these kernels take
  const WorkspaceLayout &layout;
  const Call &call;
  std::byte *workspace;
  const void *statusWord;
  void *stream;
  LaunchTrace *trace = nullptr;
  LaunchTap *tap = nullptr;
  Comparison *comparison = nullptr;

  Status run() const;

private:
  Status runSingle() const;
  Status runSelect() const;
  Status runNsa() const;
  Status runDecode() const;
  Status runShared(const BranchKeys &keys) const;
  // Launches the kernels of the branches for all chunks of queries.
  Status runBranches(const BranchKeys &keys) const;
  Status runChunk(int64_t begin, int64_t end, const BranchKeys &keys) const;
  // Returns kernel arguments in which only the scalars, the sizes of the grid and the table of sequences are set.
  KernelCall fresh() const;
  Status launch(Role role, const KernelCall &kernelCall) const { return launch(role, kernelCall, role); }
  // In a timed run, the time of the launch is counted for the role `part`.
  Status launch(Role role, const KernelCall &kernelCall, Role part) const;
  Status launchSequences() const;
  ViewSlots table() const;
  ViewSlots compressTable() const; // the rows of the table for decode's new compressed blocks
  ViewSlots perQuery(size_t offset, DType dtype, int64_t heads, int64_t columns, int64_t begin,
                     int64_t columnStride = 0) const;
};

} // namespace nsa
