// The kernels of the gradients of selected attention by themselves on every device, against the fp64 reference: dense,
// and packed with lengths of their own; and with each number of warps that the device admits. Some rows are NaN. No
// query sees the last key: the last query does not list its block, and the other queries that do stand before it.
#include "runtime/base/key_splits.h"
#include "tests/harness/gradient_fixture.h"

#include <algorithm>

namespace nsa::test {
namespace {

using reference::Sequence;

// Ascending lists that begin with block 0 and end with the query's own block. The last query lists block 0 alone, so no
// query sees the last key.
reference::BlockLists drawLists(const GradientProblem &problem, std::mt19937_64 &random) {
  const Spec &spec = problem.attention.spec;
  auto lists = reference::BlockLists::make(reference::rowEnd(problem.sequences()), kKvHeads, spec.selCount);
  for (const Sequence &sequence : problem.sequences())
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t kvHead = 0; kvHead < kKvHeads; ++kvHead) {
        const int64_t own = sequence.position(query) / spec.selBlock;
        std::vector<int32_t> list = {0};
        for (int64_t block = 1; block < own && list.size() + 1 < static_cast<size_t>(spec.selCount); ++block)
          if (random() % 3 == 0)
            list.push_back(static_cast<int32_t>(block));
        if (own > 0)
          list.push_back(static_cast<int32_t>(own));
        if (query + 1 == sequence.queries)
          list = {0};
        std::ranges::copy(list, lists.at(sequence.firstRow + query, kvHead).begin());
      }
  return lists;
}

// The inverse of the lists (docs/specification.md, `block_index`), and the place that each block has in the list of
// each query. All queries are one chunk.
struct InverseLists {
  InverseLists(const GradientProblem &problem, bool isPacked) : spec(problem.attention.spec), isPacked(isPacked) {
    const std::vector<Sequence> &sequences = problem.sequences();
    for (size_t s = 0; s < sequences.size(); ++s) {
      blocks = std::max(blocks, blocksOf(sequences[s]));
      places =
          std::max(places, begin(sequences[s], s) + blocksOf(sequences[s]) + 1 + sequences[s].queries * spec.selCount);
    }
    entries = isPacked ? 1 : static_cast<int64_t>(sequences.size());
    index.resize(static_cast<size_t>(entries * kKvHeads * places), -1);
    slots = index;
    ranges.resize(static_cast<size_t>(2 * static_cast<int64_t>(sequences.size()) * kKvHeads * blocks));
    const size_t pastRanges = ranges.size() / 2;
    for (size_t s = 0; s < sequences.size(); ++s)
      for (int64_t kvHead = 0; kvHead < kKvHeads; ++kvHead) {
        const size_t offsets = offsetsOf(sequences[s], s, kvHead);
        const auto listing = offsets + static_cast<size_t>(blocksOf(sequences[s])) + 1;
        int32_t count = 0;
        for (int64_t block = 0; block < blocksOf(sequences[s]); ++block) {
          index[offsets + size_t(block)] = count;
          ranges[(s * size_t(kKvHeads) + size_t(kvHead)) * size_t(blocks) + size_t(block)] = count;
          for (int64_t query = 0; query < sequences[s].queries; ++query) {
            const auto list = problem.attention.blockLists.at(sequences[s].firstRow + query, kvHead);
            if (const auto found = std::ranges::find(list, block); found != list.end()) {
              slots[listing + size_t(count)] = static_cast<int32_t>(found - list.begin());
              index[listing + size_t(count++)] = static_cast<int32_t>(query);
            }
          }
          ranges[pastRanges + (s * size_t(kKvHeads) + size_t(kvHead)) * size_t(blocks) + size_t(block)] = count;
        }
        index[listing - 1] = count;
      }
  }

  int64_t blocksOf(const Sequence &sequence) const { return (sequence.keys + spec.selBlock - 1) / spec.selBlock; }
  int64_t begin(const Sequence &sequence, size_t s) const {
    return isPacked ? sequence.keyBegin / spec.selBlock + 2 * int64_t(s) + sequence.queryBegin * spec.selCount : 0;
  }
  size_t offsetsOf(const Sequence &sequence, size_t s, int64_t kvHead) const {
    return size_t(((isPacked ? 0 : int64_t(s)) * kKvHeads + kvHead) * places + begin(sequence, s));
  }
  // The first piece of a sequence (templates/tile/library/pieces_bwd.tile).
  int64_t firstPiece(const Sequence &sequence, size_t s) const {
    const int64_t keys = isPacked ? sequence.keyBegin : int64_t(s) * sequence.keys;
    const int64_t queries = isPacked ? sequence.queryBegin : int64_t(s) * sequence.queries;
    return keys / spec.selBlock + queries * spec.selCount / kItem + 2 * int64_t(s);
  }

  static constexpr int64_t kItem = 64; // queries
  const Spec &spec;
  bool isPacked;
  int64_t entries = 0, places = 0, blocks = 0;
  std::vector<int32_t> index, slots, ranges;
};

struct SelectedCase {
  DType dtype;
  int32_t group, qkDim, vDim, selBlock;
  Placing placing = Placing::kDense;
};

class SelectedGradients : public GradientTest {
protected:
  static constexpr float kWrongDelta = 0.5;

  static ProgramKernel::Pairs fixedOf(const GradientProblem &problem) {
    ProgramKernel::Pairs fixed = problem.fixed();
    fixed["sel_block"] = std::to_string(problem.attention.spec.selBlock);
    fixed["sel_count"] = std::to_string(problem.attention.spec.selCount);
    return fixed;
  }

  static Spec specFor(const SelectedCase &c) {
    Spec spec = specOf(Operator::kSel, c.dtype, c.group, c.qkDim, c.vDim);
    spec.selBlock = c.selBlock;
    spec.selCount = 5;
    return spec;
  }
  static std::vector<SequenceLengths> lengthsOf(Placing placing) {
    if (placing == Placing::kPacked)
      return {{290, 333}, {0, 50}, {70, 170}};
    return {{290, 333}, {290, 333}};
  }

  void check(const char *program, const SelectedCase &c, const std::string &warps = "") {
    GradientProblem problem(specFor(c), c.placing, lengthsOf(c.placing), random);
    problem.attention.blockLists = drawLists(problem, random);
    // Scores of a hundred have errors that the tolerance of fp32 leaves no room for.
    if (c.dtype != DType::kF32)
      problem.lowerScores();
    problem.poisonLastKeys();
    check(program, problem, c.placing, warps);
  }

  void check(const char *program, GradientProblem &problem, Placing placing, const std::string &warps = "") {
    const Spec &spec = problem.attention.spec;
    SCOPED_TRACE(std::string(program) + " " + std::string(dtypeName(spec.dtype)) + " blocks of " +
                 std::to_string(spec.selBlock) + " " + std::string(placingName(placing)) + " warps " + warps);

    // Of the gated output, the gradient of which is drawn.
    const reference::AttentionResult result = reference::attend(problem.attention);
    std::vector<double> gatedGradient = problem.gradientOfOut();
    std::vector<float> gates, delta;
    std::normal_distribution<float> normal;
    for (size_t row = 0; row < result.lse.size(); ++row) {
      gates.push_back(row % 7 == 0 ? 0 : normal(random));
      double sum = 0;
      for (size_t i = row * size_t(spec.vDim); i < (row + 1) * size_t(spec.vDim); ++i) {
        sum += gatedGradient[i] * result.out[i];
        gatedGradient[i] *= gates.back();
      }
      delta.push_back(static_cast<float>(sum));
    }
    const reference::AttentionGradient wanted = reference::differentiate(problem.attention, result, gatedGradient);
    // The kernels of queries correct delta, and the kernel of keys gets the corrected one.
    std::vector<float> wrong = delta;
    for (float &value : wrong)
      value += program == std::string("sel_dkv") ? 0 : kWrongDelta;

    const ProgramKernel kernel(*device, program, *parseOperator(program), fixedOf(problem),
                               warps.empty() ? ProgramKernel::Pairs() : ProgramKernel::Pairs{{"warps", warps}});
    const InverseLists inverse(problem, placing == Placing::kPacked);
    const reference::BlockLists &lists = problem.attention.blockLists;
    std::vector<int32_t> listLengths;
    for (size_t begin = 0; begin < lists.blocks.size(); begin += size_t(spec.selCount))
      listLengths.push_back(static_cast<int32_t>(std::ranges::count_if(
          std::span(lists.blocks).subspan(begin, size_t(spec.selCount)), [](int32_t block) { return block >= 0; })));
    int64_t pieces = 0, rows = 0, queries = 0;
    for (size_t s = 0; s < problem.sequences().size(); ++s) {
      const Sequence &sequence = problem.sequences()[s];
      const int64_t own = piecesOfSequence(spec, InverseLists::kItem, sequence.queries, sequence.keys);
      pieces = std::max(pieces, own);
      rows = std::max(rows, (inverse.firstPiece(sequence, s) + own) * spec.selBlock);
      queries = std::max(queries, sequence.queries);
    }

    const auto sequences = static_cast<int64_t>(problem.sequences().size());
    const std::vector<int64_t> places = {inverse.entries, kKvHeads, inverse.places};
    const DeviceArray q = problem.array(*device, problem.q), dOut = problem.array(*device, problem.dOut),
                      lse = problem.rows(*device, floats(result.lse)), deltas = problem.rows(*device, wrong),
                      gate = problem.rows(*device, gates), index = DeviceArray::of(*device, inverse.index, places),
                      entrySlots = DeviceArray::of(*device, inverse.slots, places),
                      ranges = DeviceArray::of(*device, inverse.ranges, {2, sequences, kKvHeads, inverse.blocks}),
                      blockList = DeviceArray::of(*device, lists.blocks, problem.queryShape({kKvHeads, spec.selCount})),
                      lengths = DeviceArray::of(*device, listLengths, problem.queryShape({kKvHeads})),
                      dq = problem.untouched(*device, problem.q),
                      dqSlots = untouched(problem.queryShape({kKvHeads, spec.selCount * spec.group(), spec.qkDim})),
                      keySlots = untouched(problem.queryShape({kKvHeads, spec.selCount * spec.group(), spec.qkDim}),
                                           spec.dtype),
                      restSlots = untouched(problem.queryShape({kKvHeads, spec.selCount * spec.group()})),
                      dkPieces = untouched({rows, kKvHeads, spec.qkDim}),
                      dvPieces = untouched({rows, kKvHeads, spec.vDim});
    Arguments arguments = problem.arguments(*device);
    for (const auto &[name, array] : {std::pair("q", &q),
                                      {"d_out", &dOut},
                                      {"d_q", &dq},
                                      {"dq_slots", &dqSlots},
                                      {"key_slots", &keySlots},
                                      {"dk_pieces", &dkPieces},
                                      {"dv_pieces", &dvPieces}})
      array->bind(arguments, name);
    for (const auto &[name, array] : {std::pair("lse", &lse),
                                      {"delta", &deltas},
                                      {"weight", &gate},
                                      {"block_index", &index},
                                      {"entry_slots", &entrySlots},
                                      {"index_ranges", &ranges},
                                      {"block_list", &blockList},
                                      {"list_lengths", &lengths},
                                      {"rest_slots", &restSlots}})
      array->bind(arguments, name, /*columnsToo=*/true);
    for (const char *absent : {"dq_sum", "dq_base", "delta_next"})
      arguments.view(absent, nullptr, {0, 0, 0});
    const bool ofKeys = program == std::string("sel_dkv");
    const int64_t splits = ofKeys ? pieces : (queries + InverseLists::kItem - 1) / InverseLists::kItem;
    arguments.i32("item_queries", InverseLists::kItem).i32("splits", static_cast<int32_t>(splits));
    std::map<std::string, int64_t> sizes = problem.gridSizes();
    sizes["splits"] = splits;
    kernel.run(arguments, sizes);

    if (program == std::string("sel_dq"))
      expectClose(problem.read(dq, problem.q), wanted.q, spec.dtype, "dQ");
    else if (!ofKeys)
      checkSlots(problem, dqSlots.read<float>(), keySlots.read<std::byte>(), restSlots.read<float>(), gates, wanted);
    for (const bool isValue : {false, true})
      if (ofKeys)
        checkKeys(problem, inverse, (isValue ? dvPieces : dkPieces).read<float>(), wanted, isValue);
  }

  // The kernel that follows adds the slots of a query in their order, takes the rest times the mean of keys from the
  // sum, and multiplies. The sum of keys by their weights is what attention has with the keys as values.
  static void checkSlots(const GradientProblem &problem, const std::vector<float> &slots,
                         const std::vector<std::byte> &keySlots, const std::vector<float> &rests,
                         const std::vector<float> &gates, const reference::AttentionGradient &wanted) {
    const Spec &spec = problem.attention.spec;
    const auto columns = static_cast<size_t>(spec.qkDim), count = static_cast<size_t>(spec.selCount),
               group = static_cast<size_t>(spec.group());
    std::vector<double> keys(slots.size()), dq(wanted.q.size(), 0), meanKey(wanted.q.size(), 0);
    reference::loadElements(spec.dtype, keySlots.data(), 0, keys);
    for (size_t row = 0; row < wanted.q.size() / columns; ++row) {
      double rest = 0;
      const size_t list = row / group, query = list / size_t(spec.kvHeads), kvHead = list % size_t(spec.kvHeads);
      for (size_t slot = 0; slot < count; ++slot) {
        const bool isListed = problem.attention.blockLists.at(int64_t(query), int64_t(kvHead))[slot] >= 0;
        // The heads of a group stand beside each other in each slot.
        const size_t part = (list * count + slot) * group + row % group;
        const float ofSlot = rests[part];
        ASSERT_EQ(std::isnan(ofSlot), !isListed) << "row " << row << " slot " << slot;
        rest += isListed ? ofSlot : 0;
        for (size_t column = 0; column < columns; ++column) {
          const size_t at = row * columns + column, from = part * columns + column;
          ASSERT_EQ(std::isnan(slots[from]), !isListed) << "row " << row << " slot " << slot << " column " << column;
          ASSERT_EQ(std::isnan(keys[from]), !isListed) << "row " << row << " slot " << slot << " column " << column;
          dq[at] += isListed ? slots[from] : 0;
          meanKey[at] += isListed ? keys[from] : 0;
        }
      }
      // A GPU sums what it has rounded to the io type.
      EXPECT_NEAR(rest, -kWrongDelta, 0.1 * kWrongDelta) << "row " << row;
      for (size_t at = row * columns; at < (row + 1) * columns; ++at)
        dq[at] = (dq[at] - rest * meanKey[at]) * reference::softmaxScale(spec) * gates[row];
    }
    expectClose(dq, wanted.q, spec.dtype, "dQ");
    reference::Attention ofKeys = problem.attention;
    ofKeys.spec.vDim = spec.qkDim;
    ofKeys.v = ofKeys.k;
    expectClose(meanKey, reference::attend(ofKeys).out, spec.dtype, "mean of keys");
  }

  // And the pieces of a block in their order.
  static void checkKeys(const GradientProblem &problem, const InverseLists &inverse, const std::vector<float> &read,
                        const reference::AttentionGradient &wanted, bool isValue) {
    const Spec &spec = problem.attention.spec;
    const int64_t columns = isValue ? spec.vDim : spec.qkDim;
    std::vector<double> all, sums;
    for (size_t s = 0; s < problem.sequences().size(); ++s) {
      const Sequence &sequence = problem.sequences()[s];
      const std::vector<double> &own = isValue ? wanted.keys[s].v : wanted.keys[s].k;
      const size_t begin = all.size();
      all.insert(all.end(), own.begin(), own.end());
      sums.resize(all.size());
      for (int64_t kvHead = 0; kvHead < kKvHeads; ++kvHead)
        for (int64_t key = 0; key < inverse.blocksOf(sequence) * spec.selBlock; ++key) {
          const int64_t block = key / spec.selBlock;
          const int32_t *offset = &inverse.index[inverse.offsetsOf(sequence, s, kvHead) + size_t(block)];
          const int64_t first = inverse.firstPiece(sequence, s) + block;
          for (int64_t item = offset[0] / InverseLists::kItem; item * InverseLists::kItem < offset[1]; ++item) {
            const int64_t row = (first + item) * spec.selBlock + key % spec.selBlock;
            const float *elements = &read[size_t((row * kKvHeads + kvHead) * columns)];
            if (offset[0] == offset[1] || key >= sequence.keys) {
              ASSERT_TRUE(std::isnan(elements[0])) << "a piece or a key that does not exist was written";
              continue;
            }
            for (int64_t column = 0; column < columns; ++column)
              sums[begin + size_t((key * kKvHeads + kvHead) * columns + column)] += elements[column];
          }
        }
    }
    expectClose(sums, all, spec.dtype, isValue ? "dV" : "dK");
  }

  static constexpr const char *kPrograms[] = {"sel_dq", "sel_dq_slots", "sel_dkv"};
  std::mt19937_64 random{freshSeed()};
};

TEST_F(SelectedGradients, OfQueriesKeysAndValues) {
  for (const char *program : kPrograms)
    for (const SelectedCase &c : {SelectedCase{DType::kBf16, 2, 64, 64, 64},
                                  {DType::kF16, 3, 40, 24, 12},
                                  {DType::kF32, 1, 24, 16, 16},
                                  {DType::kF16, 3, 40, 24, 12, Placing::kPacked}})
      check(program, c);
}

// The last tile of a piece has pairs that do not exist. With a key of -infinity their weight is NaN, and they must not
// reach its gradients of 0. The tile's queries see the whole block.
TEST_F(SelectedGradients, OfAKeyWithoutWeight) {
  for (const Placing placing : {Placing::kDense, Placing::kPacked})
    for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
      GradientProblem problem(specFor({dtype, 3, 40, 24, 12}), placing, lengthsOf(placing), random);
      problem.attention.blockLists = drawLists(problem, random);
      problem.sinkFirstKeys();
      check("sel_dkv", problem, placing);
    }
}

TEST_F(SelectedGradients, OfEachNumberOfWarps) {
  const SelectedCase c{DType::kBf16, 2, 64, 64, 64};
  const GradientProblem problem(specFor(c), c.placing, lengthsOf(c.placing), random);
  // `sel_dq` has tiles of 16 heads for a group of two, and `sel_dkv` tiles of at most 64 keys for blocks of 64.
  for (const auto &[program, most] : {std::pair("sel_dq", 1u), {"sel_dq_slots", 4u}, {"sel_dkv", 3u}}) {
    const std::vector<std::string> warps =
        ProgramKernel::valuesOf(*device, program, *parseOperator(program), fixedOf(problem), "warps");
    EXPECT_EQ(warps.size(), isTestDeviceCuda() ? most : 1u) << program;
    for (const std::string &number : warps)
      check(program, c, number);
  }
}

} // namespace
} // namespace nsa::test
