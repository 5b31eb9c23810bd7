// Every template over the corners of its problems and of its configs, to a cubin for every architecture, without a GPU.
// Prints registers and spills of each kernel; the default config must not spill for want of them.
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/unit/compiler/compile_call.h"

#include <algorithm>
#include <atomic>
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

// All values of each field, the large and the odd heads with each dtype, and the extremes together.
constexpr Shape kShapes[] = {{32, 32, 8, "bf16", 0},    {64, 64, 8, "bf16", 0},    {72, 72, 3, "bf16", 0},
                             {128, 128, 16, "bf16", 0}, {192, 128, 16, "bf16", 1}, {256, 256, 1, "bf16", 0},
                             {33, 33, 128, "bf16", 1},  {64, 64, 1, "fp16", 1},    {128, 128, 8, "fp16", 0},
                             {33, 64, 3, "fp16", 0},    {64, 64, 8, "fp32", 0},    {128, 128, 1, "fp32", 1},
                             {256, 256, 16, "fp32", 0}, {33, 33, 3, "fp32", 1},    {192, 128, 128, "fp32", 0}};

struct Job {
  Job(const CompileCall &call, bool isDefault) : call(call), isDefault(isDefault) {}

  CompileCall call;
  bool isDefault; // the cheapest candidate
  Status status;
  Manifest manifest;
};

std::string textOf(const CompileCall &call) {
  return call.target + " " + call.op + " " + formatValues(call.fixed) + " " + call.templateName + " " +
         formatValues(call.config);
}

// The attention operators are one text with a few constants apart.
constexpr const char *kAttentionOperators[] = {"window", "dense", "cmp"};

CompileCall callOf(const Shape &shape, const char *op, const char *architecture) {
  CompileCall call;
  call.target = architecture;
  call.op = op;
  call.fixed = {{"dtype", shape.dtype},
                {"group", std::to_string(shape.group)},
                {"packed", std::to_string(shape.packed)},
                {"qk_dim", std::to_string(shape.qkDim)},
                {"v_dim", std::to_string(shape.vDim)}};
  if (call.op == "cmp")
    call.fixed.insert({{"cmp_block", "32"}, {"cmp_stride", "16"}});
  return call;
}

CompileCall combineCall(int vDim, int group, const char *dtype, int packed, const char *gate, int perGroup,
                        const char *architecture) {
  CompileCall call;
  call.target = architecture;
  call.op = "combine";
  call.fixed = {{"dtype", dtype},
                {"group", std::to_string(group)},
                {"packed", std::to_string(packed)},
                {"v_dim", std::to_string(vDim)},
                {"gate", gate},
                {"gate_per_group", std::to_string(perGroup)}};
  return call;
}

struct CompressShape {
  const char *kind, *dtype;
  int qkDim, vDim, block, stride, packed, hidden;
  const char *activation;
};

// Each kind in each type, equal heads and others, odd ones and large ones, and each activation.
constexpr CompressShape kCompressShapes[] = {
    {"mean", "bf16", 128, 128, 32, 16, 0, 1, "relu"},   {"mean", "fp16", 33, 259, 12, 4, 1, 1, "relu"},
    {"mean", "fp32", 192, 128, 32, 16, 1, 1, "relu"},   {"linear", "bf16", 256, 256, 16, 8, 0, 1, "relu"},
    {"linear", "fp16", 192, 128, 32, 16, 1, 1, "relu"}, {"linear", "fp32", 33, 64, 7, 7, 1, 1, "relu"},
    {"mlp", "bf16", 128, 128, 32, 16, 0, 256, "gelu"},  {"mlp", "fp16", 33, 47, 8, 4, 1, 5, "silu"},
    {"mlp", "fp32", 64, 64, 32, 16, 0, 100, "relu"},
};

CompileCall callOf(const CompressShape &shape, const char *architecture) {
  CompileCall call;
  call.target = architecture;
  call.op = "compress";
  call.fixed = {{"dtype", shape.dtype},
                {"packed", std::to_string(shape.packed)},
                {"qk_dim", std::to_string(shape.qkDim)},
                {"v_dim", std::to_string(shape.vDim)},
                {"cmp_block", std::to_string(shape.block)},
                {"cmp_stride", std::to_string(shape.stride)},
                {"cmp_kind", shape.kind},
                {"mlp_hidden", std::to_string(shape.hidden)},
                {"mlp_activation", shape.activation}};
  return call;
}

CompileCall sequencesCall(int block, int stride, const char *architecture) {
  CompileCall call;
  call.target = architecture;
  call.op = "sequences";
  call.fixed = {{"dtype", "fp32"}, {"cmp_block", std::to_string(block)}, {"cmp_stride", std::to_string(stride)}};
  return call;
}

std::vector<CompileCall> problemsOf(size_t architecture) {
  const char *name = kArchitectures[architecture];
  std::vector<CompileCall> calls;
  // Over the architectures each shape meets each operator, and over the shapes each operator each architecture.
  for (size_t i = 0; i < std::size(kShapes); ++i)
    calls.push_back(callOf(kShapes[i], kAttentionOperators[(i + architecture) % 3], name));
  calls.push_back(combineCall(128, 16, "bf16", 0, "value", 0, name));
  calls.push_back(combineCall(64, 8, "fp16", 1, "sigmoid", 0, name));
  calls.push_back(combineCall(256, 1, "bf16", 1, "softmax", 1, name));
  calls.push_back(combineCall(33, 3, "bf16", 0, "softmax", 0, name));
  calls.push_back(combineCall(128, 4, "fp32", 0, "softmax", 1, name));
  calls.push_back(combineCall(256, 128, "fp32", 1, "value", 1, name));
  for (const CompressShape &shape : kCompressShapes)
    calls.push_back(callOf(shape, name));
  calls.push_back(sequencesCall(32, 16, name));
  calls.push_back(sequencesCall(1, 1, name));
  return calls;
}

// Compiles on all cores: NVRTC takes most of the time and scales with threads.
void compileAll(std::vector<Job> &jobs) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      auto compiled = jobs[i].call.compile();
      auto manifest = compiled ? Manifest::parse(compiled->manifest) : Result<Manifest>(compiled.status());
      if (manifest)
        jobs[i].manifest = std::move(*manifest);
      else
        jobs[i].status = manifest.status();
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
  return found == manifest.evidence.end() ? -1 : std::atoll(found->second.c_str());
}

void checkAndPrint(std::vector<Job> &jobs) {
  for (const Job &job : jobs) {
    if (!job.status.isOk()) {
      ADD_FAILURE() << textOf(job.call) << "\n" << job.status.toString();
      continue;
    }
    const Manifest &manifest = job.manifest;
    std::printf("%-8s %-6s %-52s %-12s %-50s registers=%lld spill_bytes=%lld shared=%lld\n", manifest.target.c_str(),
                manifest.op.c_str(), formatValues(manifest.fixed).c_str(), manifest.templateName.c_str(),
                formatValues(manifest.config).c_str(), static_cast<long long>(number(manifest, "registers")),
                static_cast<long long>(number(manifest, "spill_bytes")), static_cast<long long>(manifest.sharedBytes));
    EXPECT_GT(number(manifest, "registers"), 0);
    EXPECT_EQ(manifest.evidence.count("nvrtc"), 1u);
    EXPECT_EQ(manifest.threads % 32, 0);
    // With all its registers in use a default does not spill. With fewer, ptxas has made room for a third block of a
    // multiprocessor and may keep a few words that the loop does not touch in memory: forbidding that cost windows with
    // heads of 64 a tenth of their speed on an H200.
    if (job.isDefault)
      EXPECT_LE(number(manifest, "spill_bytes"), number(manifest, "registers") <= kRegistersForThreeBlocks ? 32 : 0)
          << textOf(job.call);
  }
}

// The cheapest candidate of each template that serves the problem.
void addDefaults(CompileCall call, std::vector<Job> &jobs) {
  auto listed = call.list();
  ASSERT_TRUE(listed) << textOf(call) << "\n" << listed.status().toString();
  std::set<std::string> seen;
  for (const CompileCall::Listed &candidate : *listed)
    if (seen.insert(candidate.templateName).second) {
      call.templateName = candidate.templateName;
      jobs.emplace_back(call, /*isDefault=*/true);
    }
}

TEST(CompileMatrix, EveryTemplateAndProblemCornerOnEveryArchitecture) {
  NSA_REQUIRE_NVRTC();
  std::vector<Job> jobs;
  for (size_t architecture = 0; architecture < std::size(kArchitectures); ++architecture)
    for (const CompileCall &call : problemsOf(architecture))
      addDefaults(call, jobs);
  compileAll(jobs);
  checkAndPrint(jobs);
}

// Per choice the candidates with its least and its greatest value, the cheapest of each.
TEST(CompileMatrix, EveryConfigCornerOnEveryArchitecture) {
  NSA_REQUIRE_NVRTC();
  std::vector<Job> jobs;
  std::vector<CompileCall> calls;
  for (const char *architecture : kArchitectures)
    calls.push_back(callOf(Shape{128, 128, 16, "bf16", 0}, "window", architecture));
  // fp32 uses no instruction that architectures differ in: the least and the most shared memory are its corners.
  for (const char *architecture : {"sm_86", "sm_90a"})
    calls.push_back(callOf(Shape{64, 64, 8, "fp32", 1}, "dense", architecture));
  calls.push_back(combineCall(128, 16, "bf16", 0, "softmax", 0, "sm_80"));
  calls.push_back(combineCall(64, 8, "fp32", 1, "sigmoid", 1, "sm_90a"));
  // Nor does compression use any that attention does not.
  for (const char *kind : {"mean", "linear", "mlp"})
    calls.push_back(callOf(CompressShape{kind, "bf16", 64, 48, 32, 16, 0, 64, "gelu"}, "sm_86"));
  for (CompileCall &call : calls) {
    auto listed = call.list();
    ASSERT_TRUE(listed) << listed.status().toString();
    std::map<std::string, std::map<std::string, std::map<int64_t, const CompileCall::Listed *>>> byValue;
    for (const CompileCall::Listed &candidate : *listed) {
      auto config = parseValues(candidate.config);
      for (const auto &[name, value] : *config)
        byValue[candidate.templateName][name].emplace(std::atoll(value.c_str()), &candidate);
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
