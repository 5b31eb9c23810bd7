// Every template to a cubin for every architecture, and the corners of its problems and configs for some, without a
// GPU. Prints registers, spills and milliseconds of each kernel; the default config must not spill for want of them,
// and attention must be made of what tensor cores are fed by.
#include "runtime/engine/pipeline.h"
#include "tests/harness/seed.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/nvrtc/sass.h"
#include "tests/unit/compiler/compile_call.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr const char *kArchitectures[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

// 65536 registers among three blocks of 128 threads, in the units that they are given out in.
constexpr int64_t kRegistersForThreeBlocks = 168;

struct Shape {
  int qkDim, vDim, group;
  const char *dtype;
  int packed;
};

// All values of each field, the large and the odd heads with each dtype, and the extremes together. The first is the
// main one.
constexpr Shape kShapes[] = {{128, 128, 16, "bf16", 0}, {64, 64, 8, "bf16", 0},    {72, 72, 3, "bf16", 0},
                             {32, 32, 8, "bf16", 0},    {192, 128, 16, "bf16", 1}, {256, 256, 1, "bf16", 0},
                             {33, 33, 128, "bf16", 1},  {64, 64, 1, "fp16", 1},    {128, 128, 8, "fp16", 0},
                             {33, 64, 3, "fp16", 0},    {64, 64, 8, "fp32", 0},    {128, 128, 1, "fp32", 1},
                             {256, 256, 16, "fp32", 0}, {33, 33, 3, "fp32", 1},    {192, 128, 128, "fp32", 0}};
struct Job {
  Job(const CompileCall &call, bool isDefault) : call(call), isDefault(isDefault) {}

  CompileCall call;
  bool isDefault; // the cheapest candidate
  Status status;
  Manifest manifest;
  std::map<uint32_t, int> opcodes;
  double milliseconds = 0; // of a processor
};

std::string textOf(const CompileCall &call) {
  return call.target + " " + call.op + " " + formatValues(call.fixed) + " " + call.templateName + " " +
         formatValues(call.config);
}

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

CompileCall attentionCall(const Shape &shape, const std::string &op) {
  CompileCall call = callOf(op.c_str(), commonOf(shape));
  call.fixed.insert({{"v_dim", std::to_string(shape.vDim)}, {"many_queries", "1"}});
  if (op == "cmp")
    call.fixed.insert({{"cmp_block", "32"}, {"cmp_stride", "16"}});
  return call;
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

CompileCall combineCall(int vDim, int group, const char *dtype, int packed, const char *gate, int perGroup) {
  return callOf("combine", {{"dtype", dtype},
                            {"group", std::to_string(group)},
                            {"packed", std::to_string(packed)},
                            {"v_dim", std::to_string(vDim)},
                            {"gate", gate},
                            {"gate_per_group", std::to_string(perGroup)}});
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
  EXPECT_TRUE(spec.validate().isOk()) << spec.validate().toString();
  std::vector<CompileCall> calls;
  for (const Step &step : stepsOf(spec, {.batch = 1, .tokensQ = queries, .seqlenQ = queries, .seqlenK = keys})) {
    const Problem problem = Problem::make(step.spec, step.maxima);
    calls.push_back(callOf(problem.op.c_str(), problem.fixed));
  }
  return calls;
}

constexpr const char *kAttentionOperators[] = {"window", "dense", "cmp"};

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
  std::vector<CompileCall> calls = {attentionCall(kShapes[0], "dense"), sequencesCall(32, 16)};
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
  return calls;
}

// What one architecture each compiles; all six have their share. A text is the same for each, but for what its shared
// memory admits.
std::vector<CompileCall> cornerProblems() {
  std::vector<CompileCall> calls;
  calls.push_back(combineCall(64, 8, "fp16", 1, "sigmoid", 0));
  calls.push_back(combineCall(256, 1, "bf16", 1, "softmax", 1));
  calls.push_back(combineCall(33, 3, "bf16", 0, "softmax", 0));
  calls.push_back(combineCall(128, 4, "fp32", 0, "softmax", 1));
  calls.push_back(combineCall(256, 128, "fp32", 1, "value", 1));
  for (const CompressShape &shape : kCompressShapes)
    calls.push_back(compressCall(shape));
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
  return calls;
}

// With NSA_TEST_MATRIX=all everything is compiled everywhere. Otherwise architectures take turns, and whose turn it is
// is drawn: the texts are the same for each, but for what their shared memory admits.
bool compilesAll() {
  const char *wanted = std::getenv("NSA_TEST_MATRIX");
  return wanted && std::string_view(wanted) == "all";
}
size_t drawnTurn() {
  static const size_t turn = freshSeed() % 12; // of two, three, four or six
  return turn;
}

bool isTurnOfFour(size_t which) { return compilesAll() || drawnTurn() % 4 == which; }

// sm_90a compiles all main problems, the others every third one each: sm_80 a third, sm_86 and sm_100a the next one,
// sm_89 (the same text as sm_86) and sm_120a the last one.
bool compilesMainProblem(size_t architecture, size_t problem) {
  return compilesAll() || std::string_view(kArchitectures[architecture]) == "sm_90a" ||
         (problem + architecture + drawnTurn()) % 3 == 0;
}

// What sm_90a alone has takes NVRTC two seconds each, so one of its operators has its turn, whose text is that of the
// others but for a few constants.
constexpr const char *kHopperTemplate = "attention_sm90";
bool compilesMainTemplate(const std::string &op, const std::string &templateName) {
  return compilesAll() || templateName != kHopperTemplate || op == kAttentionOperators[drawnTurn() % 3];
}

std::vector<CompileCall> problemsOf(size_t architecture) {
  std::vector<CompileCall> calls;
  const std::vector<CompileCall> all = mainProblems();
  for (size_t i = 0; i < all.size(); ++i)
    if (compilesMainProblem(architecture, i))
      calls.push_back(all[i]);
  const std::vector<CompileCall> corners = cornerProblems();
  for (size_t i = 0; i < corners.size(); ++i)
    if (i % std::size(kArchitectures) == architecture)
      calls.push_back(corners[i]);
  // Attention's shapes on one, in one of its operators, which are one text with a few constants apart. With all, on
  // two: one with the tensor cores' instructions of sm_80 alone and one with later ones.
  for (size_t i = 1; i < std::size(kShapes); ++i)
    if (compilesAll() ? (i + architecture) % 3 == 0 : (i + architecture + drawnTurn()) % 6 == 0)
      calls.push_back(attentionCall(kShapes[i], kAttentionOperators[(i + architecture / 3) % 3]));
  for (CompileCall &call : calls)
    call.target = kArchitectures[architecture];
  return calls;
}

double threadMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// Compiles on all cores: NVRTC takes most of the time and scales with threads.
void compileAll(std::vector<Job> &jobs) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      const double begin = threadMilliseconds();
      auto compiled = jobs[i].call.compile();
      jobs[i].milliseconds = threadMilliseconds() - begin;
      auto manifest = compiled ? Manifest::parse(compiled->manifest) : Result<Manifest>(compiled.status());
      if (!manifest) {
        jobs[i].status = manifest.status();
        continue;
      }
      jobs[i].manifest = std::move(*manifest);
      jobs[i].opcodes = countOpcodes(compiled->bytes);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (std::thread &thread : threads)
    thread.join();
}

int64_t number(const Manifest &manifest, const char *name) {
  auto found = manifest.evidence.find(name);
  return found == manifest.evidence.end() ? -1 : std::strtoll(found->second.c_str(), nullptr, 10);
}

// What a kernel may keep in memory that leaves registers unused, stores and loads together: four words, or eight where
// loops stand in loops and the outer one has words of its own.
int64_t roomySpillBytes(const std::string &op) {
  const bool isNested = op == "select" || op == "sel" || op.starts_with("split_");
  return isNested ? 64 : 32;
}

// Attention in 16 bit types over whole tiles of columns runs on tensor cores, fed by ldmatrix and cp.async, and nothing
// but what is spilled goes through local memory.
void checkOpcodes(const Job &job) {
  if (job.manifest.templateName == "attention_sm90") {
    // By hand: matrix units and copy engine, and no word in local memory.
    std::map<uint32_t, int> opcodes = job.opcodes;
    for (const uint32_t present : {kHgmma, kHgmmaRegisters, kUtmaldg})
      EXPECT_GT(opcodes[present], 0) << std::hex << present << ' ' << textOf(job.call);
    for (const uint32_t absent : {kLdl, kStl})
      EXPECT_EQ(opcodes[absent], 0) << std::hex << absent << ' ' << textOf(job.call);
    return;
  }
  if (job.manifest.templateName != "attention")
    return;
  const std::string dtype = job.manifest.fixed.at("dtype"), columns = job.manifest.fixed.at("qk_dim");
  if (dtype == "fp32" || (columns != "64" && columns != "128"))
    return;
  std::map<uint32_t, int> opcodes = job.opcodes;
  for (const uint32_t present : {kHmma, kLdsm, kLdgsts})
    EXPECT_GT(opcodes[present], 0) << std::hex << present << ' ' << textOf(job.call);
  if (number(job.manifest, "spill_bytes") == 0)
    for (const uint32_t absent : {kLdl, kStl})
      EXPECT_EQ(opcodes[absent], 0) << std::hex << absent << ' ' << textOf(job.call);
}

void checkAndPrint(std::vector<Job> &jobs) {
  for (const Job &job : jobs) {
    if (!job.status.isOk()) {
      ADD_FAILURE() << textOf(job.call) << "\n" << job.status.toString();
      continue;
    }
    const Manifest &manifest = job.manifest;
    std::printf("%-8s %-6s %-52s %-12s %-50s registers=%lld spill_bytes=%lld shared=%lld ms=%.0f\n",
                manifest.target.c_str(), manifest.op.c_str(), formatValues(manifest.fixed).c_str(),
                manifest.templateName.c_str(), formatValues(manifest.config).c_str(),
                static_cast<long long>(number(manifest, "registers")),
                static_cast<long long>(number(manifest, "spill_bytes")), static_cast<long long>(manifest.sharedBytes),
                job.milliseconds);
    EXPECT_GT(number(manifest, "registers"), 0);
    EXPECT_EQ(manifest.evidence.count("nvrtc"), 1u);
    EXPECT_EQ(manifest.threads % 32, 0);
    // With all its registers in use a default does not spill. With fewer, ptxas has made room for a third block of a
    // multiprocessor and may keep a few words that the loop does not touch in memory: forbidding that cost windows with
    // heads of 64 a tenth of their speed on an H200.
    if (job.isDefault)
      checkOpcodes(job);
    if (job.isDefault)
      EXPECT_LE(number(manifest, "spill_bytes"),
                number(manifest, "registers") <= kRegistersForThreeBlocks ? roomySpillBytes(job.call.op) : 0)
          << textOf(job.call);
  }
}

// The cheapest candidate of each template that serves the problem and has its turn.
void addDefaults(CompileCall call, std::vector<Job> &jobs) {
  auto listed = call.list();
  ASSERT_TRUE(listed) << textOf(call) << "\n" << listed.status().toString();
  std::set<std::string> seen;
  for (const CompileCall::Listed &candidate : *listed)
    if (seen.insert(candidate.templateName).second && compilesMainTemplate(call.op, candidate.templateName)) {
      call.templateName = candidate.templateName;
      jobs.emplace_back(call, /*isDefault=*/true);
    }
}

TEST(CompileMatrix, EveryTemplateOnEveryArchitectureAndEveryProblemCorner) {
  NSA_REQUIRE_NVRTC();
  std::vector<Job> jobs;
  for (size_t architecture = 0; architecture < std::size(kArchitectures); ++architecture)
    for (const CompileCall &call : problemsOf(architecture))
      addDefaults(call, jobs);
  // The main problems have heads of 128 alone.
  for (const char *op : kAttentionOperators) {
    CompileCall call = attentionCall({192, 128, 16, "bf16", 0}, op);
    call.target = "sm_90a";
    call.templateName = "attention_sm90";
    jobs.emplace_back(call, /*isDefault=*/true);
  }
  compileAll(jobs);
  checkAndPrint(jobs);
}

// Per choice the candidates with its least and its greatest value, the cheapest of each.
TEST(CompileMatrix, EveryConfigCorner) {
  NSA_REQUIRE_NVRTC();
  std::vector<Job> jobs;
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
  if (isTurnOfFour(0))
    add(window, "sm_86");
  if (isTurnOfFour(1))
    add(window, "sm_90a", "attention");
  if (isTurnOfFour(2))
    add(window, "sm_90a", kHopperTemplate);
  if (isTurnOfFour(3))
    add(dense, "sm_120a");
  // Nor do the others use any that attention does not.
  add(combineCall(128, 16, "bf16", 0, "softmax", 0), "sm_80");
  add(combineCall(64, 8, "fp32", 1, "sigmoid", 1), "sm_90a");
  const char *kinds[] = {"mean", "mlp"}; // whose first product is the linear one's
  for (size_t i = 0; i < 2; ++i)
    if (compilesAll() || drawnTurn() % 2 == i)
      add(compressCall({kinds[i], "bf16", 64, 48, 32, 16, 0, 64, "gelu"}), "sm_86");
  for (const CompileCall &call : callsOf({DType::kBf16, 128, 64, 16, 64}, kPrompt))
    if (call.op == "append" || call.op == "sel" || call.op == "select")
      add(call, call.op == "select" ? "sm_100a" : "sm_89");
  for (CompileCall &call : calls) {
    auto listed = call.list();
    ASSERT_TRUE(listed) << listed.status().toString();
    std::map<std::string, std::map<std::string, std::map<int64_t, const CompileCall::Listed *>>> byValue;
    for (const CompileCall::Listed &candidate : *listed) {
      auto config = parseValues(candidate.config);
      for (const auto &[name, value] : *config)
        byValue[candidate.templateName][name].emplace(std::strtoll(value.c_str(), nullptr, 10), &candidate);
    }
    std::set<const CompileCall::Listed *> corners;
    for (const auto &[name, choices] : byValue)
      for (const auto &[choice, values] : choices) {
        corners.insert(values.begin()->second);
        corners.insert(values.rbegin()->second);
      }
    for (const CompileCall::Listed *corner : corners) {
      call.templateName = corner->templateName;
      call.config = *parseValues(corner->config);
      jobs.emplace_back(call, /*isDefault=*/false);
    }
  }
  compileAll(jobs);
  checkAndPrint(jobs);
}

} // namespace
