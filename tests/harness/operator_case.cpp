#include "tests/harness/operator_case.h"

#include "tools/reference/elements.h"
#include "tools/reference/gradient/compression_gradient.h"
#include "tools/support/forward_pass.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>

namespace nsa::test {
namespace {

// The blocks, strides and group of the paper, with heads and a window that suit a test.
void setPaperGeometry(Spec &spec) {
  spec.cmpBlock = 32;
  spec.cmpStride = 16;
  spec.selBlock = 64;
  spec.selCount = 4;
  spec.queryHeads = 16;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  spec.window = 100;
}

constexpr Operator kOperators[] = {
    Operator::kCompress,   Operator::kCmp,         Operator::kSelect,    Operator::kSel,
    Operator::kCombine,    Operator::kNsa,         Operator::kRotate,    Operator::kRotateBwd,
    Operator::kCombineBwd, Operator::kDenseBwd,    Operator::kWindowBwd, Operator::kCmpBwd,
    Operator::kInvert,     Operator::kCompressBwd, Operator::kSelBwd,    Operator::kNsaBwd};
constexpr DType kTypes[] = {DType::kBf16, DType::kF16, DType::kF32};

int64_t between(std::mt19937_64 &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

template <typename T, size_t N> T oneOf(std::mt19937_64 &random, const T (&values)[N]) { return values[random() % N]; }

// What the reference has to compute for a case.
double workOf(const Spec &spec, const tools::SequenceLengths &lengths) {
  double pairs = 0, tokens = 0;
  for (size_t i = 0; i < lengths.q.size(); ++i) {
    pairs += static_cast<double>(lengths.q[i]) * static_cast<double>(lengths.k[i]);
    tokens += static_cast<double>(lengths.k[i]);
  }
  double weights = 0;
  if (spec.cmpKind != CmpKind::kMean) {
    const double inner = double(spec.qkDim) * spec.qkDim + double(spec.vDim) * spec.vDim;
    weights = tokens / spec.cmpStride * spec.cmpBlock * spec.kvHeads *
              (spec.cmpKind == CmpKind::kMlp ? spec.mlpHidden * (spec.qkDim + spec.vDim) : inner);
  }
  return pairs * spec.queryHeads * (spec.qkDim + spec.vDim) + weights;
}

} // namespace

Spec smallSpec(Operator op, DType dtype) {
  Spec spec;
  spec.op = op;
  spec.dtype = dtype;
  spec.queryHeads = 8;
  spec.kvHeads = 2;
  spec.qkDim = 48;
  spec.vDim = 32;
  spec.window = 40;
  spec.cmpBlock = 16;
  spec.cmpStride = 8;
  spec.selBlock = 16;
  spec.selCount = 5;
  return spec;
}

std::string OperatorCase::text() const {
  auto list = [](const std::vector<int64_t> &values) {
    std::string text;
    for (int64_t value : values)
      text += (text.empty() ? "" : ",") + std::to_string(value);
    return text;
  };
  auto number = [](const char *what, int64_t value) { return std::string(" ") + what + " " + std::to_string(value); };
  return std::string(operatorName(spec.op)) + " " + std::string(dtypeName(spec.dtype)) + " " +
         std::string(layoutName(spec.layout)) + number("heads", spec.queryHeads) + "/" + std::to_string(spec.kvHeads) +
         number("dims", spec.qkDim) + "/" + std::to_string(spec.vDim) + number("l", spec.cmpBlock) +
         number("d", spec.cmpStride) + " " + std::string(cmpKindName(spec.cmpKind)) + number("hidden", spec.mlpHidden) +
         number("l'", spec.selBlock) + number("n", spec.selCount) + number("init", spec.initBlocks) +
         number("local", spec.localBlocks) + number("w", spec.window) + " gate " + std::string(gateName(spec.gate)) +
         (spec.gatePerGroup ? " per group" : "") + number("branches", spec.branches) +
         (fieldsOf(spec.op) & kRotary
              ? number("turning", spec.turningDims()) + " " + std::string(rotaryStyleName(spec.rotaryStyle)) +
                    number("base", static_cast<int64_t>(spec.rotaryBase))
              : "") +
         " queries " + list(lengths.q) + " keys " + list(lengths.k) +
         (keyOffsets.empty() ? "" : " from " + list({keyOffsets.begin(), keyOffsets.end()}));
}

namespace {

// Empties a part of the lists that the call brings. Others get the last block of the sequence, which their query does
// not attend if it lies behind the query's own block.
void varyLists(tools::OperatorInputs &inputs, uint64_t seed) {
  const auto found = inputs.tensors.find(TensorName::kBlockList);
  if (found == inputs.tensors.end())
    return;
  const Spec &spec = inputs.spec;
  const bool isDense = spec.layout == Layout::kDense;
  const int64_t times = isDense ? found->second.shape[1] : 0;
  std::mt19937_64 random(seed);
  for (const reference::Sequence &sequence : tools::sequencesOf(inputs))
    for (int64_t row = 0; row < sequence.queries * spec.kvHeads; ++row) {
      const int64_t first = (sequence.batch * times + sequence.queryBegin) * spec.kvHeads + row;
      const std::span list(found->second.integers().data() + first * spec.selCount, static_cast<size_t>(spec.selCount));
      const uint64_t kind = random() % 8;
      const auto last = static_cast<int32_t>((sequence.keys - 1) / spec.selBlock);
      const auto end = std::ranges::find(list, -1);
      if (kind == 0)
        std::ranges::fill(list, -1);
      else if (kind == 1 && end != list.end() && std::ranges::find(list, last) == list.end())
        *end = last;
    }
}

} // namespace

tools::OperatorInputs OperatorCase::drawInputs(uint64_t seed) const {
  tools::OperatorInputs inputs = tools::drawInputs(spec, lengths, seed, tools::Saved::kByCaller);
  moveOffKink(inputs);
  varyLists(inputs, seed);
  tools::addReferenceSaved(inputs);
  if (!keyOffsets.empty())
    bindKeyOffsets(inputs, keyOffsets);
  return inputs;
}

void moveOffKink(tools::OperatorInputs &inputs) {
  if (!definitionOf(inputs.spec.op).isGradient() || !inputs.tensors.contains(TensorName::kW1K))
    return;
  const auto move = [&](TensorName name, const std::set<int64_t> &hidden) {
    tools::HostTensor &bias = inputs.tensors.at(name);
    for (const int64_t i : hidden)
      reference::storeElement(bias.dtype, bias.bytes.data(), i,
                              reference::loadElement(bias.dtype, bias.bytes.data(), i) + 0x1p-4);
  };
  for (int i = 0; i < 100; ++i) {
    const reference::Nsa nsa = tools::referenceNsa(inputs);
    const reference::NearKink found =
        reference::findNearKink({nsa.spec, nsa.kCmp, nsa.vCmp, nsa.phiK, nsa.phiV, nsa.sequences});
    if (found.k.empty() && found.v.empty())
      return;
    move(TensorName::kB1K, found.k);
    move(TensorName::kB1V, found.v);
  }
  throw std::runtime_error("100 changes of biases leave hidden values at the kink of relu");
}

void bindKeyOffsets(tools::OperatorInputs &inputs, const std::vector<int32_t> &offsets) {
  tools::HostTensor tensor = tools::HostTensor::make(DType::kI32, {static_cast<int64_t>(offsets.size())});
  std::memcpy(tensor.bytes.data(), offsets.data(), tensor.bytes.size());
  inputs.tensors[TensorName::kKOffset] = std::move(tensor);
  inputs.spec.keyOffset = true;
}

std::vector<OperatorCase> operatorTable() {
  std::vector<OperatorCase> table;
  auto add = [&](std::string name, const Spec &spec, tools::SequenceLengths lengths) {
    table.push_back({std::move(name), spec, std::move(lengths)});
  };
  for (Operator op : kOperators)
    for (DType dtype : kTypes) {
      const std::string name = std::string(operatorName(op)) + "_" + std::string(dtypeName(dtype));
      Spec spec = smallSpec(op, dtype);
      add(name + "_dense", spec, {{200, 200}, {200, 200}});
      spec.layout = Layout::kPacked;
      // An empty sequence, one shorter than a block, prefixes of other lengths.
      add(name + "_packed", spec, {{90, 0, 7, 33}, {150, 0, 7, 129}});
    }
  // The rule takes slots for small groups.
  for (const DType dtype : kTypes) {
    Spec spec = smallSpec(Operator::kSelBwd, dtype);
    spec.queryHeads = 16;
    const std::string name = "sel_bwd_large_group_" + std::string(dtypeName(dtype));
    add(name + "_dense", spec, {{200, 200}, {200, 200}});
    spec.layout = Layout::kPacked;
    add(name + "_packed", spec, {{90, 0, 7, 33}, {150, 0, 7, 129}});
  }
  // Keys that begin before the queries' own, among them and behind them all; offsets of cmp are multiples of its
  // stride.
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp})
    for (DType dtype : kTypes) {
      const std::string name = std::string(operatorName(op)) + "_" + std::string(dtypeName(dtype));
      Spec spec = smallSpec(op, dtype);
      add(name + "_dense_offsets", spec, {{130, 130, 130, 130}, {130, 130, 130, 130}});
      table.back().spec.keyOffset = true;
      table.back().keyOffsets = {-64, 72, 2000, -(1 << 30)};
      spec.layout = Layout::kPacked;
      add(name + "_packed_offsets", spec, {{90, 0, 7, 33, 50, 61}, {150, 0, 7, 129, 50, 61}});
      table.back().spec.keyOffset = true;
      table.back().keyOffsets = {-152, 8, -8, 104, 1 << 30, 24};
    }
  // Geometry, on the whole forward.
  auto nsa = [&](std::string name, auto change, tools::SequenceLengths lengths) {
    Spec spec = smallSpec(Operator::kNsa, DType::kBf16);
    change(spec);
    add("nsa_" + std::move(name), spec, std::move(lengths));
  };
  nsa("no_overlap", [](Spec &s) { s.cmpBlock = s.cmpStride = s.selBlock = 16; }, {{210}, {210}});
  nsa("long_compressed_blocks", [](Spec &s) { s.cmpBlock = 48; }, {{210}, {210}});
  nsa("paper_geometry", setPaperGeometry, {{470}, {470}});
  nsa("no_forced_first_block", [](Spec &s) { s.initBlocks = 0; }, {{210}, {210}});
  nsa("all_forced", [](Spec &s) { s.initBlocks = s.localBlocks = 2, s.selCount = 4; }, {{210}, {210}});
  nsa("every_block_selected", [](Spec &s) { s.selCount = 14; }, {{210}, {210}});
  // Lists of any length up to the longest, over sequences with more blocks; the last queries of a prompt.
  for (const auto &[count, dtype] :
       {std::pair{65, DType::kBf16}, std::pair{97, DType::kF32}, std::pair{Spec::kMostSelCount, DType::kF16}})
    for (const Operator op : {Operator::kSelect, Operator::kSel, Operator::kNsa}) {
      Spec spec = smallSpec(op, dtype);
      spec.layout = Layout::kPacked;
      spec.cmpBlock = 8;
      spec.cmpStride = spec.selBlock = 4;
      spec.selCount = count;
      spec.localBlocks = count / 3;
      const int64_t covered = int64_t{count} * spec.selBlock;
      add(std::string(operatorName(op)) + "_lists_of_" + std::to_string(count), spec,
          {{40, 30}, {covered + 90, covered + 3}});
    }
  nsa("window_beyond_the_sequence", [](Spec &s) { s.window = 1000; }, {{210}, {210}});
  nsa("shorter_than_a_block", [](Spec &) {}, {{9}, {9}});
  nsa("one_query_at_a_prefix", [](Spec &) {}, {{1}, {201}});
  nsa("queries_end_a_prefix", [](Spec &) {}, {{37}, {201}});
  nsa("odd_heads", [](Spec &s) { s.qkDim = 37, s.vDim = 21; }, {{170}, {170}});
  nsa("one_head_a_group", [](Spec &s) { s.queryHeads = s.kvHeads = 3; }, {{170}, {170}});
  nsa("wide_group", [](Spec &s) { s.queryHeads = 64, s.kvHeads = 1, s.qkDim = s.vDim = 16; }, {{130}, {130}});
  nsa("group_of_128", [](Spec &s) { s.queryHeads = 128, s.kvHeads = 1, s.qkDim = s.vDim = 16; }, {{120}, {120}});
  nsa("gate_sigmoid", [](Spec &s) { s.gate = Gate::kSigmoid; }, {{120}, {120}});
  nsa("gate_softmax_per_group", [](Spec &s) { s.gate = Gate::kSoftmax, s.gatePerGroup = true; }, {{120}, {120}});
  // Rows whose gradient is 0 but for rounding, because each query sees one key.
  for (const DType dtype : kTypes) {
    const std::string end = "_of_one_key_" + std::string(dtypeName(dtype));
    add("dense_bwd" + end, smallSpec(Operator::kDenseBwd, dtype), {{1, 1}, {1, 1}});
    Spec window = smallSpec(Operator::kWindowBwd, dtype);
    window.window = 1;
    add("window_bwd" + end, window, {{37, 37}, {37, 37}});
    add("cmp_bwd" + end, smallSpec(Operator::kCmpBwd, dtype), {{17}, {17}});
  }
  // Keys without a query, and blocks of one token.
  for (const Operator op : {Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd}) {
    Spec spec = smallSpec(op, DType::kF32);
    spec.layout = Layout::kPacked;
    add(std::string(operatorName(op)) + "_without_queries", spec, {{0, 0}, {50, 33}});
  }
  Spec tokens = smallSpec(Operator::kCmpBwd, DType::kF32);
  tokens.cmpBlock = tokens.cmpStride = 1;
  tokens.layout = Layout::kPacked;
  add("cmp_bwd_blocks_of_one_token", tokens, {{40, 30}, {70, 30}});
  // The queries are so few that one program takes all of them for a tile of keys.
  for (const Operator op : {Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd}) {
    Spec spec = smallSpec(op, DType::kBf16);
    spec.queryHeads = spec.kvHeads = 3;
    add(std::string(operatorName(op)) + "_one_part", spec, {{60, 60}, {60, 60}});
    spec.layout = Layout::kPacked;
    add(std::string(operatorName(op)) + "_one_part_packed", spec, {{31, 0, 9, 60}, {210, 90, 9, 60}});
  }
  // Kinds of compression, whose blocks overlap by half, by three quarters or not at all. A call without a block, and
  // one without a token.
  for (const DType dtype : kTypes)
    for (const auto &[kind, activation] : {std::pair(CmpKind::kLinear, Activation::kRelu),
                                           {CmpKind::kMlp, Activation::kRelu},
                                           {CmpKind::kMlp, Activation::kGelu},
                                           {CmpKind::kMlp, Activation::kSilu}}) {
      Spec spec = smallSpec(Operator::kCompressBwd, dtype);
      spec.cmpKind = kind;
      spec.mlpHidden = 40;
      spec.mlpActivation = activation;
      const std::string name = "compress_bwd_" + std::string(cmpKindName(kind)) +
                               (kind == CmpKind::kMlp ? "_" + std::string(activationName(activation)) : "") + "_" +
                               std::string(dtypeName(dtype));
      add(name + "_dense", spec, {{200, 200}, {200, 200}});
      spec.layout = Layout::kPacked;
      add(name + "_packed", spec, {{90, 0, 7, 33}, {150, 0, 7, 129}});
    }
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp}) {
    Spec spec = smallSpec(Operator::kCompressBwd, DType::kF32);
    spec.cmpKind = kind;
    spec.mlpHidden = 70;
    const std::string name = "compress_bwd_" + std::string(cmpKindName(kind));
    add(name + "_shorter_than_a_block", spec, {{15}, {15}});
    spec.cmpStride = 4;
    spec.kvHeads = 3;
    spec.queryHeads = 3;
    spec.qkDim = 37;
    spec.vDim = 21;
    add(name + "_odd_heads", spec, {{130, 130}, {130, 130}});
    spec.cmpStride = spec.cmpBlock = 12;
    add(name + "_no_overlap", spec, {{130}, {130}});
    spec.layout = Layout::kPacked;
    add(name + "_without_tokens", spec, {{0, 0}, {0, 0}});
    // So many blocks that a program takes more than 1024 of one sequence, and many short sequences. Of so many hidden
    // values one would lie beside the kink of relu.
    spec.mlpActivation = Activation::kSilu;
    spec.cmpStride = spec.cmpBlock = 1;
    spec.qkDim = spec.vDim = spec.mlpHidden = 8;
    spec.kvHeads = spec.queryHeads = 1;
    add(name + "_many_blocks", spec, {{1, 0}, {40000, 3}});
    spec.cmpBlock = 4;
    add(name + "_short_sequences", spec, {std::vector<int64_t>(90, 5), std::vector<int64_t>(90, 5)});
  }
  for (const Gate gate : {Gate::kValue, Gate::kSigmoid, Gate::kSoftmax})
    for (const bool perGroup : {false, true})
      for (const int32_t branches : {int32_t{kAllBranches}, kBranchCmp | kBranchWin, int32_t{kBranchSel}}) {
        Spec spec = smallSpec(Operator::kCombineBwd, DType::kBf16);
        spec.gate = gate;
        spec.gatePerGroup = perGroup;
        spec.branches = branches;
        spec.vDim = 37;
        add("combine_bwd_" + std::string(gateName(gate)) + (perGroup ? "_per_group" : "") + "_branches_" +
                std::to_string(branches),
            spec, {{70, 70}, {70, 70}});
      }
  // Rows so wide that a chunk has 64 queries on the CPU. The borders of chunks lie inside of tiles and sequences.
  auto wideRows = [](Spec &spec) {
    spec.dtype = DType::kF32;
    spec.queryHeads = 128;
    spec.kvHeads = 1;
    spec.qkDim = 8;
    spec.vDim = 256;
  };
  nsa("chunks_of_queries", wideRows, {{150}, {170}});
  nsa("chunks_of_packed_queries",
      [&](Spec &spec) {
        wideRows(spec);
        spec.layout = Layout::kPacked;
      },
      {{150, 0, 140}, {160, 0, 170}});
  nsa("linear", [](Spec &s) { s.cmpKind = CmpKind::kLinear; }, {{120}, {120}});
  for (Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kSilu})
    nsa("mlp_" + std::string(activationName(activation)),
        [&](Spec &s) { s.cmpKind = CmpKind::kMlp, s.mlpHidden = 40, s.mlpActivation = activation; }, {{120}, {120}});
  Spec manyHeads = smallSpec(Operator::kRotate, DType::kF32);
  manyHeads.kvHeads = 37;
  add("rotate_many_heads", manyHeads, {{70, 70}, {70, 70}});
  for (const Operator op : {Operator::kRotate, Operator::kRotateBwd})
    for (const RotaryStyle style : {RotaryStyle::kHalf, RotaryStyle::kInterleaved})
      for (DType dtype : kTypes) {
        Spec spec = smallSpec(op, dtype);
        spec.layout = Layout::kPacked;
        spec.rotaryStyle = style;
        auto rotation = [&](const char *what, tools::SequenceLengths lengths) {
          add(std::string(operatorName(op)) + "_" + std::string(rotaryStyleName(style)) + "_" +
                  std::string(dtypeName(dtype)) + "_" + what,
              spec, std::move(lengths));
        };
        rotation("far_positions", {{40, 70}, {1 << 20, 70}});
        // Elements that do not turn, one of them without a partner.
        spec.qkDim = 77;
        spec.rotaryDims = 38;
        spec.rotaryBase = 500000;
        rotation("part_of_a_head", {{90, 0, 7, 33}, {150, 0, 7, 129}});
      }
  auto gradient = [&](std::string name, auto change, tools::SequenceLengths lengths) {
    Spec spec = smallSpec(Operator::kNsaBwd, DType::kBf16);
    change(spec);
    add("nsa_bwd_" + std::move(name), spec, std::move(lengths));
  };
  gradient("group_of_128", [](Spec &s) { s.queryHeads = 128, s.kvHeads = 1, s.qkDim = s.vDim = 16; }, {{120}, {120}});
  gradient("one_head_a_group", [](Spec &s) { s.queryHeads = s.kvHeads = 3; }, {{170}, {170}});
  gradient("odd_heads", [](Spec &s) { s.qkDim = 37, s.vDim = 21; }, {{170}, {170}});
  gradient("paper_geometry", setPaperGeometry, {{470}, {470}});
  // Drawn embeddings and biases give all keys and values a common part.
  for (const DType dtype : kTypes) {
    const std::string type = "_" + std::string(dtypeName(dtype));
    const auto linear = [dtype](Spec &s) { s.dtype = dtype, s.cmpKind = CmpKind::kLinear; };
    gradient("linear" + type, linear, {{120}, {120}});
    // One compressed key has the weight 1, and no gradient reaches it.
    gradient("one_block" + type, linear, {{20}, {20}});
    gradient("wide_linear" + type, [&](Spec &s) { linear(s), s.qkDim = s.vDim = 64; }, {{330}, {330}});
    gradient("mlp" + type,
             [dtype](Spec &s) {
               s.dtype = dtype, s.cmpKind = CmpKind::kMlp, s.mlpHidden = 40, s.mlpActivation = Activation::kGelu;
             },
             {{120, 120}, {150, 150}});
  }
  gradient("shorter_than_a_block", [](Spec &) {}, {{9}, {9}});
  gradient("one_query_at_a_prefix", [](Spec &) {}, {{1}, {201}});
  gradient("no_query", [](Spec &s) { s.layout = Layout::kPacked; }, {{0, 40}, {50, 90}});
  gradient("gate_sigmoid", [](Spec &s) { s.gate = Gate::kSigmoid; }, {{120}, {120}});
  gradient("gate_softmax_per_group", [](Spec &s) { s.gate = Gate::kSoftmax, s.gatePerGroup = true; }, {{120}, {120}});
  gradient("chunks_of_queries", wideRows, {{150}, {170}});
  gradient("chunks_of_packed_queries",
           [&](Spec &spec) {
             wideRows(spec);
             spec.layout = Layout::kPacked;
           },
           {{150, 0, 140}, {160, 0, 170}});
  // Places in lists take most of a chunk of queries.
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    gradient(
        "chunks_of_slots_" + std::string(layoutName(layout)),
        [&](Spec &s) {
          s.queryHeads = 32, s.kvHeads = 8, s.qkDim = s.vDim = 64, s.selCount = 24;
          s.layout = layout;
        },
        layout == Layout::kDense ? tools::SequenceLengths{{170}, {190}}
                                 : tools::SequenceLengths{{150, 0, 140}, {160, 0, 150}});
  Spec wideGroup = smallSpec(Operator::kSelBwd, DType::kBf16);
  wideGroup.queryHeads = 64, wideGroup.kvHeads = 1, wideGroup.qkDim = wideGroup.vDim = 16;
  add("sel_bwd_wide_group", wideGroup, {{130}, {130}});
  for (int32_t branches = 1; branches < kAllBranches; ++branches) {
    Spec spec = smallSpec(Operator::kNsaBwd, DType::kBf16);
    spec.branches = branches;
    add("nsa_bwd_branches_" + std::to_string(branches), spec, {{150}, {150}});
  }
  for (int32_t branches = 1; branches < kAllBranches; ++branches)
    nsa("branches_" + std::to_string(branches), [&](Spec &s) { s.branches = branches; }, {{150}, {150}});
  return table;
}

Geometry drawGeometry(std::mt19937_64 &random, const OperatorDrawLimits &limits) {
  constexpr int32_t kGroups[] = {1, 2, 3, 4, 6, 8, 16, 32, 128};
  constexpr int32_t kDims[] = {8, 16, 24, 40, 64, 80, 128};
  Geometry drawn;
  Spec &spec = drawn.spec;
  spec.op = Operator::kNsa;
  spec.dtype = oneOf(random, kTypes);
  spec.layout = random() % 2 ? Layout::kPacked : Layout::kDense;
  spec.kvHeads = static_cast<int32_t>(between(random, 1, 3));
  spec.queryHeads = spec.kvHeads * oneOf(random, kGroups);
  spec.qkDim = random() % 4 ? oneOf(random, kDims) : static_cast<int32_t>(between(random, 1, 100));
  spec.cmpKind = static_cast<CmpKind>(random() % 3);
  if (spec.cmpKind != CmpKind::kMean && spec.qkDim < 8)
    spec.qkDim += 8; // for the rows of compressed keys, as for v_dim
  if (spec.qkDim > 1)
    spec.rotaryDims = 2 * static_cast<int32_t>(between(random, 1, spec.qkDim / 2));
  spec.rotaryStyle = static_cast<RotaryStyle>(random() % 2);
  // A row of few values may cancel to nearly nothing, and its relative error would measure that.
  spec.vDim = random() % 4 ? oneOf(random, kDims) : static_cast<int32_t>(between(random, 8, 100));
  spec.cmpStride = static_cast<int32_t>(between(random, 1, 16));
  spec.cmpBlock = spec.cmpStride * static_cast<int32_t>(between(random, 1, 4));
  spec.selBlock = spec.cmpStride * static_cast<int32_t>(between(random, 1, 5));
  spec.selCount = static_cast<int32_t>(between(random, 1, random() % 4 ? 20 : Spec::kMostSelCount));
  spec.initBlocks = 0;
  spec.localBlocks = 1;
  spec.mlpHidden = static_cast<int32_t>(between(random, 1, 70));
  spec.mlpActivation = static_cast<Activation>(random() % 3);
  spec.gate = static_cast<Gate>(random() % 3);
  spec.gatePerGroup = random() % 2;
  spec.branches = random() % 2 ? kAllBranches : static_cast<int32_t>(between(random, 1, kAllBranches));
  // A power of two: windows are drawn between half of it and itself, for which the same kernel is chosen.
  spec.window = 1 << between(random, 0, 9);
  drawn.maxima.batch = 3;
  drawn.maxima.seqlenQ = drawn.maxima.seqlenK = between(random, limits.maxTokens / 4, limits.maxTokens);
  drawn.maxima.tokensQ = drawn.maxima.batch * drawn.maxima.seqlenQ;
  return drawn;
}

OperatorCase drawOperatorCase(const Geometry &geometry, Operator op, std::mt19937_64 &random,
                              const OperatorDrawLimits &limits) {
  OperatorCase drawn;
  drawn.name = "drawn";
  Spec &spec = drawn.spec = geometry.spec;
  spec.op = op;
  spec.scale = random() % 4 ? 0 : 0.3f;
  spec.window = static_cast<int32_t>(between(random, spec.window / 2 + 1, spec.window));
  spec.localBlocks = static_cast<int32_t>(between(random, 1, std::min(3, spec.selCount)));
  spec.initBlocks = static_cast<int32_t>(between(random, 0, std::min(2, spec.selCount - spec.localBlocks)));
  if (random() % 2)
    drawn.spacing = {.base = between(random, 0, 9), .gap = between(random, 0, 9), .headMajor = random() % 2 == 0};
  const bool packed = spec.layout == Layout::kPacked;
  // Dense calls of operators without tokens take them to be as many as queries.
  const bool prefixed = packed || !readsLengths(op) || std::ranges::any_of(operandsOf(op), [](const Operand &operand) {
                          return tensorRule(operand.name).lead == Lead::kKeys;
                        });
  int64_t longest = geometry.maxima.seqlenK;
  const int64_t sequences = between(random, 1, geometry.maxima.batch);
  do {
    drawn.lengths = {};
    for (int64_t i = 0; i < sequences; ++i) {
      const bool own = packed || i == 0;
      const int64_t keys = own ? (packed && random() % 5 == 0 ? 0 : between(random, 1, longest)) : drawn.lengths.k[0];
      const int64_t queries = !own ? drawn.lengths.q[0] : prefixed && random() % 2 ? between(random, 0, keys) : keys;
      drawn.lengths.k.push_back(keys);
      drawn.lengths.q.push_back(queries);
    }
    // Shorter until the reference can afford it.
    longest = std::max<int64_t>(1, longest * 3 / 4);
  } while (workOf(spec, drawn.lengths) > limits.maxWork);
  if (definitionOf(op).operandOf(TensorName::kKOffset) && random() % 3 == 0) {
    drawn.spec.keyOffset = true;
    for (const int64_t keys : drawn.lengths.k) {
      const int64_t step = definitionOf(op).keys == MetKeys::kBlocks ? spec.cmpStride : 1;
      drawn.keyOffsets.push_back(static_cast<int32_t>(between(random, -2 * keys, 2 * keys) / step * step));
    }
  }
  return drawn;
}

} // namespace nsa::test
