// The kernels of an operator in the order of their launches, and one run of them. Most operators launch one kernel; nsa
// and decode launch several. docs/operators.md has the launches, the routes and the formula of the workspace.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/engine/call.h"
#include "runtime/engine/device.h"
#include "runtime/engine/key_shares.h"
#include "runtime/engine/loaded_kernel.h"

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
// Returns "sequences", "append", "compress", "cmp", ...; for kMain it returns the operator's own name.
std::string_view roleName(Role role, Operator op);

// One kernel that an operator needs. Each step of an operator has a problem and choices of its own.
struct Step {
  Role role;
  Spec spec;
  Maxima maxima;
};
// Exact shortcuts. A branch of nsa is the same as dense attention where, at every length that the maxima allow, all
// blocks are selected or all keys are in the window.
enum Route : uint8_t { kSelIsDense = 1, kWinIsDense = 2 };
// Returns the exact shortcuts that the maxima allow. The exact maxima decide about shortcuts and not their buckets, so
// the shortcuts are part of a plan's key.
uint8_t routesOf(const Spec &spec, const Maxima &maxima);
// Returns an operator's steps in the order of their launches: with all shortcuts that the maxima allow, or with the
// given shortcuts.
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima);
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima, uint8_t routes);

using RoleKernels = std::array<const LoadedKernel *, kRoles>; // null: the operator has no such kernel

// Where the pieces of a plan's workspace lie, in bytes from its begin. nsa processes its queries in chunks, so that the
// outputs of the branches are bounded at any length. All pieces of the workspace that do not belong to a chunk grow
// linearly with the number of tokens.
struct WorkspaceLayout {
  WorkspaceLayout() = default;
  WorkspaceLayout(const Spec &spec, const Maxima &maxima, const RoleKernels &kernels, bool isGpu);
  // `check` fails when the workspace has kMostBytes or more. No offset of a layout may be used whose `check` failed.
  Status check(const Maxima &maxima) const;

  // Adds room for a plan that compares: for second outputs of its kernels, and for the outputs and the scratch of the
  // defining kernels.
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

// Makes the call of an operator that is a single kernel. `table` describes the sequences of the call, and has no data
// in the dense layout.
KernelCall singleCall(Operator op, const Call &call, const ViewSlots &table);

// Records which kernels a timed run launched, and marks the time after each launch.
struct LaunchTrace {
  LaunchClock &clock;
  std::vector<Role> launched{};
};

// Receives what each kernel of a run is called with.
class LaunchTap {
public:
  virtual ~LaunchTap() = default;
  virtual void launching(Role role, const KernelCall &kernelCall) = 0;
};

class Comparison;

// The keys and values that the branches attend: tensors of the call, or of its cache.
struct BranchKeys {
  std::array<ViewSlots, 2> cmp, sel, win; // keys, values
};

// One run of an operator. All data of a run is on the stack, and a run does nothing but launch.
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
  // Runs all chunks of queries over the keys and values of the branches.
  Status runBranches(const BranchKeys &keys) const;
  Status runChunk(int64_t begin, int64_t end, const BranchKeys &keys) const;
  // Returns a call with the scalars, the sizes of the grid and the table of sequences.
  KernelCall fresh() const;
  Status launch(Role role, const KernelCall &kernelCall) const { return launch(role, kernelCall, role); }
  // `part` is the role that the launch's time counts for.
  Status launch(Role role, const KernelCall &kernelCall, Role part) const;
  Status launchSequences() const;
  ViewSlots table() const;
  ViewSlots compressTable() const; // the rows of the table for decode's new compressed blocks
  ViewSlots perQuery(size_t offset, DType dtype, int64_t heads, int64_t columns, int64_t begin,
                     int64_t columnStride = 0) const;
};

} // namespace nsa
