// The kernels of gradients by themselves on every device, against the fp64 reference: dense, packed with lengths of
// their own, and, of `sel_bwd_keys`, with keys in pages; and with each number of warps that the device admits. Some
// rows are NaN. The last query alone sees the last key, so that its dQ is NaN and the dQ of the other queries of its
// tile are not. The first query does not see the later keys, so that their dK and dV are no NaN. In `sel_bwd_keys` no
// query sees the last key: the last query does not list its block, and the other queries that do stand before it.
#include "tests/harness/gradient_problem.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"
#include "tools/reference/gradient/attention_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

using reference::Sequence;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kKvHeads = 2;

std::vector<float> floats(const std::vector<double> &values) { return {values.begin(), values.end()}; }

// The error relative to the size of what is wanted. What is wanted as NaN has to be NaN. If all else is wanted as 0, it
// has to be exactly 0.
void expectClose(const std::vector<double> &got, const std::vector<double> &wanted, DType dtype, const char *name) {
  ASSERT_EQ(got.size(), wanted.size()) << name;
  double error = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::isnan(got[i]), std::isnan(wanted[i])) << name << " " << i << ": " << got[i] << " for " << wanted[i];
    if (std::isnan(wanted[i]))
      continue;
    error += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    size += wanted[i] * wanted[i];
  }
  if (size == 0)
    EXPECT_EQ(error, 0) << name;
  else
    EXPECT_LE(std::sqrt(error / size), reference::toleranceOf(dtype).relativeRms) << name;
}

class GradientTest : public testing::Test {
protected:
  void SetUp() override {
    if (const std::string &reason = Session::get().skipReason(); !reason.empty())
      GTEST_SKIP() << reason;
    Result<std::unique_ptr<Device>> opened = openTestDevice();
    ASSERT_TRUE(opened) << opened.status().toString();
    device = std::move(*opened);
  }

  static Spec specOf(Operator op, DType dtype, int32_t group, int32_t qkDim, int32_t vDim) {
    Spec spec;
    spec.op = op;
    spec.dtype = dtype;
    spec.kvHeads = kKvHeads;
    spec.queryHeads = kKvHeads * group;
    spec.qkDim = qkDim;
    spec.vDim = vDim;
    return spec;
  }

  // An array that no program has written to is NaN.
  DeviceArray untouched(std::vector<int64_t> shape) {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    return DeviceArray::of(*device, std::vector<float>(static_cast<size_t>(count), kNan), std::move(shape));
  }

  std::unique_ptr<Device> device;
};

// --- attention_dq, attention_dkv

class AttentionGradients : public GradientTest {
protected:
  // The last key of each sequence is NaN for dQ, and the first query for dK and dV.
  void check(const char *program, Operator op, DType dtype, Placing placing, const std::string &warps = "") {
    check(program, specFor(op, dtype), placing, lengthsOf(placing), warps);
  }
  void check(const char *program, const Spec &whole, Placing placing, std::vector<SequenceLengths> lengths,
             const std::string &warps = "") {
    GradientProblem problem(whole, placing, std::move(lengths), /*pageTokens=*/0, random);
    if (program == std::string("attention_dkv"))
      problem.poisonFirstQueries();
    else
      problem.poisonLastKeys();
    check(program, problem, placing, warps);
  }
  void check(const char *program, GradientProblem &problem, Placing placing, const std::string &warps = "") {
    const DType dtype = problem.attention.spec.dtype;
    SCOPED_TRACE(std::string(program) + " " + std::string(operatorName(problem.attention.spec.op)) + " " +
                 std::string(dtypeName(dtype)) + " " + std::string(placingName(placing)) + " warps " + warps);
    const bool ofKeys = program == std::string("attention_dkv");
    const reference::AttentionResult result = reference::attend(problem.attention);
    const reference::AttentionGradient wanted =
        reference::differentiate(problem.attention, result, problem.gradientOfOut());

    const ProgramKernel kernel(*device, program, *parseOperator(program), fixedOf(problem),
                               warps.empty() ? ProgramKernel::Pairs() : ProgramKernel::Pairs{{"warps", warps}});
    const DeviceArray q = problem.array(*device, problem.q), dOut = problem.array(*device, problem.dOut),
                      lse = problem.rows(*device, floats(result.lse)),
                      delta = problem.rows(*device, floats(wanted.delta)), dq = problem.untouched(*device, problem.q),
                      dk = problem.untouched(*device, problem.k), dv = problem.untouched(*device, problem.v);
    Arguments arguments = problem.arguments(*device);
    for (const auto &[name, array] : {std::pair("q", &q), {"d_out", &dOut}, {"d_q", &dq}, {"d_k", &dk}, {"d_v", &dv}})
      array->bind(arguments, name);
    for (const auto &[name, array] : {std::pair("lse", &lse), {"delta", &delta}})
      array->bind(arguments, name, /*columnsToo=*/true);
    arguments.i32("splits", 1);
    for (const char *absent : {"dk_parts", "dv_parts", "dq_sum", "dq_base", "weight", "delta_next"})
      arguments.view(absent, nullptr, {0, 0, 0});
    kernel.run(arguments, problem.gridSizes());
    std::vector<double> k, v;
    for (const reference::KeyGradient &own : wanted.keys) {
      k.insert(k.end(), own.k.begin(), own.k.end());
      v.insert(v.end(), own.v.begin(), own.v.end());
    }
    if (ofKeys) {
      expectClose(problem.read(dk, problem.k), k, dtype, "dK");
      expectClose(problem.read(dv, problem.v), v, dtype, "dV");
    } else {
      expectClose(problem.read(dq, problem.q), wanted.q, dtype, "dQ");
    }
  }

  // Heads of up to 48 and larger ones take the rest of the sum of dS from dQ in two ways.
  static Spec specFor(Operator op, DType dtype, int32_t qkDim = 40) {
    Spec spec = specOf(op, dtype, 3, qkDim, 24);
    spec.window = op == Operator::kWindow ? 13 : std::numeric_limits<int32_t>::max();
    spec.cmpBlock = op == Operator::kCmp ? 8 : 1;
    spec.cmpStride = op == Operator::kCmp ? 4 : 1;
    return spec;
  }
  static ProgramKernel::Pairs fixedOf(const GradientProblem &problem) {
    const Spec &spec = problem.attention.spec;
    ProgramKernel::Pairs fixed = problem.fixed();
    fixed.erase("page_size");
    fixed["cmp_block"] = std::to_string(spec.cmpBlock);
    fixed["cmp_stride"] = std::to_string(spec.cmpStride);
    return fixed;
  }
  // A packed sequence has no queries, and the last one has fewer keys than the others.
  static std::vector<SequenceLengths> lengthsOf(Placing placing) {
    if (placing == Placing::kPacked)
      return {{37, 61}, {0, 17}, {12, 40}};
    return {{37, 61}, {37, 61}};
  }

  // Runs attention_dq over compressed keys with a delta that is wrong by `off` in all rows. All scores are 0, so all
  // weights of a row are equal, and the keys of a sequence grow along a direction of its own: their mean is neither the
  // first key nor the last. The kernel must find out that the sum of dS is not 0, and correct dQ and delta.
  void checkWrongDelta(const Spec &spec, Placing placing, std::vector<SequenceLengths> lengths, double off,
                       double gradientScale) {
    SCOPED_TRACE(std::string(dtypeName(spec.dtype)) + " " + std::string(placingName(placing)) + " off by " +
                 std::to_string(off));
    GradientProblem problem(spec, placing, std::move(lengths), /*pageTokens=*/0, random);
    constexpr double kCommon = 4;
    problem.alignKeys(kCommon, gradientScale);
    const reference::AttentionResult result = reference::attend(problem.attention);
    const reference::AttentionGradient wanted =
        reference::differentiate(problem.attention, result, problem.gradientOfOut());
    std::vector<float> wrong = floats(wanted.delta);
    for (float &value : wrong)
      value += static_cast<float>(off);

    const ProgramKernel kernel(*device, "attention_dq", Operator::kAttentionDq, fixedOf(problem), {});
    const DeviceArray q = problem.array(*device, problem.q), dOut = problem.array(*device, problem.dOut),
                      lse = problem.rows(*device, floats(result.lse)), delta = problem.rows(*device, wrong),
                      next = problem.rows(*device, std::vector<float>(wrong.size(), kNan)),
                      dq = problem.untouched(*device, problem.q);
    Arguments arguments = problem.arguments(*device);
    for (const auto &[name, array] : {std::pair("q", &q), {"d_out", &dOut}, {"d_q", &dq}})
      array->bind(arguments, name);
    for (const auto &[name, array] : {std::pair("lse", &lse), {"delta", &delta}, {"delta_next", &next}})
      array->bind(arguments, name, /*columnsToo=*/true);
    for (const char *absent : {"dq_sum", "dq_base", "weight"})
      arguments.view(absent, nullptr, {0, 0, 0});
    kernel.run(arguments, problem.gridSizes());

    // Without the correction dQ is wrong by off times the mean key, which is from kCommon to 2 kCommon. A result of
    // fp16 is rounded by up to half of its least number.
    const double scale = reference::softmaxScale(spec);
    const double limit = 0.25 * off * kCommon * scale + (spec.dtype == DType::kF16 ? 0x1p-25 : 0);
    const std::vector<double> got = problem.read(dq, problem.q);
    const std::vector<float> corrected = next.read<float>();
    ASSERT_EQ(got.size(), wanted.q.size());
    for (size_t row = 0; row < corrected.size(); ++row) {
      const bool seesKeys = std::isfinite(result.lse[row]);
      EXPECT_NEAR(corrected[row], seesKeys ? wanted.delta[row] : wrong[row], 0.1 * off) << "row " << row;
      for (size_t i = row * static_cast<size_t>(spec.qkDim); i < (row + 1) * static_cast<size_t>(spec.qkDim); ++i)
        ASSERT_NEAR(got[i], wanted.q[i], seesKeys ? limit : 0) << "row " << row << ", element " << i;
    }
  }

  static constexpr const char *kPrograms[] = {"attention_dq", "attention_dkv"};
  std::mt19937_64 random{freshSeed()};
};

TEST_F(AttentionGradients, OfDenseWindowAndCompressedAttention) {
  for (const char *program : kPrograms)
    for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp}) {
      for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
        check(program, op, dtype, Placing::kDense);
      check(program, op, DType::kBf16, Placing::kPacked);
    }
}

// The keys that the kernel samples in larger heads are keys that all rows of a tile see.
TEST_F(AttentionGradients, OfLargeCompressedHeads) {
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
    for (const Placing placing : {Placing::kDense, Placing::kPacked})
      check("attention_dq", specFor(Operator::kCmp, dtype, 72), placing, lengthsOf(placing));
}

TEST_F(AttentionGradients, TakeWhatIsWrongInDeltaFromTheQueriesAndFromDelta) {
  // The last queries of a sequence see nearly the same keys.
  const std::vector<SequenceLengths> packed = {{8, 61}, {6, 40}, {2, 5}}, alike = {{8, 61}, {8, 61}};
  for (const int32_t qkDim : {40, 72})
    for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
      const Spec spec = specFor(Operator::kCmp, dtype, qkDim);
      checkWrongDelta(spec, Placing::kDense, alike, 0.5, 1);
      checkWrongDelta(spec, Placing::kPacked, packed, 0.5, 1);
    }
  // Sums of a few of the least numbers of fp16, over two keys.
  checkWrongDelta(specFor(Operator::kCmp, DType::kF16, 72), Placing::kDense, {{1, 12}, {1, 12}}, 0x1p-22, 0x1p-24);
}

// Rows that see no key have a gradient of 0, whatever key 0 holds.
TEST_F(AttentionGradients, OfRowsThatSeeNoCompressedKey) {
  for (const int32_t qkDim : {40, 72})
    for (const Placing placing : {Placing::kDense, Placing::kPacked}) {
      GradientProblem problem(specFor(Operator::kCmp, DType::kBf16, qkDim), placing, {{61, 61}, {61, 61}},
                              /*pageTokens=*/0, random);
      problem.poisonFirstKeys();
      check("attention_dq", problem, placing);
    }
}

// Numbers of tokens that 32 bits hold only one by one: two strides of a tile of keys would not fit.
TEST_F(AttentionGradients, OfBlocksOfManyTokens) {
  Spec spec = specFor(Operator::kCmp, DType::kF32);
  spec.cmpBlock = spec.cmpStride = 1 << 27;
  for (const char *program : kPrograms)
    check(program, spec, Placing::kDense, {{9, 5 * (1 << 27) + 2}});
}

// A kernel of each number of warps. The types and layouts are those of the test above.
TEST_F(AttentionGradients, OfEachNumberOfWarps) {
  const GradientProblem problem(specFor(Operator::kDense, DType::kBf16), Placing::kDense, lengthsOf(Placing::kDense),
                                /*pageTokens=*/0, random);
  for (const char *program : kPrograms) {
    const std::vector<std::string> warps =
        ProgramKernel::valuesOf(*device, program, *parseOperator(program), fixedOf(problem), "warps");
    EXPECT_EQ(warps.size(), isTestDeviceCuda() ? 4u : 1u);
    for (const std::string &number : warps)
      check(program, Operator::kDense, DType::kBf16, Placing::kDense, number);
  }
}

// --- sel_bwd_keys

// Which queries list each block, as the kernel takes it: items of some queries of one block, and where they lie in the
// listing.
struct InverseLists {
  struct Item {
    int32_t sequence, kvHead, block, first, past, part;
  };
  struct Listed {
    int32_t query, slot;
  };

  InverseLists(const GradientProblem &problem, size_t queriesOfItem) {
    const Spec &spec = problem.attention.spec;
    for (size_t s = 0; s < problem.sequences().size(); ++s) {
      const Sequence &sequence = problem.sequences()[s];
      for (int64_t kvHead = 0; kvHead < kKvHeads; ++kvHead)
        for (int64_t block = 0; block * spec.selBlock < sequence.keys; ++block) {
          const size_t begin = listing.size();
          for (int64_t query = 0; query < sequence.queries; ++query) {
            const auto list = problem.attention.blockLists.at(sequence.firstRow + query, kvHead);
            if (const auto found = std::ranges::find(list, block); found != list.end())
              listing.push_back({static_cast<int32_t>(query), static_cast<int32_t>(found - list.begin())});
          }
          for (size_t first = begin; first < listing.size(); first += queriesOfItem)
            items.push_back({static_cast<int32_t>(s), static_cast<int32_t>(kvHead), static_cast<int32_t>(block),
                             static_cast<int32_t>(first),
                             static_cast<int32_t>(std::min(first + queriesOfItem, listing.size())),
                             static_cast<int32_t>(items.size())});
        }
    }
  }

  template <typename Record> static std::vector<int32_t> words(const std::vector<Record> &records) {
    std::vector<int32_t> result(records.size() * sizeof(Record) / sizeof(int32_t));
    std::memcpy(result.data(), records.data(), result.size() * sizeof(int32_t));
    return result;
  }

  std::vector<Item> items;
  std::vector<Listed> listing;
};

// The queries that an item has at most, as the grid counts items: of one head, without blocks and with many queries.
size_t queriesOfItem(const ProgramKernel &kernel, const Spec &spec) {
  constexpr int64_t kQueries = int64_t{1} << 20;
  const int64_t items =
      kernel.programs({{"batch", 0}, {"kv_heads", 1}, {"max_seqlen_k", 0}, {"max_tokens_q", kQueries}});
  return static_cast<size_t>(kQueries * spec.selCount / std::max<int64_t>(items, 1));
}

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

struct KeysCase {
  DType dtype;
  int32_t group, qkDim, vDim, selBlock;
  Placing placing = Placing::kDense;
};

class KeyGradients : public GradientTest {
protected:
  static ProgramKernel::Pairs fixedOf(const GradientProblem &problem) {
    ProgramKernel::Pairs fixed = problem.fixed();
    fixed["sel_block"] = std::to_string(problem.attention.spec.selBlock);
    fixed["sel_count"] = std::to_string(problem.attention.spec.selCount);
    return fixed;
  }

  static Spec specFor(const KeysCase &c) {
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

  void check(const KeysCase &c, const std::string &warps = "") {
    SCOPED_TRACE(std::string(dtypeName(c.dtype)) + " blocks of " + std::to_string(c.selBlock) + " " +
                 std::string(placingName(c.placing)) + " warps " + warps);
    // No block lies in two pages.
    GradientProblem problem(specFor(c), c.placing, lengthsOf(c.placing), 2 * c.selBlock, random);
    problem.attention.blockLists = drawLists(problem, random);
    // Scores of a hundred have errors that the tolerance of fp32 leaves no room for.
    if (c.dtype != DType::kF32)
      problem.lowerScores();
    problem.poisonLastKeys();

    // Of the gated output, the gradient of which is drawn.
    const reference::AttentionResult result = reference::attend(problem.attention);
    std::vector<double> gatedGradient = problem.gradientOfOut();
    std::vector<float> gates, delta;
    std::normal_distribution<float> normal;
    for (size_t row = 0; row < result.lse.size(); ++row) {
      gates.push_back(row % 7 == 0 ? 0 : normal(random));
      double sum = 0;
      for (size_t i = row * size_t(c.vDim); i < (row + 1) * size_t(c.vDim); ++i) {
        sum += gatedGradient[i] * result.out[i];
        gatedGradient[i] *= gates.back();
      }
      delta.push_back(static_cast<float>(sum));
    }
    const reference::AttentionGradient wanted = reference::differentiate(problem.attention, result, gatedGradient);

    const Spec &spec = problem.attention.spec;
    const ProgramKernel kernel(*device, "sel_bwd_keys", Operator::kSel, fixedOf(problem),
                               warps.empty() ? ProgramKernel::Pairs() : ProgramKernel::Pairs{{"warps", warps}});
    const InverseLists inverse(problem, queriesOfItem(kernel, spec));
    const auto parts = static_cast<int64_t>(inverse.items.size()), programs = kernel.programs(problem.gridSizes());
    ASSERT_LE(parts, programs);
    std::vector<InverseLists::Item> items = inverse.items;
    items.resize(static_cast<size_t>(programs)); // the further ones are empty

    const DeviceArray q = problem.array(*device, problem.q), dOut = problem.array(*device, problem.dOut),
                      lse = problem.rows(*device, floats(result.lse)), deltas = problem.rows(*device, delta),
                      gate = problem.rows(*device, gates),
                      itemTable = DeviceArray::of(*device, InverseLists::words(items), {programs, 6}),
                      listing = DeviceArray::of(*device, InverseLists::words(inverse.listing),
                                                {static_cast<int64_t>(inverse.listing.size()), 2}),
                      dqSlots = untouched(problem.queryShape({spec.queryHeads, spec.selCount, c.qkDim})),
                      dkParts = untouched({parts, c.selBlock, c.qkDim}),
                      dvParts = untouched({parts, c.selBlock, c.vDim});
    Arguments arguments = problem.arguments(*device);
    for (const auto &[name, array] :
         {std::pair("q", &q), {"d_out", &dOut}, {"dq_slots", &dqSlots}, {"dk_parts", &dkParts}, {"dv_parts", &dvParts}})
      array->bind(arguments, name);
    for (const auto &[name, array] :
         {std::pair("lse", &lse), {"delta", &deltas}, {"gate", &gate}, {"items", &itemTable}, {"listing", &listing}})
      array->bind(arguments, name, /*columnsToo=*/true);
    kernel.run(arguments, problem.gridSizes());

    checkQueries(problem, dqSlots.read<float>(), wanted);
    for (const bool isValue : {false, true})
      checkKeys(problem, inverse, (isValue ? dvParts : dkParts).read<float>(), wanted, isValue);
  }

  // The kernel that follows adds the slots of a query in their order.
  static void checkQueries(const GradientProblem &problem, const std::vector<float> &slots,
                           const reference::AttentionGradient &wanted) {
    const Spec &spec = problem.attention.spec;
    const auto columns = static_cast<size_t>(spec.qkDim), count = static_cast<size_t>(spec.selCount);
    std::vector<double> dq(wanted.q.size(), 0);
    for (size_t row = 0; row < wanted.q.size() / columns; ++row)
      for (size_t slot = 0; slot < count; ++slot) {
        const bool isListed = problem.attention.blockLists.at(int64_t(row) / spec.queryHeads,
                                                              int64_t(row) % spec.queryHeads / spec.group())[slot] >= 0;
        for (size_t column = 0; column < columns; ++column) {
          const float element = slots[(row * count + slot) * columns + column];
          ASSERT_EQ(std::isnan(element), !isListed) << "row " << row << " slot " << slot << " column " << column;
          dq[row * columns + column] += isListed ? element : 0;
        }
      }
    expectClose(dq, wanted.q, spec.dtype, "dQ");
  }

  // And the parts of a block in the order of its items.
  static void checkKeys(const GradientProblem &problem, const InverseLists &inverse, const std::vector<float> &read,
                        const reference::AttentionGradient &wanted, bool isValue) {
    const Spec &spec = problem.attention.spec;
    const int64_t columns = isValue ? spec.vDim : spec.qkDim;
    std::vector<double> all;
    std::vector<size_t> begins;
    for (const reference::KeyGradient &keys : wanted.keys) {
      begins.push_back(all.size());
      all.insert(all.end(), (isValue ? keys.v : keys.k).begin(), (isValue ? keys.v : keys.k).end());
    }
    std::vector<double> sums(all.size(), 0);
    for (const InverseLists::Item &item : inverse.items)
      for (int64_t place = 0; place < spec.selBlock; ++place) {
        const int64_t key = int64_t{item.block} * spec.selBlock + place;
        const float *row = &read[size_t((int64_t{item.part} * spec.selBlock + place) * columns)];
        if (key >= problem.sequences()[size_t(item.sequence)].keys) {
          ASSERT_TRUE(std::isnan(row[0])) << "a key that does not exist was written";
          continue;
        }
        double *sum = &sums[begins[size_t(item.sequence)] + size_t((key * kKvHeads + item.kvHead) * columns)];
        for (int64_t column = 0; column < columns; ++column)
          sum[column] += row[column];
      }
    expectClose(sums, all, spec.dtype, isValue ? "dV" : "dK");
  }

  std::mt19937_64 random{freshSeed()};
};

TEST_F(KeyGradients, OfSelectedAttention) {
  for (const KeysCase &c : {KeysCase{DType::kBf16, 2, 64, 64, 64},
                            {DType::kF16, 3, 40, 24, 12},
                            {DType::kF32, 1, 24, 16, 16},
                            {DType::kF16, 3, 40, 24, 12, Placing::kPacked},
                            {DType::kBf16, 2, 64, 64, 64, Placing::kPaged}})
    check(c);
}

TEST_F(KeyGradients, OfEachNumberOfWarps) {
  const KeysCase c{DType::kBf16, 2, 64, 64, 64};
  const GradientProblem problem(specFor(c), c.placing, lengthsOf(c.placing), 2 * c.selBlock, random);
  const std::vector<std::string> warps =
      ProgramKernel::valuesOf(*device, "sel_bwd_keys", Operator::kSel, fixedOf(problem), "warps");
  EXPECT_EQ(warps.size(), isTestDeviceCuda() ? 3u : 1u); // 64 keys are split over at most four warps
  for (const std::string &number : warps)
    check(c, number);
}

} // namespace
} // namespace nsa::test
