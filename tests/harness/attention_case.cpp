#include "tests/harness/attention_case.h"

#include <algorithm>
#include <cstdlib>

namespace nsa::test {

Spec AttentionCase::spec() const {
  Spec spec;
  spec.op = op;
  spec.dtype = dtype;
  spec.layout = layout;
  spec.queryHeads = kvHeads * group;
  spec.kvHeads = kvHeads;
  spec.qkDim = qkDim;
  spec.vDim = vDim;
  spec.window = window;
  spec.scale = scale;
  return spec;
}

Maxima AttentionCase::maxima() const {
  Maxima maxima;
  maxima.batch = static_cast<int64_t>(sequences.size());
  for (const Lengths &sequence : sequences) {
    maxima.seqlenQ = std::max(maxima.seqlenQ, sequence.queries);
    maxima.seqlenK = std::max(maxima.seqlenK, sequence.keys);
  }
  maxima.tokensQ = queryRows() + unusedRows;
  return maxima;
}

int64_t AttentionCase::queryRows() const {
  int64_t rows = 0;
  for (const Lengths &sequence : sequences)
    rows += sequence.queries;
  return rows;
}

int64_t AttentionCase::keyRows() const {
  int64_t rows = 0;
  for (const Lengths &sequence : sequences)
    rows += sequence.keys;
  return rows;
}

double AttentionCase::pairs() const {
  double pairs = 0;
  for (const Lengths &sequence : sequences)
    for (int64_t query = 0; query < sequence.queries; ++query) {
      const int64_t visible = sequence.keys - sequence.queries + query + 1;
      pairs += static_cast<double>(op == Operator::kWindow ? std::min<int64_t>(visible, window) : visible);
    }
  return pairs;
}

std::string AttentionCase::text() const {
  constexpr const char *kPlacements[] = {"time-major", "head-major", "gaps"};
  std::string text = name + ": " + std::string(operatorName(op)) + " " + std::string(dtypeName(dtype)) + " " +
                     std::string(layoutName(layout)) + " kv_heads " + std::to_string(kvHeads) + " group " +
                     std::to_string(group) + " qk_dim " + std::to_string(qkDim) + " v_dim " + std::to_string(vDim) +
                     " window " + std::to_string(window) + " scale " + std::to_string(scale) + " " +
                     kPlacements[static_cast<int>(placement)] + " unused rows " + std::to_string(unusedRows) + " T_q/T";
  for (const Lengths &sequence : sequences)
    text += " " + std::to_string(sequence.queries) + "/" + std::to_string(sequence.keys);
  return text;
}

AttentionCase plainCase(std::string name) {
  return {.name = std::move(name),
          .op = Operator::kWindow,
          .dtype = DType::kBf16,
          .kvHeads = 2,
          .group = 4,
          .qkDim = 64,
          .vDim = 64,
          .window = 100,
          .sequences = {{150, 150}}};
}

std::vector<AttentionCase> attentionTable() {
  using enum Placement;
  constexpr Operator kWindow = Operator::kWindow, kDense = Operator::kDense;
  std::vector<AttentionCase> table;
  auto add = [&](AttentionCase value) { table.push_back(std::move(value)); };

  // Types, both operators, both layouts, one length that is a multiple of nothing.
  for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    const std::string type(dtypeName(dtype));
    add({.name = "window_" + type,
         .op = kWindow,
         .dtype = dtype,
         .kvHeads = 2,
         .group = 4,
         .qkDim = 64,
         .vDim = 64,
         .window = 50,
         .sequences = {{131, 131}, {131, 131}}});
    add({.name = "dense_" + type,
         .op = kDense,
         .dtype = dtype,
         .kvHeads = 2,
         .group = 4,
         .qkDim = 64,
         .vDim = 64,
         .sequences = {{131, 131}, {131, 131}}});
    add({.name = "packed_" + type,
         .op = kWindow,
         .dtype = dtype,
         .layout = Layout::kPacked,
         .kvHeads = 2,
         .group = 2,
         .qkDim = 32,
         .vDim = 48,
         .window = 33,
         .sequences = {{57, 57}, {0, 0}, {1, 90}, {0, 23}, {70, 101}, {0, 0}},
         .unusedRows = 5});
  }
  // Heads per group.
  for (int32_t group : {1, 2, 3, 4, 6, 8, 16, 32, 64, 128})
    add({.name = "group_" + std::to_string(group),
         .op = kWindow,
         .dtype = DType::kBf16,
         .kvHeads = group > 16 ? 1 : 2,
         .group = group,
         .qkDim = 32,
         .vDim = 32,
         .window = 19,
         .sequences = {{45, 61}}});
  // Head sizes: odd ones, unequal ones, the paper's, the largest.
  const int32_t dims[][2] = {{1, 1},     {5, 5},     {33, 33}, {72, 80}, {80, 72}, {192, 128},
                             {128, 192}, {256, 256}, {1, 64},  {64, 1},  {5, 33}};
  for (const auto &[qkDim, vDim] : dims)
    for (DType dtype : {DType::kBf16, DType::kF32})
      add({.name = "dims_" + std::to_string(qkDim) + "_" + std::to_string(vDim) + "_" + std::string(dtypeName(dtype)),
           .op = kDense,
           .dtype = dtype,
           .kvHeads = 2,
           .group = 2,
           .qkDim = qkDim,
           .vDim = vDim,
           .sequences = {{53, 67}}});
  // Heads of whole pieces of 16 bytes, in both types of 16 bits, and windows that end within tiles of them.
  for (int32_t dim : {40, 72, 96, 192, 256})
    for (DType dtype : {DType::kBf16, DType::kF16})
      add({.name = "heads_of_" + std::to_string(dim) + "_" + std::string(dtypeName(dtype)),
           .op = kWindow,
           .dtype = dtype,
           .kvHeads = 2,
           .group = 4,
           .qkDim = dim,
           .vDim = dim,
           .window = 90,
           .sequences = {{140, 190}, {140, 190}}});
  // Windows: one token, a few, just below and at a tile's width, the whole sequence and beyond.
  for (int32_t window : {1, 2, 7, 31, 32, 33, 64, 65, 99, 100, 101, 5000})
    add({.name = "window_of_" + std::to_string(window),
         .op = kWindow,
         .dtype = DType::kF16,
         .kvHeads = 1,
         .group = 3,
         .qkDim = 24,
         .vDim = 40,
         .window = window,
         .sequences = {{100, 100}}});
  // Cached prefixes: few queries behind many keys.
  for (int64_t queries : {1, 2, 17, 64, 129})
    add({.name = "prefix_" + std::to_string(queries),
         .op = kDense,
         .dtype = DType::kBf16,
         .kvHeads = 2,
         .group = 4,
         .qkDim = 64,
         .vDim = 64,
         .sequences = {{queries, 211}, {queries, 211}}});
  // Places in memory.
  for (Placement placement : {kHeadMajor, kGaps})
    for (Layout layout : {Layout::kDense, Layout::kPacked})
      for (int32_t dim : {40, 64})
        add({.name = std::string(placement == kGaps ? "gaps_" : "head_major_") + std::string(layoutName(layout)) + "_" +
                     std::to_string(dim),
             .op = kWindow,
             .dtype = DType::kBf16,
             .layout = layout,
             .kvHeads = 3,
             .group = 2,
             .qkDim = dim,
             .vDim = dim,
             .window = 40,
             .sequences = {{70, 83}, {70, 83}},
             .placement = placement});
  // A scale other than the default.
  add({.name = "scale",
       .op = kDense,
       .dtype = DType::kF32,
       .kvHeads = 1,
       .group = 2,
       .qkDim = 32,
       .vDim = 16,
       .scale = 0.3f,
       .sequences = {{40, 40}}});
  return table;
}

AttentionCase drawAttentionCase(std::mt19937_64 &random, const DrawLimits &limits) {
  auto pick = [&](const auto &values) { return values[random() % std::size(values)]; };
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  constexpr int32_t kGroups[] = {1, 2, 3, 4, 6, 8, 16, 32, 64, 128};
  constexpr int32_t kDims[] = {8, 16, 32, 40, 64, 64, 80, 96, 128, 128, 192, 256};
  AttentionCase drawn;
  drawn.name = "drawn";
  drawn.op = random() % 2 ? Operator::kWindow : Operator::kDense;
  drawn.dtype = static_cast<DType>(random() % 3);
  drawn.layout = random() % 2 ? Layout::kPacked : Layout::kDense;
  drawn.group = pick(kGroups);
  drawn.kvHeads = static_cast<int32_t>(between(1, drawn.group > 16 ? 1 : 3));
  drawn.qkDim = random() % 5 ? pick(kDims) : static_cast<int32_t>(between(1, 256));
  drawn.vDim = random() % 2 ? drawn.qkDim : random() % 5 ? pick(kDims) : static_cast<int32_t>(between(1, 256));
  drawn.window = static_cast<int32_t>(random() % 4 ? between(1, 600) : between(1, 2 * limits.maxTokens));
  drawn.scale = random() % 4 ? 0.0f : 0.05f + 0.1f * static_cast<float>(random() % 4);
  drawn.placement =
      pick((Placement[]){Placement::kTimeMajor, Placement::kTimeMajor, Placement::kHeadMajor, Placement::kGaps});
  drawn.unusedRows = drawn.layout == Layout::kPacked ? between(0, 9) : 0;
  const int64_t sequences = between(1, drawn.layout == Layout::kPacked ? 6 : 3);
  auto drawLengths = [&]() -> Lengths {
    const int64_t keys = between(1, limits.maxTokens);
    switch (random() % 4) {
    case 0:
      return {between(1, std::min<int64_t>(keys, 20)), keys}; // the end of a cached prefix
    case 1:
      return {between(1, keys), keys};
    default:
      return {keys, keys};
    }
  };
  const Lengths common = drawLengths();
  for (int64_t s = 0; s < sequences; ++s)
    drawn.sequences.push_back(drawn.layout == Layout::kDense ? common
                              : random() % 5                 ? drawLengths()
                                                             : Lengths{0, random() % 2 ? 0 : between(1, 40)});

  // Shorten until the reference can afford it; the newest sequences go first.
  auto work = [&] { return drawn.pairs() * drawn.kvHeads * drawn.group * (drawn.qkDim + drawn.vDim); };
  while (work() > limits.maxPairWork) {
    if (drawn.sequences.size() > 1) {
      drawn.sequences.pop_back();
      continue;
    }
    Lengths &only = drawn.sequences.front();
    only.keys = std::max<int64_t>(1, only.keys * 2 / 3);
    only.queries = std::min(only.queries, only.keys);
  }
  return drawn;
}

int64_t maxTokens(int64_t otherwise) {
  const char *limit = std::getenv("NSA_TEST_MAX_TOKENS");
  return limit ? std::min<int64_t>(otherwise, std::max(1L, std::strtol(limit, nullptr, 10))) : otherwise;
}

} // namespace nsa::test
