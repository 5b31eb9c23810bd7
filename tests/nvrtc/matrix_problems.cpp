#include "tests/nvrtc/matrix_problems.h"

#include "runtime/base/compiler_revision.h"
#include "runtime/engine/graph/pipeline.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

namespace nsa::test {
namespace {

// All values of each field, the large and the odd heads with each dtype, and the extremes together. The first is the
// main one.
constexpr Shape kShapes[] = {{128, 128, 16, "bf16", 0}, {64, 64, 8, "bf16", 0},    {72, 72, 3, "bf16", 0},
                             {32, 32, 8, "bf16", 0},    {192, 128, 16, "bf16", 1}, {256, 256, 1, "bf16", 0},
                             {33, 33, 128, "bf16", 1},  {64, 64, 1, "fp16", 1},    {128, 128, 8, "fp16", 0},
                             {33, 64, 3, "fp16", 0},    {64, 64, 8, "fp32", 0},    {128, 128, 1, "fp32", 1},
                             {256, 256, 16, "fp32", 0}, {33, 33, 3, "fp32", 1},    {192, 128, 128, "fp32", 0}};

using Fixed = std::map<std::string, std::string>;

CompileCall callOf(const char *op, const Fixed &fixed) {
  CompileCall call;
  call.op = op;
  call.fixed = fixed;
  return call;
}

Fixed commonOf(const Shape &shape) {
  return {{"dtype", shape.dtype},
          {"group", std::to_string(shape.group)},
          {"packed", std::to_string(shape.packed)},
          {"page_size", "0"},
          {"qk_dim", std::to_string(shape.qkDim)}};
}

CompileCall selectCall(const Shape &shape, int block, int stride, int selBlock, int selCount) {
  CompileCall call = callOf("select", commonOf(shape));
  call.fixed.insert({{"cmp_block", std::to_string(block)},
                     {"cmp_stride", std::to_string(stride)},
                     {"sel_block", std::to_string(selBlock)},
                     {"sel_count", std::to_string(selCount)}});
  return call;
}

CompileCall selCall(const Shape &shape, int selBlock, int selCount) {
  CompileCall call = callOf("sel", commonOf(shape));
  call.fixed.insert({{"v_dim", std::to_string(shape.vDim)},
                     {"sel_block", std::to_string(selBlock)},
                     {"sel_count", std::to_string(selCount)}});
  return call;
}

CompileCall combineCall(const char *op, int vDim, int group, const char *dtype, int packed, const char *gate,
                        int perGroup) {
  return callOf(op, {{"dtype", dtype},
                     {"group", std::to_string(group)},
                     {"packed", std::to_string(packed)},
                     {"v_dim", std::to_string(vDim)},
                     {"gate", gate},
                     {"gate_per_group", std::to_string(perGroup)}});
}

CompileCall rotateCall(const char *op, int qkDim, int rotaryDims, const char *style, const char *dtype, int packed) {
  return callOf(op, {{"dtype", dtype},
                     {"packed", std::to_string(packed)},
                     {"qk_dim", std::to_string(qkDim)},
                     {"rotary_dims", std::to_string(rotaryDims)},
                     {"rotary_style", style}});
}

struct CompressShape {
  const char *kind, *dtype;
  int qkDim, vDim, block, stride, packed, hidden;
  const char *activation;
};

// Each kind in each type, equal heads and others, odd ones and large ones, and each activation.
constexpr CompressShape kCompressShapes[] = {
    {"mean", "fp16", 33, 259, 12, 4, 1, 1, "relu"},    {"mean", "fp32", 192, 128, 32, 16, 1, 1, "relu"},
    {"linear", "bf16", 256, 256, 16, 8, 0, 1, "relu"}, {"linear", "fp16", 192, 128, 32, 16, 1, 1, "relu"},
    {"linear", "fp32", 33, 64, 7, 7, 1, 1, "relu"},    {"mlp", "fp16", 33, 47, 8, 4, 1, 5, "silu"},
    {"mlp", "fp32", 64, 64, 32, 16, 0, 100, "relu"},
};

CompileCall compressCall(const CompressShape &shape) {
  return callOf("compress", {{"dtype", shape.dtype},
                             {"packed", std::to_string(shape.packed)},
                             {"page_size", "0"},
                             {"qk_dim", std::to_string(shape.qkDim)},
                             {"v_dim", std::to_string(shape.vDim)},
                             {"cmp_block", std::to_string(shape.block)},
                             {"cmp_stride", std::to_string(shape.stride)},
                             {"cmp_kind", shape.kind},
                             {"mlp_hidden", std::to_string(shape.hidden)},
                             {"mlp_activation", shape.activation}});
}

// The kernels of the gradients of such a compression.
std::vector<CompileCall> compressGradientCalls(const CompressShape &shape) {
  Fixed fixed = compressCall(shape).fixed;
  fixed.erase("page_size");
  const std::string_view kind = shape.kind;
  std::vector<CompileCall> calls;
  if (kind == "mlp")
    calls.push_back(callOf("compress_dz", fixed));
  fixed["mlp_activation"] = "relu"; // other kernels do not read it
  calls.push_back(callOf("compress_dx", fixed));
  if (kind != "mean")
    for (const char *op : {"compress_dw", "compress_db", "compress_sums"})
      calls.push_back(callOf(op, fixed));
  return calls;
}

CompileCall sequencesCall(int block, int stride) {
  return callOf("sequences",
                {{"dtype", "fp32"}, {"cmp_block", std::to_string(block)}, {"cmp_stride", std::to_string(stride)}});
}

// The whole forward, or decode from a cache in pages of so many tokens (0: in one piece).
constexpr int kForward = -1;
struct WholeShape {
  DType dtype;
  int qkDim, vDim, group, pageSize;
  CmpKind kind = CmpKind::kMean;
  int block = 32, stride = 16, selBlock = 64, selCount = 16;
  Gate gate = Gate::kValue;
  bool gatePerGroup = false;
  int32_t branches = kAllBranches;
  bool isStep = false; // of decode, in one launch
};

// The problems of all its kernels, for as many queries of a sequence and keys before them.
std::vector<CompileCall> callsOf(const WholeShape &shape, int64_t queries, int64_t keys = 8192) {
  Spec spec;
  spec.op = shape.pageSize == kForward ? Operator::kNsa : Operator::kDecode;
  spec.dtype = shape.dtype;
  spec.kvHeads = 4;
  spec.queryHeads = spec.kvHeads * shape.group;
  spec.qkDim = shape.qkDim;
  spec.vDim = shape.vDim;
  spec.cmpKind = shape.kind;
  spec.mlpHidden = 256;
  spec.mlpActivation = Activation::kGelu;
  spec.cmpBlock = shape.block;
  spec.cmpStride = shape.stride;
  spec.selBlock = shape.selBlock;
  spec.selCount = shape.selCount;
  spec.gate = shape.gate;
  spec.gatePerGroup = shape.gatePerGroup;
  spec.pageSize = std::max(shape.pageSize, 0);
  spec.branches = shape.branches;
  spec.decodeStep = shape.isStep;
  EXPECT_TRUE(spec.validate().isOk()) << spec.validate().toString();
  std::vector<CompileCall> calls;
  for (const Step &step : stepsOf(spec, {.batch = 1, .tokensQ = queries, .seqlenQ = queries, .seqlenK = keys})) {
    const Problem problem = Problem::make(step.spec, step.maxima);
    calls.push_back(callOf(problem.opName().c_str(), problem.fixed()));
  }
  return calls;
}

// The kernels of the gradients of attention, over tokens or over compressed blocks.
std::vector<CompileCall> gradientCalls(const Shape &shape, bool compressed) {
  std::vector<CompileCall> calls;
  Fixed fixed = commonOf(shape);
  fixed.erase("page_size");
  fixed.insert({{"v_dim", std::to_string(shape.vDim)},
                {"cmp_block", compressed ? "32" : "1"},
                {"cmp_stride", compressed ? "16" : "1"}});
  Fixed split = fixed;
  split.emplace("split_ds", "1");
  for (const char *op : {"attention_dq", "attention_dkv"}) {
    calls.push_back(callOf(op, fixed));
    if (compressed && std::string_view(shape.dtype) != "fp32")
      calls.push_back(callOf(op, split));
  }
  for (const char *field : {"qk_dim", "cmp_block", "cmp_stride"})
    fixed.erase(field);
  calls.push_back(callOf("deltas", fixed));
  return calls;
}

// The gradients of the selected branch, and the sum of all gradients of keys.
std::vector<CompileCall> selGradientCalls(const Shape &shape, int selBlock, int selCount) {
  Fixed fixed = commonOf(shape);
  fixed.erase("page_size");
  fixed.insert({{"v_dim", std::to_string(shape.vDim)},
                {"sel_block", std::to_string(selBlock)},
                {"sel_count", std::to_string(selCount)}});
  std::vector<CompileCall> calls = {callOf("sel_dq", fixed), callOf("sel_dkv", fixed)};
  // The rule takes slots only where a block's keys and values fit beside others (takesSlots).
  if (selBlock * (shape.qkDim + shape.vDim) * (std::string_view(shape.dtype) == "fp32" ? 4 : 2) <= 48 << 10)
    calls.push_back(callOf("sel_dq_slots", fixed));
  Fixed slots = fixed;
  slots.erase("v_dim");
  calls.push_back(callOf("sum_slots", slots));
  fixed.erase("group");
  fixed.insert({{"cmp_block", "1"}, {"cmp_stride", "1"}});
  calls.push_back(callOf("sum_parts", fixed));
  return calls;
}

// The kernels that invert lists.
std::vector<CompileCall> indexCalls(int selBlock, int selCount, int packed) {
  std::vector<CompileCall> calls;
  for (const char *op :
       {"index_lengths", "index_counts", "index_starts", "index_fill", "index_check", "index_slots", "index_ranges"})
    calls.push_back(callOf(op, {{"dtype", "fp32"},
                                {"packed", std::to_string(packed)},
                                {"sel_block", std::to_string(selBlock)},
                                {"sel_count", std::to_string(selCount)}}));
  return calls;
}

// Many queries, too few to fill a device, and so few that programs share their keys.
constexpr int64_t kPrompt = 8192, kFew = 64, kToken = 1;
constexpr int64_t kManyKeys = 65536; // whose blocks are many segments

void addNew(std::vector<CompileCall> &calls, const std::vector<CompileCall> &more) {
  for (const CompileCall &call : more)
    if (std::ranges::none_of(calls, [&](const CompileCall &known) { return textOf(known) == textOf(call); }))
      calls.push_back(call);
}

// All kernels of the main shape, contiguous and in pages: compilesMainProblem says where.
std::vector<CompileCall> mainProblems() {
  std::vector<CompileCall> calls = {attentionCall(kShapes[0], "dense"), sequencesCall(32, 16),
                                    rotateCall("rotate", 128, 128, "half", "bf16", 0),
                                    combineCall("combine_bwd", 128, 16, "bf16", 0, "value", 0)};
  auto add = [&](const std::vector<CompileCall> &more) { addNew(calls, more); };
  add(callsOf({DType::kBf16, 128, 128, 16, kForward}, kPrompt));
  add(callsOf({DType::kBf16, 128, 128, 16, kForward}, kFew));
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp})
    add(callsOf({DType::kBf16, 128, 128, 16, 64, kind}, kPrompt));
  add(callsOf({DType::kBf16, 128, 128, 16, 64}, kToken));
  add(callsOf({DType::kBf16, 128, 128, 16, 64}, kToken, kManyKeys));
  for (const CompileCall &call : callsOf({DType::kBf16, 128, 128, 16, 0}, kToken))
    if (call.op == "append" || call.op == "cache_sequences")
      add({call});
  add(gradientCalls(kShapes[0], /*compressed=*/false));
  add(gradientCalls(kShapes[0], /*compressed=*/true));
  add(selGradientCalls(kShapes[0], 64, 16));
  add(indexCalls(64, 16, 0));
  for (const char *kind : {"mean", "linear", "mlp"})
    add(compressGradientCalls({kind, "bf16", 128, 128, 32, 16, 0, kind == std::string_view("mlp") ? 256 : 1, "gelu"}));
  return calls;
}

// A step of decode in one launch, which sm_90a alone has. NVRTC takes seconds for each, so that all but the first have
// turns: types, kinds, pages, gates, groups of several tiles of heads, and each set of branches.
CompileCall stepCall(WholeShape shape, int64_t keys = 8192) {
  shape.isStep = true;
  return callsOf(shape, kToken, keys).back();
}
std::vector<CompileCall> stepProblems(const Turn &turn) {
  std::vector<CompileCall> corners = {
      stepCall({DType::kBf16, 128, 128, 16, 0, CmpKind::kLinear}, kManyKeys),
      stepCall({DType::kF16, 192, 128, 16, 128, CmpKind::kMlp, 16, 16, 16, 64, Gate::kSigmoid}),
      stepCall({DType::kBf16, 64, 64, 1, 0, CmpKind::kMean, 32, 16, 64, 16, Gate::kSoftmax, true}),
      stepCall({DType::kF16, 256, 256, 3, 60, CmpKind::kMean, 12, 4, 20, 5}),
      stepCall({DType::kBf16, 64, 64, 64, 64}),
      stepCall({DType::kBf16, 40, 24, 17, 0, CmpKind::kMean, 48, 16, 16, Spec::kMostSelCount})};
  for (int32_t branches = 1; branches < kAllBranches; ++branches) {
    WholeShape shape{DType::kBf16, 128, 128, 16, 64};
    shape.branches = branches;
    corners.push_back(stepCall(shape));
  }
  std::vector<CompileCall> calls = {stepCall({DType::kBf16, 128, 128, 16, 64})};
  for (size_t i = 0; i < corners.size(); ++i)
    if (turn.takes(2 * i, Turn::kCount))
      calls.push_back(corners[i]);
  return calls;
}

// What one architecture each compiles in every eighth turn; all six have their share. A text is the same for each, but
// for what its shared memory admits.
std::vector<CompileCall> cornerProblems() {
  std::vector<CompileCall> calls;
  calls.push_back(combineCall("combine", 64, 8, "fp16", 1, "sigmoid", 0));
  calls.push_back(combineCall("combine_bwd", 256, 1, "bf16", 1, "softmax", 1));
  calls.push_back(combineCall("combine", 33, 3, "bf16", 0, "softmax", 0));
  calls.push_back(combineCall("combine_bwd", 128, 4, "fp32", 0, "softmax", 1));
  calls.push_back(combineCall("combine", 256, 128, "fp32", 1, "value", 1));
  calls.push_back(combineCall("combine_bwd", 33, 3, "fp16", 1, "sigmoid", 0));
  constexpr Shape kWideKeys = {192, 48, 16, "bf16", 1}; // beside few columns of values
  for (const Shape &shape : {kShapes[1], kShapes[4], kShapes[5], kShapes[6], kShapes[11], kWideKeys}) {
    for (const bool compressed : {false, true})
      addNew(calls, gradientCalls(shape, compressed));
    addNew(calls, selGradientCalls(shape, shape.group == 1 ? 16 : 60, 5));
  }
  calls.push_back(rotateCall("rotate", 64, 64, "interleaved", "fp16", 1));
  calls.push_back(rotateCall("rotate_bwd", 192, 64, "half", "bf16", 0));
  calls.push_back(rotateCall("rotate", 33, 2, "half", "fp32", 1));
  for (const CompressShape &shape : kCompressShapes) {
    calls.push_back(compressCall(shape));
    addNew(calls, compressGradientCalls(shape));
  }
  for (const WholeShape &shape :
       {WholeShape{DType::kF16, 192, 128, 16, 128, CmpKind::kLinear, 16, 16, 16, 64, Gate::kSigmoid},
        WholeShape{DType::kF32, 33, 64, 3, 60, CmpKind::kMlp, 12, 4, 20, 3, Gate::kSoftmax, true}})
    for (const int64_t queries : {kPrompt, kToken})
      addNew(calls, callsOf(shape, queries));
  calls.push_back(selCall({64, 64, 1, "bf16", 0}, 16, 64));
  calls.push_back(selCall({128, 128, 8, "fp32", 0}, 60, 1));
  calls.push_back(selectCall({64, 64, 1, "bf16", 0}, 16, 16, 16, 64));
  calls.push_back(selectCall({128, 128, 4, "fp32", 0}, 12, 4, 20, 1));
  calls.push_back(sequencesCall(1, 1));
  addNew(calls, indexCalls(20, 1, 1));
  addNew(calls, indexCalls(60, Spec::kMostSelCount, 1));
  return calls;
}

// What depends on the length of a list, where lists are longer than half of the longest. An architecture compiles each
// length in one type every fourth turn, and in twelve turns in all types. `select` has its lists in shared memory and
// `ascend` has them in registers. In other kernels the length is only a constant, so the longest lists are enough.
std::vector<CompileCall> longListProblems(const Turn &turn, size_t architecture) {
  constexpr std::pair<DType, int> kTypesAndGroups[] = {{DType::kBf16, 16}, {DType::kF16, 128}, {DType::kF32, 1}};
  constexpr int kCounts[] = {65, 97, Spec::kMostSelCount};
  std::vector<CompileCall> calls;
  for (size_t count = 0; count < std::size(kCounts); ++count)
    for (size_t type = 0; type < std::size(kTypesAndGroups); ++type) {
      if (!turn.takes(count + 4 * type + architecture, 4 * std::size(kTypesAndGroups)))
        continue;
      const auto &[dtype, group] = kTypesAndGroups[type];
      WholeShape shape{dtype, 128, 128, group, kForward};
      shape.selCount = kCounts[count];
      std::vector<CompileCall> all = callsOf(shape, kPrompt);
      shape.pageSize = 64;
      addNew(all, callsOf(shape, kToken, kManyKeys));
      std::erase_if(all, [&](const CompileCall &call) {
        const bool holdsLists = call.op == "select" || call.op == "ascend";
        return !call.fixed.contains("sel_count") || (!holdsLists && shape.selCount != Spec::kMostSelCount);
      });
      addNew(calls, all);
    }
  return calls;
}

// sm_90a compiles all main problems, and each of the others compiles a twelfth of them that no other one has in this
// turn.
bool compilesMainProblem(const Turn &turn, size_t architecture, size_t problem) {
  return std::string_view(kArchitectures[architecture]) == "sm_90a" ||
         turn.takes(problem + architecture, 2 * std::size(kArchitectures));
}

} // namespace

Turn Turn::of(std::string_view revision) {
  return {.number = std::strtoull(std::string(revision.substr(0, 8)).c_str(), nullptr, 16) % kCount};
}

Turn Turn::ofThisRun() {
  const char *wanted = std::getenv("NSA_TEST_MATRIX");
  Turn turn = of(compilerRevision());
  if (wanted && std::string_view(wanted) == "all")
    turn.isAll = true;
  else if (wanted)
    turn.number = std::strtoull(wanted, nullptr, 10) % kCount;
  std::printf("NSA_TEST_MATRIX=%s of 0 to %zu and all, compiler revision %.12s\n",
              turn.isAll ? "all" : std::to_string(turn.number).c_str(), kCount - 1, compilerRevision().data());
  return turn;
}

std::string textOf(const CompileCall &call) {
  return call.target + " " + call.op + " " + formatValues(call.fixed) + " " + call.templateName + " " +
         formatValues(call.config);
}

CompileCall attentionCall(const Shape &shape, const std::string &op) {
  CompileCall call = callOf(op.c_str(), commonOf(shape));
  call.fixed.insert({{"v_dim", std::to_string(shape.vDim)}, {"many_queries", "1"}});
  if (op == "cmp")
    call.fixed.insert({{"cmp_block", "32"}, {"cmp_stride", "16"}});
  return call;
}

bool compilesMainTemplate(const Turn &turn, const std::string &op, const std::string &templateName) {
  const auto which = static_cast<size_t>(std::ranges::find(kAttentionOperators, op) - kAttentionOperators);
  return templateName != kHopperTemplate || turn.takes(which, std::size(kAttentionOperators));
}

std::vector<CompileCall> problemsOf(const Turn &turn, size_t architecture) {
  std::vector<CompileCall> calls;
  const std::vector<CompileCall> all = mainProblems();
  for (size_t i = 0; i < all.size(); ++i)
    if (compilesMainProblem(turn, architecture, i))
      calls.push_back(all[i]);
  const std::vector<CompileCall> corners = cornerProblems();
  for (size_t i = 0; i < corners.size(); ++i)
    if (i % std::size(kArchitectures) == architecture && turn.takes(i / std::size(kArchitectures), 8))
      calls.push_back(corners[i]);
  addNew(calls, longListProblems(turn, architecture));
  if (std::string_view(kArchitectures[architecture]) == "sm_90a")
    addNew(calls, stepProblems(turn));
  // On average a quarter of attention's shapes on one, in one of its operators, which are one text with a few constants
  // apart. With all, each shape on two: one with the tensor cores' instructions of sm_80 alone and one with later ones.
  for (size_t i = 1; i < std::size(kShapes); ++i)
    if (turn.isAll ? (i + architecture) % 3 == 0 : turn.takes(i + architecture, Turn::kCount))
      calls.push_back(attentionCall(kShapes[i], kAttentionOperators[(i + architecture / 3) % 3]));
  for (CompileCall &call : calls)
    call.target = kArchitectures[architecture];
  return calls;
}

std::vector<CompileCall> longestListsOfEveryGroup(const char *target) {
  std::vector<CompileCall> calls;
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
    for (const int group : {1, 2, 3, 4, 6, 8, 16, 32, 64, 128}) {
      WholeShape shape{dtype, 256, 256, group, kForward};
      shape.selCount = Spec::kMostSelCount;
      addNew(calls, callsOf(shape, kPrompt));
      shape.pageSize = 64;
      addNew(calls, callsOf(shape, kToken, kManyKeys));
    }
  std::erase_if(calls, [](const CompileCall &call) { return !call.fixed.contains("sel_count"); });
  for (CompileCall &call : calls)
    call.target = target;
  return calls;
}

std::vector<CompileCall> configCornerProblems(const Turn &turn) {
  std::vector<CompileCall> calls;
  auto add = [&](CompileCall call, const char *architecture, const char *templateName = "") {
    call.target = architecture;
    call.templateName = templateName;
    calls.push_back(std::move(call));
  };
  // Attention by turns, as a corner takes seconds: the least and the most shared memory, with the instructions of sm_80
  // alone and with later ones, what sm_90a alone has, and fp32, which uses no instruction that architectures differ in.
  const CompileCall window = attentionCall(kShapes[0], "window"),
                    dense = attentionCall({64, 64, 8, "fp32", 1}, "dense");
  add(window, "sm_90a", "row_attention");
  if (turn.takes(0, 8))
    add(window, "sm_86");
  if (turn.takes(2, 8))
    add(stepCall({DType::kBf16, 128, 128, 16, 64}), "sm_90a");
  if (turn.takes(4, 8))
    add(window, "sm_90a", "attention");
  if (turn.takes(6, 8))
    add(window, "sm_90a", kHopperTemplate);
  if (turn.takes(1, 8))
    add(dense, "sm_120a");
  // Nor do the others use any that attention does not.
  if (turn.takes(3, 4))
    add(combineCall("combine", 128, 16, "bf16", 0, "softmax", 0), "sm_80");
  if (turn.takes(1, 4))
    add(combineCall("combine", 64, 8, "fp32", 1, "sigmoid", 1), "sm_90a");
  const char *kinds[] = {"mean", "mlp"}; // whose first product is the linear one's
  for (size_t i = 0; i < 2; ++i)
    if (turn.takes(1 + 2 * i, 4))
      add(compressCall({kinds[i], "bf16", 64, 48, 32, 16, 0, 64, "gelu"}), "sm_86");
  for (const CompileCall &call : callsOf({DType::kBf16, 128, 64, 16, 64}, kPrompt))
    if (call.op == "select" ? turn.takes(5, 8) : (call.op == "append" || call.op == "sel") && turn.takes(3, 8))
      add(call, call.op == "select" ? "sm_100a" : "sm_89");
  return calls;
}

} // namespace nsa::test
