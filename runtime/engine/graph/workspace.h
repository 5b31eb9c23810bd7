// The workspace of a plan: the offsets of the buffers of the operator's graph. nsa, nsa_bwd and sel_bwd with slots
// process their queries in chunks, so that the size of the buffers that have rows for queries has a limit at any
// length. The buffers for compressed rows are not divided into chunks, and their size grows linearly with the number of
// tokens. docs/operators.md has the formula. Thread-safety: values.
#pragma once

#include "runtime/base/key_splits.h"
#include "runtime/base/saturated.h"
#include "runtime/base/status.h"
#include "runtime/device/loaded_kernel.h"
#include "runtime/engine/graph/graph.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace nsa {

// The partial results of each branch of decode with few queries, in the order of the branches: their number, the index
// of the first one, and the index after the last one.
struct ShareRanges {
  // The greatest number of partial results for one query and query head. In each of the three branches, every program
  // that shares the keys of the query computes one partial result.
  static constexpr int64_t kSlots = 3 * KeySplits::kMost;

  ShareRanges() = default;
  ShareRanges(const Spec &spec, const Maxima &maxima);

  std::array<int64_t, 3> counts = {}, first = {}, past = {};
};

struct Step;

struct WorkspaceLayout {
  WorkspaceLayout() = default;
  WorkspaceLayout(const Spec &spec, const Maxima &maxima, size_t scratchBytes, bool isGpu) {
    assign(spec, maxima, scratchBytes, isGpu);
  }
  // Makes the layout anew in place. A plan from memory neither clears nor copies the entries of buffers that it lacks.
  // The kernels of the plan run one after another and share `scratchBytes`.
  void assign(const Spec &spec, const Maxima &maxima, size_t scratchBytes, bool isGpu);
  // `check` fails when the workspace has kMostBytes or more. If `check` fails, no offset of the layout may be used.
  Status check(const Maxima &maxima) const;

  // Enlarges the workspace for a plan that compares its kernels with the kernels that define the operators
  // (comparison.h). `steps` are the kernels that are compared. The comparison needs memory for a second
  // output of a kernel of the plan, for the output of a defining kernel, and for the scratch of a defining kernel
  // (`definitionBytes`). If no kernel is compared, the workspace stays as it is.
  void addComparison(const Spec &spec, const Maxima &maxima, std::span<const Step> steps, size_t definitionBytes);

  static constexpr size_t kMostBytes = size_t{1} << 62; // a size that reaches this is stored as this

  // A buffer of the graph: an array [copies, rows, heads, columns].
  struct Placed {
    TensorRole role{};
    GraphBuffer::Rows rows{};
    size_t offset = 0;   // bytes
    int64_t columns = 0; // elements
    int64_t row = 0;     // heads * columns
    int64_t copy = 0;    // rows * heads * columns, where rows do not depend on the call
  };
  bool has(Buffer buffer) const { return (present >> static_cast<size_t>(buffer) & 1) != 0; }
  // The layout must have the buffer.
  const Placed &operator[](Buffer buffer) const {
    assert(has(buffer));
    return placed[static_cast<size_t>(buffer)];
  }

  ShareRanges shares;     // for decode with few queries
  GradientParts parts;    // of gradients
  int64_t indexParts = 1; // of the inverse of lists (key_splits.h)
  int64_t compRows = 0;   // of all sequences together; 0 in the dense layout
  size_t definitionScratch = 0;
  std::array<size_t, 2> compared = {}; // second outputs of a kernel, and outputs of its definition
  // Queries: of each sequence in the dense layout, of all sequences in the packed one. The memory of a chunk has rows
  // for spare queries too (spareQueries), but never more rows than there are queries.
  int64_t chunk = 0, chunkRows = 0;
  size_t bytes = 0;

private:
  void place(size_t &offset, Saturated size);

  static_assert(kBuffers <= 64, "WorkspaceLayout::present has a bit for each buffer");
  uint64_t present = 0;                     // the buffers whose entries of `placed` count
  std::array<Placed, kBuffers> placed = {}; // the scratch is in front of them, shared by all kernels
};

} // namespace nsa
