// The kernels of an operator, in order, and what runs through them: one for most operators, the whole forward for nsa.
// docs/operators.md has the launches, the routes and the formula of the workspace.
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

// What a kernel does in an operator.
enum class Role : uint8_t {
  kSequences, // checks lengths in device memory and tabulates them
  kAppend,    // new tokens into decode's cache
  kCompress,
  kCmp,
  kScores, // of decode's few queries, and what becomes of them
  kRank,
  kSelect,
  kAscend,
  kSel,
  kWin,
  kCombine,
  kMain // of an operator that is one kernel
};
inline constexpr int kRoles = 12;
// "sequences", "append", "compress", "cmp", ...; of kMain the operator's own name.
std::string_view roleName(Role role, Operator op);

// One kernel that an operator needs: a request of its own, with choices of its own.
struct Step {
  Role role;
  Spec spec;
  Maxima maxima;
};
// Exact shortcuts: where every length that the maxima allow has all its blocks selected, or fits the window, the branch
// is dense attention.
enum Route : uint8_t { kSelIsDense = 1, kWinIsDense = 2 };
// Those that the maxima allow: what the exact maxima decide, and no bucket of them, so it is part of a plan's key.
uint8_t routesOf(const Spec &spec, const Maxima &maxima);
// Steps in the order of their launches, with all shortcuts that the maxima allow, or with those that are taken.
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima);
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima, uint8_t routes);

using RoleKernels = std::array<const LoadedKernel *, kRoles>; // null: not part of the operator

// Where the pieces of a plan's workspace lie, in bytes from its begin. Queries of nsa go through in chunks, so that
// branch outputs are bounded whatever the length; everything else is linear in tokens with a small factor.
struct WorkspaceLayout {
  WorkspaceLayout() = default;
  WorkspaceLayout(const Spec &spec, const Maxima &maxima, const RoleKernels &kernels, bool isGpu);
  // Whether all of it fits: without, offsets are not to be used.
  Status check(const Maxima &maxima) const;

  // Room for a plan that compares: what its kernels and their definitions write once more, and the latter's scratch.
  void addComparison(const Spec &spec, const Maxima &maxima, size_t definitionBytes);

  static constexpr size_t kMostBytes = size_t{1} << 62; // that many, or more than numbers hold

  size_t scratch = 0; // of one kernel at a time
  size_t sequences = 0;
  size_t kComp = 0, vComp = 0;
  int64_t compRows = 0;             // of all sequences
  KeyShares shares;                 // of decode's few queries
  size_t kStaged = 0, vStaged = 0;  // decode: tokens of new compressed blocks, all sequences after each other
  size_t lse = 0, blockList = 0;    // of a chunk
  std::array<size_t, 3> out = {};   // of a chunk, by branch
  std::array<size_t, 3> reads = {}; // of a chunk, by branch
  size_t definitionScratch = 0;
  std::array<size_t, 2> compared = {}; // outputs of a kernel, and of its definition
  int64_t chunk = 0;                   // queries: of each sequence in the dense layout, of all in the packed one
  size_t bytes = 0;
};

// The launch of an operator that is one kernel; `table` is that of its sequences, absent in the dense layout.
KernelCall singleCall(Operator op, const Call &call, const ViewSlots &table);

// Which kernels a run launched, and when: for runs that are timed.
struct LaunchTrace {
  LaunchClock &clock;
  std::vector<Role> launched{};
};

// Sees what each kernel of a run is called with.
class LaunchTap {
public:
  virtual ~LaunchTap() = default;
  virtual void launching(Role role, const KernelCall &kernelCall) = 0;
};

class Comparison;

// What the branches attend: of the call, or of its cache.
struct BranchKeys {
  std::array<ViewSlots, 2> cmp, sel, win; // keys, values
};

// One run: everything on the stack, nothing but launches.
struct PipelineRun {
  const CallRules &rules;
  const RoleKernels &kernels;
  uint8_t routes; // taken by these kernels
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
  // All chunks of queries, over keys and values of the branches' tensors.
  Status runBranches(const BranchKeys &keys) const;
  Status runChunk(int64_t begin, int64_t end, const BranchKeys &keys) const;
  // The numbers, the sizes and the table of sequences.
  KernelCall fresh() const;
  Status launch(Role role, const KernelCall &kernelCall) const { return launch(role, kernelCall, role); }
  // `part`: what its time counts for.
  Status launch(Role role, const KernelCall &kernelCall, Role part) const;
  Status launchSequences() const;
  ViewSlots table() const;
  ViewSlots compressTable() const; // of decode: each sequence's new compressed blocks
  ViewSlots perQuery(size_t offset, DType dtype, int64_t heads, int64_t columns, int64_t begin,
                     int64_t columnStride = 0) const;
};

} // namespace nsa
