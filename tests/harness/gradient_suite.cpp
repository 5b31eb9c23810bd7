// The kernels of gradients in tests/programs on every device, against the fp64 reference. NaN lies where no weight
// reaches: in a key that queries of its tile and of its block do not see.
#include "tests/harness/program_kernel.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"
#include "tools/reference/attention_gradient.h"
#include "tools/reference/elements.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

using reference::OwnedTensor;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kBatch = 2, kKvHeads = 2;

struct Lengths {
  int64_t queries, keys;
};

// A problem whose sequences lie side by side, its inputs, and the gradient of its output.
struct Problem {
  Problem(const Spec &spec, const Lengths &lengths, std::mt19937_64 &random) : lengths(lengths) {
    attention.spec = spec;
    attention.sequences = reference::denseSequences(kBatch, lengths.queries, lengths.keys);
    keyTimes = spec.op == Operator::kCmp ? spec.compressedBlocks(lengths.keys) : lengths.keys;
    q = draw(random, lengths.queries, spec.queryHeads, spec.qkDim);
    dOut = draw(random, lengths.queries, spec.queryHeads, spec.vDim);
    k = draw(random, keyTimes, spec.kvHeads, spec.qkDim);
    v = draw(random, keyTimes, spec.kvHeads, spec.vDim);
    attention.q = q.view();
    attention.k = k.view();
    attention.v = v.view();
  }

  OwnedTensor draw(std::mt19937_64 &random, int64_t times, int64_t heads, int64_t columns) const {
    const DType dtype = attention.spec.dtype;
    OwnedTensor tensor = OwnedTensor::make(dtype, kBatch, times, heads, columns);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < kBatch * times * heads * columns; ++i)
      reference::storeElement(dtype, tensor.bytes.data(), i, normal(random));
    return tensor;
  }

  // Makes all scores of the first query of each sequence so small that what stands in the place of a key that does not
  // exist, whose score is 0, has an infinite weight.
  void lowerScores() {
    const auto fillFirstColumn = [](OwnedTensor &tensor, int64_t step, double value) {
      for (int64_t time = 0; time < tensor.batches * tensor.times; time += step)
        for (int64_t head = 0; head < tensor.heads; ++head)
          reference::storeElement(tensor.dtype, tensor.bytes.data(), (time * tensor.heads + head) * tensor.columns,
                                  value);
    };
    fillFirstColumn(k, 1, 4);
    fillFirstColumn(q, lengths.queries, -28 * std::sqrt(double(attention.spec.qkDim)));
  }

  // The last key of each sequence and its value.
  void poisonLastKey() {
    for (OwnedTensor *tensor : {&k, &v})
      for (int64_t batch = 0; batch < kBatch; ++batch)
        for (int64_t i = 0; i < tensor->heads * tensor->columns; ++i)
          reference::storeElement(tensor->dtype, tensor->bytes.data(),
                                  ((batch + 1) * keyTimes - 1) * tensor->heads * tensor->columns + i, kNan);
  }

  std::vector<double> gradientOfOut() const {
    return reference::readRows(attention.sequences, dOut.view(), attention.spec.queryHeads, attention.spec.vDim);
  }

  Lengths lengths;
  int64_t keyTimes = 0;
  OwnedTensor q, k, v, dOut;
  reference::Attention attention;
};

std::vector<float> floats(const std::vector<double> &values) { return {values.begin(), values.end()}; }

// The error relative to the size of what is wanted. What is wanted as NaN has to be NaN.
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
  EXPECT_GT(size, 0) << name;
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

  static ProgramKernel::Pairs fixedOf(const Spec &spec) {
    return {{"dtype", std::string(dtypeName(spec.dtype))},
            {"qk_dim", std::to_string(spec.qkDim)},
            {"v_dim", std::to_string(spec.vDim)},
            {"group", std::to_string(spec.group())},
            {"packed", "0"},
            {"page_size", "0"}};
  }

  DeviceArray arrayOf(const OwnedTensor &tensor) {
    return {*device,
            tensor.bytes.data(),
            tensor.bytes.size(),
            static_cast<size_t>(dtypeBytes(tensor.dtype)),
            {tensor.batches, tensor.times, tensor.heads, tensor.columns}};
  }
  // One number for each query and head.
  DeviceArray rowsOf(const std::vector<float> &values, const Problem &problem) {
    return DeviceArray::of(*device, values, {kBatch, problem.lengths.queries, problem.attention.spec.queryHeads});
  }

  static Arguments scalarsOf(const Problem &problem) {
    const double scale = reference::softmaxScale(problem.attention.spec);
    return Arguments()
        .i32("seqlen_q", static_cast<int32_t>(problem.lengths.queries))
        .i32("seqlen_k", static_cast<int32_t>(problem.lengths.keys))
        .i32("query_begin", 0)
        .i32("query_end", std::numeric_limits<int32_t>::max())
        .i32("window", problem.attention.spec.window)
        .f32("scale", static_cast<float>(scale))
        .f32("scale_log2", static_cast<float>(scale / std::log(2.0)));
  }

  std::unique_ptr<Device> device;
};

TEST_F(GradientTest, QueriesOfDenseWindowAndCompressedAttention) {
  std::mt19937_64 random(freshSeed());
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp})
    for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
      SCOPED_TRACE(std::string(operatorName(op)) + " " + std::string(dtypeName(dtype)));
      Spec spec = specOf(op, dtype, 3, 40, 24);
      spec.window = 13;
      spec.cmpBlock = 8;
      spec.cmpStride = 4;
      Problem problem(spec, {37, 61}, random);
      problem.poisonLastKey();
      const reference::AttentionResult result = reference::attend(problem.attention);
      const reference::AttentionGradient wanted =
          reference::differentiate(problem.attention, result, problem.gradientOfOut());

      ProgramKernel::Pairs fixed = fixedOf(spec);
      if (op == Operator::kCmp) {
        fixed["cmp_block"] = std::to_string(spec.cmpBlock);
        fixed["cmp_stride"] = std::to_string(spec.cmpStride);
      }
      const ProgramKernel kernel(*device, "attention_dq", op, fixed);
      const DeviceArray q = arrayOf(problem.q), k = arrayOf(problem.k), v = arrayOf(problem.v),
                        dOut = arrayOf(problem.dOut), lse = rowsOf(floats(result.lse), problem),
                        delta = rowsOf(floats(wanted.delta), problem),
                        dq = DeviceArray::of(*device, std::vector<float>(wanted.q.size(), kNan),
                                             {kBatch, problem.lengths.queries, spec.queryHeads, spec.qkDim});
      Arguments arguments = scalarsOf(problem);
      for (const auto &[name, array] : {std::pair("q", &q), {"k", &k}, {"v", &v}, {"d_out", &dOut}, {"d_q", &dq}})
        array->bind(arguments, name);
      for (const auto &[name, array] : {std::pair("lse", &lse), {"delta", &delta}})
        array->bind(arguments, name, /*columnsToo=*/true);
      kernel.run(arguments, {{"batch", kBatch}, {"kv_heads", kKvHeads}, {"max_seqlen_q", problem.lengths.queries}});
      const std::vector<float> got = dq.read<float>();
      expectClose({got.begin(), got.end()}, wanted.q, dtype, "dQ");
    }
}

// Which queries list each block, as the kernel takes it: items of at most kItemQueries queries of one block, and where
// they lie in the listing.
struct InverseLists {
  static constexpr size_t kItemQueries = 256;
  struct Item {
    int32_t sequence, kvHead, block, first, past, part;
  };
  struct Listed {
    int32_t query, slot;
  };

  explicit InverseLists(const Problem &problem) {
    const Spec &spec = problem.attention.spec;
    for (int64_t s = 0; s < kBatch; ++s)
      for (int64_t kvHead = 0; kvHead < kKvHeads; ++kvHead)
        for (int64_t block = 0; block * spec.selBlock < problem.lengths.keys; ++block) {
          const size_t begin = listing.size();
          for (int64_t query = 0; query < problem.lengths.queries; ++query) {
            const auto list = problem.attention.blockLists.at(s * problem.lengths.queries + query, kvHead);
            if (const auto found = std::ranges::find(list, block); found != list.end())
              listing.push_back({static_cast<int32_t>(query), static_cast<int32_t>(found - list.begin())});
          }
          for (size_t first = begin; first < listing.size(); first += kItemQueries)
            items.push_back({static_cast<int32_t>(s), static_cast<int32_t>(kvHead), static_cast<int32_t>(block),
                             static_cast<int32_t>(first),
                             static_cast<int32_t>(std::min(first + kItemQueries, listing.size())),
                             static_cast<int32_t>(items.size())});
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

// Ascending lists that begin with block 0 and end with the query's own block. The last query lists block 0 alone, so no
// query sees the last key.
reference::BlockLists drawLists(const Problem &problem, std::mt19937_64 &random) {
  const Spec &spec = problem.attention.spec;
  auto lists = reference::BlockLists::make(kBatch * problem.lengths.queries, kKvHeads, spec.selCount);
  for (int64_t row = 0; row < kBatch * problem.lengths.queries; ++row)
    for (int64_t kvHead = 0; kvHead < kKvHeads; ++kvHead) {
      const int64_t query = row % problem.lengths.queries;
      const int64_t own = (problem.lengths.keys - problem.lengths.queries + query) / spec.selBlock;
      std::vector<int32_t> list = {0};
      for (int64_t block = 1; block < own && list.size() + 1 < static_cast<size_t>(spec.selCount); ++block)
        if (random() % 3 == 0)
          list.push_back(static_cast<int32_t>(block));
      if (own > 0)
        list.push_back(static_cast<int32_t>(own));
      if (query + 1 == problem.lengths.queries)
        list = {0};
      std::ranges::copy(list, lists.at(row, kvHead).begin());
    }
  return lists;
}

struct KeysCase {
  DType dtype;
  int32_t group, qkDim, vDim, selBlock;
};

TEST_F(GradientTest, KeysOfSelectedAttention) {
  std::mt19937_64 random(freshSeed());
  for (const KeysCase &c :
       {KeysCase{DType::kBf16, 2, 64, 64, 64}, {DType::kF16, 3, 40, 24, 12}, {DType::kF32, 1, 24, 16, 16}}) {
    SCOPED_TRACE(std::string(dtypeName(c.dtype)) + " blocks of " + std::to_string(c.selBlock));
    Spec spec = specOf(Operator::kSel, c.dtype, c.group, c.qkDim, c.vDim);
    spec.selBlock = c.selBlock;
    spec.selCount = 5;
    Problem problem(spec, {290, 333}, random);
    problem.attention.blockLists = drawLists(problem, random);
    // Scores of a hundred have errors that the tolerance of fp32 leaves no room for.
    if (c.dtype != DType::kF32)
      problem.lowerScores();
    problem.poisonLastKey();
    const InverseLists inverse(problem);

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

    ProgramKernel::Pairs fixed = fixedOf(spec);
    fixed["sel_block"] = std::to_string(spec.selBlock);
    fixed["sel_count"] = std::to_string(spec.selCount);
    const ProgramKernel kernel(*device, "sel_bwd_keys", Operator::kSel, fixed);
    const std::map<std::string, int64_t> sizes = {{"batch", kBatch},
                                                  {"kv_heads", kKvHeads},
                                                  {"max_seqlen_k", problem.lengths.keys},
                                                  {"max_tokens_q", kBatch * problem.lengths.queries}};
    const auto parts = static_cast<int64_t>(inverse.items.size()), programs = kernel.programs(sizes);
    ASSERT_LE(parts, programs);
    std::vector<InverseLists::Item> items = inverse.items;
    items.resize(static_cast<size_t>(programs)); // the further ones are empty

    const auto untouched = [&](std::vector<int64_t> shape) {
      const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
      return DeviceArray::of(*device, std::vector<float>(static_cast<size_t>(count), kNan), std::move(shape));
    };
    const DeviceArray q = arrayOf(problem.q), k = arrayOf(problem.k), v = arrayOf(problem.v),
                      dOut = arrayOf(problem.dOut), lse = rowsOf(floats(result.lse), problem),
                      deltas = rowsOf(delta, problem), gate = rowsOf(gates, problem),
                      itemTable = DeviceArray::of(*device, InverseLists::words(items), {programs, 6}),
                      listing = DeviceArray::of(*device, InverseLists::words(inverse.listing),
                                                {static_cast<int64_t>(inverse.listing.size()), 2}),
                      dqSlots = untouched({kBatch, problem.lengths.queries, spec.queryHeads, spec.selCount, c.qkDim}),
                      dkParts = untouched({parts, c.selBlock, c.qkDim}),
                      dvParts = untouched({parts, c.selBlock, c.vDim});
    Arguments arguments = scalarsOf(problem);
    for (const auto &[name, array] : {std::pair("q", &q),
                                      {"k", &k},
                                      {"v", &v},
                                      {"d_out", &dOut},
                                      {"dq_slots", &dqSlots},
                                      {"dk_parts", &dkParts},
                                      {"dv_parts", &dvParts}})
      array->bind(arguments, name);
    for (const auto &[name, array] :
         {std::pair("lse", &lse), {"delta", &deltas}, {"gate", &gate}, {"items", &itemTable}, {"listing", &listing}})
      array->bind(arguments, name, /*columnsToo=*/true);
    kernel.run(arguments, sizes);

    // The kernel that follows adds the slots of a query in their order.
    const std::vector<float> slots = dqSlots.read<float>();
    std::vector<double> dq(wanted.q.size(), 0);
    for (size_t row = 0; row < result.lse.size(); ++row)
      for (size_t slot = 0; slot < size_t(spec.selCount); ++slot) {
        const bool isListed = problem.attention.blockLists.at(int64_t(row) / spec.queryHeads,
                                                              int64_t(row) % spec.queryHeads / c.group)[slot] >= 0;
        for (size_t column = 0; column < size_t(c.qkDim); ++column) {
          const float element = slots[(row * size_t(spec.selCount) + slot) * size_t(c.qkDim) + column];
          ASSERT_EQ(std::isnan(element), !isListed) << "row " << row << " slot " << slot << " column " << column;
          dq[row * size_t(c.qkDim) + column] += isListed ? element : 0;
        }
      }
    expectClose(dq, wanted.q, c.dtype, "dQ");

    // And the parts of a block in the order of its items.
    for (const bool isValue : {false, true}) {
      const int64_t columns = isValue ? c.vDim : c.qkDim;
      const std::vector<float> read = (isValue ? dvParts : dkParts).read<float>();
      std::vector<double> sums, all;
      for (const reference::KeyGradient &keys : wanted.keys)
        all.insert(all.end(), (isValue ? keys.v : keys.k).begin(), (isValue ? keys.v : keys.k).end());
      sums.assign(all.size(), 0);
      for (const InverseLists::Item &item : inverse.items)
        for (int64_t place = 0; place < c.selBlock; ++place) {
          const int64_t key = int64_t{item.block} * c.selBlock + place;
          const float *row = &read[size_t((int64_t{item.part} * c.selBlock + place) * columns)];
          if (key >= problem.lengths.keys) {
            ASSERT_TRUE(std::isnan(row[0])) << "a key that does not exist was written";
            continue;
          }
          double *sum =
              &sums[size_t(((item.sequence * problem.lengths.keys + key) * kKvHeads + item.kvHead) * columns)];
          for (int64_t column = 0; column < columns; ++column)
            sum[column] += row[column];
        }
      expectClose(sums, all, c.dtype, isValue ? "dV" : "dK");
    }
  }
}

} // namespace
} // namespace nsa::test
