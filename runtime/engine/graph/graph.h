// The kernels of each operator as data. A graph lists nodes, each of which launches one kernel, and the buffers in the
// workspace that the nodes pass to each other. The steps of a plan, the layout of its workspace, its launches and the
// names of its parts are walks over a graph. docs/operators.md describes the graphs.
// Thread-safety: constants and pure functions.
#pragma once

#include "runtime/base/kernel_arguments.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa {

struct Call;
struct WorkspaceLayout;

// What a kernel does within an operator. No plan has two kernels with the same role.
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
  kDeltas, // from here to kDkv: gradients of attention
  kDq,
  kDkv,
  kGates, // from here to kDkvWin: gradients of nsa, branch by branch
  kDqCmp,
  kDqSel,
  kDqWin,
  kDkvCmp,
  kSumCmp,
  kDkvSel,
  kDkvWin,
  kSumParts,     // of gradients of keys
  kIndexLengths, // from here to kIndexFill: the inverse of lists of blocks
  kIndexCounts,
  kIndexStarts,
  kIndexFill,
  kIndexCheck,
  kDz, // from here to kSums: gradients of compression
  kDx,
  kDw,
  kDb,
  kSums,
  kIndexSlots, // from here to kSumSlots: gradients of queries, block by block
  kIndexRanges,
  kDqSlots,
  kSumSlots,
  kZeroQueries, // gradients of what no branch reads
  kZeroWeights,
  kStep, // all of decode's work for a few new tokens of each sequence
  kMain  // the kernel of an operator that is a single kernel
};
inline constexpr int kRoles = 41;
// Returns the name of a role, such as "sequences", "append", "compress" or "cmp". For kMain, roleName returns the name
// of the operator.
std::string_view roleName(Role role, Operator op);

// Shortcuts of the operators nsa and decode, which do not change the result. The branch sel can be computed as dense
// attention if every block is selected at every length that the maxima allow. The branch win can be computed as dense
// attention if every key is in the window at every length that the maxima allow.
enum Route : uint8_t { kSelIsDense = 1, kWinIsDense = 2 };

enum class Buffer : uint8_t {
  kTable, // of sequences; of decode also the table of its new compressed blocks
  kKComp,
  kVComp,
  kKStaged, // decode: the tokens of new compressed blocks, one sequence after another
  kVStaged,
  kLse,
  kBlockList,
  kOutCmp,
  kReadsCmp,
  kOutSel,
  kReadsSel,
  kOutWin,
  kReadsWin,
  // Decode with few queries: what programs that share the keys of a query find.
  kShareOut,
  kShareLse,
  kShareHeadLse, // of the compressed branch, head by head
  kShareReads,
  kScores,
  kKeptScores,
  kKeptBlocks,
  kChoice,
  kDelta,
  kDeltaNext, // delta plus what rounding left of the sums of dS; of nsa that of cmp
  kDkParts,   // gradients of keys, of programs that share the queries that see a key
  kDvParts,
  kListLengths,
  kBlockCounts,
  // Gradients of compression: the hidden values of a perceptron and their gradients, and parts of the gradients of
  // weights and biases.
  kHK, // in 16 bits with what rounding took, behind the heads
  kHV,
  kDzK,
  kDzV,
  kDzRestK, // what the rounding of kDzK took from it
  kDzRestV,
  kWeightParts,
  kBiasParts,
  kBlockIndex,
  kDkPieces, // of the selected branch: gradients of keys, of pieces of the queries that list a block
  kDvPieces,
  // Gradients of nsa.
  kDeltaCmp,
  kDeltaSel,
  kDeltaWin,
  kDeltaNextSel,
  kDeltaNextWin,
  kWeightCmp, // the gates as numbers
  kWeightSel,
  kWeightWin,
  kDqSum,
  kDKComp,
  kDVComp,
  kDKCompRest, // what the rounding of kDKComp took from it
  kDVCompRest,
  kDkCmpParts,
  kDvCmpParts,
  kDkBlocks, // gradients of tokens, through compression
  kDvBlocks,
  kEntrySlots, // of the inverse of lists: the place that a block has in the list of a query
  kIndexRanges,
  kDqSlots,
  kKeySlots,  // of each place of a list, the sum of its keys by their weights
  kRestSlots, // of each place of a list, the sum of dS over its keys
  kArrivals,  // of the kernel `decode_step`: marks by which clusters learn that others have read a length
  kNone
};
inline constexpr size_t kBuffers = static_cast<size_t>(Buffer::kNone);

// What kernels of gradients write to the workspace and compare mode compares (comparison.h). If a buffer were missing
// here, the definition would overwrite what the plan's own kernel has stored in it.
struct ComparedBuffer {
  View view;
  Buffer buffer;
  TensorRole role = TensorRole::kStatistics;
};
inline constexpr ComparedBuffer kComparedBuffers[] = {{View::kDkPieces, Buffer::kDkPieces},
                                                      {View::kDvPieces, Buffer::kDvPieces},
                                                      {View::kDqSlots, Buffer::kDqSlots},
                                                      {View::kKeySlots, Buffer::kKeySlots, TensorRole::kIo},
                                                      {View::kRestSlots, Buffer::kRestSlots}};

// The same of numbers for each query and head.
inline constexpr View kComparedStatistics[] = {View::kDeltaNext, View::kDeltaCmp,  View::kDeltaSel, View::kDeltaWin,
                                               View::kWeightCmp, View::kWeightSel, View::kWeightWin};

// A buffer is an array [copies, rows, heads, columns].
struct GraphBuffer {
  enum class Copies : uint8_t {
    kOne,
    kTwo,
    kSplits,
    kCmpSplits,
    kQueryParts,
    kCmpQueryParts,
    kWeightParts,
    kIndexParts
  };
  enum class Rows : uint8_t {
    kSequences,
    kEntries,    // the sequences in the dense layout, one in the packed one
    kCompressed, // the compressed rows of all sequences
    kKeys,       // the keys that the operator attends, tokens or compressed rows, of all sequences
    kTokens,     // the keys of all sequences
    kPieces,     // the keys of a selection block, for each piece of the inverse of lists
    kStaged,     // the tokens of all new compressed blocks
    kChunk,      // the queries of a chunk
    kQueries,    // all queries
    kTimes,      // all queries, with an entry for each sequence of the dense layout
    kWeights,    // the rows of all matrices of compression
    kBiases      // the biases of compression
  };
  enum class Heads : uint8_t {
    kNone,
    kQuery,
    kKv,
    kKvWithRests // behind the key/value heads what rounding took from each, if the io type rounds
  };
  enum class Columns : uint8_t {
    kOne,
    kTableFields,
    kQkDim,
    kVDim,
    kSelCount,
    kShareSlots,
    kScoreBlocks,
    kKeptBlocks,
    kHidden,
    kWeights,
    kIndex,
    kMarks,    // the two words of a mark, for each new token
    kSlotRows, // qk_dim columns for each place of a list, where there are slots
    kRestSlots // a number for each place of a list, where there are slots
  };

  Buffer buffer;
  Role maker; // the workspace has the buffer if the plan has the kernel of this role
  Rows rows;
  Heads heads;
  Columns columns;
  TensorRole role;
  Copies copies = Copies::kOne;
  bool (*isNeeded)(const Spec &spec) = nullptr; // null: for every spec

  bool isNeededBy(const Spec &spec) const { return !isNeeded || isNeeded(spec); }
};

// The coordinates by which a kernel addresses a buffer, and the step of each, in the array of GraphBuffer.
enum class Order : uint8_t {
  kEntryRowHead, // the entry is the sequence of the dense layout, or the copy; columns are contiguous
  kEntryRowHeadColumn,
  kEntryRowGroup, // the heads of a group are contiguous
  kColumnRowHead,
  kRowHead,
  kRowHeadColumn,
  kRowHeadPiece,      // pieces of 16 columns
  kEntryRowGroupPart, // a part of the columns for each slot of a list and, in the slot, for each head of the group
  kCopyRowColumn,
  kRowColumn,
  kSecondRowColumn // of the second copy
};

// An argument of a kernel: the caller's tensor, or the buffer where the caller has not bound the tensor. If several
// bindings of a node have the same view, the argument is the last one that is there.
struct Binding {
  static constexpr auto kNoTensor = static_cast<TensorName>(-1);

  View view;
  TensorName tensor = kNoTensor;
  Buffer buffer = Buffer::kNone;
  Order order = Order::kEntryRowHead;
  int32_t branches = 0;              // absent unless one of these branches is on; 0: of each spec
  bool ifReads = false;              // absent unless the caller has bound the tensor `reads`
  TensorName sameAbsent = kNoTensor; // absent where this tensor has the same data
  Buffer unless = Buffer::kNone;     // absent where the plan has this buffer
};

// Returns the role of what an argument is bound to, or nullopt for an argument that is absent from a plan.
std::optional<TensorRole> roleOf(const Binding &binding);

struct GraphNode {
  // When a call launches the kernel.
  enum class Launch : uint8_t {
    kAlways,
    kForScores,     // if the branch of the output is on, or as kForLists
    kForLists,      // if a later kernel reads the lists of blocks, or the caller has bound `block_list`
    kForCallerList, // if the caller has bound `block_list`
    kForWeights,    // if the caller has bound the gradient of a weight
    kForZeros,      // if the caller has bound a gradient of queries that no branch reads
    kWithoutLse,    // if the caller has not bound `lse`
    kWithoutBlocks, // if the caller has not bound both compressed keys and values
    kWithoutOutput, // if the caller has not bound the output of the branch
    kWithoutIndex,  // if the caller has not bound `block_index`
    kWithIndex      // if the caller has bound `block_index`
  };

  Role role;
  std::optional<Operator> op{}; // nullopt: the operator of the spec
  // A plan has the node if one of these branches is on (0: whatever branches are on) and isNeeded is null or true.
  int32_t branches = 0;
  bool (*isNeeded)(const Spec &spec, const Maxima &maxima) = nullptr;
  void (*change)(Spec &step, const Spec &whole) = nullptr; // how the spec of the step differs from the operator's
  int32_t output = 0;                                      // the branches whose outputs the kernel computes
  uint8_t shortcut = 0;                                    // the Route by which `shortcutOp` runs instead
  std::optional<Operator> shortcutOp{};
  bool writesCache = false;
  bool isChunked = false;  // launched for each chunk of queries; such nodes follow each other
  bool sharesKeys = false; // several programs share the keys of a query
  Launch launch = Launch::kAlways;
  bool bindsOperands = false; // the operands of the operator are arguments, before `bindings`
  std::span<const Binding> bindings{};
  // Sets the arguments that are no views.
  void (*prepare)(KernelCall &kernelCall, const Spec &spec, const WorkspaceLayout &layout, const Call &call) = nullptr;

  bool isIn(const Spec &spec, const Maxima &maxima) const {
    return (branches == 0 || (spec.branches & branches) != 0) && (!isNeeded || isNeeded(spec, maxima));
  }
};

// Returns what compare mode compares of a node whose kernel is of operator `op`, beside kComparedBuffers: the outputs
// of the operator, and, as optional outputs in the shape of `delta`, the node's kComparedStatistics.
std::vector<Operand> comparedOperands(const GraphNode &node, Operator op);

struct Graph {
  std::span<const GraphNode> nodes;     // in the order of their launches
  std::span<const GraphBuffer> buffers; // in the order of the workspace
  std::optional<Operator> op{};         // nullopt: every operator that has no graph of its own
  bool isOfFew = false;                 // only of plans in which programs share the keys of a query (sharesKeys)

  constexpr bool isChunked() const { return std::ranges::any_of(nodes, &GraphNode::isChunked); }
};
// Returns the graph of an operator. Decode has another graph for few queries (key_splits.h), and one more for one
// kernel (Spec::decodeStep).
const Graph &graphOf(const Spec &spec, const Maxima &maxima);

} // namespace nsa
