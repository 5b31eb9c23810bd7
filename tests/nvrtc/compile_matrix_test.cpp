// Every template to a cubin for every architecture, and the corners of its problems and configs for some, without a
// GPU. Prints registers, spills and milliseconds of each kernel; the default config must not spill for want of them,
// and attention must be made of what tensor cores are fed by.
#include "runtime/base/compiler_revision.h"
#include "runtime/device/loaded_kernel.h"
#include "tests/nvrtc/matrix_problems.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/nvrtc/sass.h"

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

// 65536 registers among three blocks of 128 threads, in the units that they are given out in.
constexpr int64_t kRegistersForThreeBlocks = 168;

struct Job {
  Job(const CompileCall &call, bool isDefault) : call(call), isDefault(isDefault) {}

  CompileCall call;
  bool isDefault; // the cheapest candidate
  Status status;
  Manifest manifest;
  std::map<uint32_t, int> opcodes;
  double milliseconds = 0; // of a processor
};

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
// loops stand in loops and the outer one has words of its own. Kernels of dQ read sums behind their loop, and may keep
// more words of them.
int64_t roomySpillBytes(const std::string &op) {
  const bool isNested =
      op == "select" || op == "sel" || op == "decode_step" || op.starts_with("split_") || op.starts_with("compress_d");
  return op.ends_with("_dq") ? 96 : isNested ? 64 : 32;
}

// The same of a default with all its registers in use. Beside dQ and the mean of keys ptxas has no register for a few
// words, and a larger tile that spills is faster than a smaller one (docs/lab/gpu_kernels.md, "Operands in registers").
// Kernels of keys have keys or values in registers, and on some targets one register too few for a pair of words.
int64_t fullSpillBytes(const std::string &op) {
  return op == "attention_dq" ? 208 : op == "sel_dq" ? 128 : op.ends_with("_dkv") ? 16 : 0;
}

// Gradients with so many columns have accumulators that fill all registers of a thread, so they spill, and take all
// registers that there are.
bool isWideGradient(const Manifest &manifest) {
  const auto columns = [&](const char *name) {
    const auto found = manifest.fixed.find(name);
    return found == manifest.fixed.end() ? 0 : std::stoi(found->second);
  };
  constexpr int kWidest = 192;
  return columns("qk_dim") > kWidest &&
         (manifest.op.ends_with("_dq") || manifest.op.ends_with("_dkv") || manifest.op == "sum_slots");
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
    EXPECT_LE(static_cast<size_t>(manifest.slotCount()), kMaxSlots) << textOf(job.call);
    if (job.isDefault)
      checkOpcodes(job);
    if (job.isDefault && isWideGradient(manifest) && number(manifest, "spill_bytes") > 0) {
      EXPECT_GE(number(manifest, "registers"), 248) << textOf(job.call);
      EXPECT_LT(number(manifest, "spill_bytes"), 6000) << textOf(job.call);
      continue;
    }
    // With all its registers in use another default does not spill. With fewer, ptxas has made room for a third block
    // of a multiprocessor and may keep a few words that the loop does not touch in memory: forbidding that cost windows
    // with heads of 64 a tenth of their speed on an H200.
    if (job.isDefault)
      EXPECT_LE(number(manifest, "spill_bytes"), number(manifest, "registers") <= kRegistersForThreeBlocks
                                                     ? roomySpillBytes(job.call.op)
                                                     : fullSpillBytes(job.call.op))
          << textOf(job.call);
  }
}

// The cheapest candidate of each template that serves the problem and has its turn.
void addDefaults(const Turn &turn, CompileCall call, std::vector<Job> &jobs) {
  auto listed = call.list();
  ASSERT_TRUE(listed) << textOf(call) << "\n" << listed.status().toString();
  std::set<std::string> seen;
  for (const CompileCall::Listed &candidate : *listed)
    if (seen.insert(candidate.templateName).second && compilesMainTemplate(turn, call.op, candidate.templateName)) {
      call.templateName = candidate.templateName;
      jobs.emplace_back(call, /*isDefault=*/true);
    }
}

TEST(CompileMatrix, EveryTemplateOnEveryArchitectureAndEveryProblemCorner) {
  NSA_REQUIRE_NVRTC();
  const Turn turn = Turn::ofThisRun();
  std::vector<Job> jobs;
  for (size_t architecture = 0; architecture < std::size(kArchitectures); ++architecture)
    for (const CompileCall &call : problemsOf(turn, architecture))
      addDefaults(turn, call, jobs);
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
  for (CompileCall &call : configCornerProblems(Turn::ofThisRun())) {
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

// What does not fit into shared memory or registers is no candidate, and something is left.
TEST(CompileMatrix, TheLongestListsHaveCandidatesForEveryTypeAndGroup) {
  std::vector<const char *> targets(std::begin(kArchitectures), std::end(kArchitectures));
  targets.push_back("cpu");
  for (const char *target : targets)
    for (const CompileCall &call : longestListsOfEveryGroup(target)) {
      const auto listed = call.list();
      ASSERT_TRUE(listed) << textOf(call) << "\n" << listed.status().toString();
      EXPECT_FALSE(listed->empty()) << textOf(call);
    }
}

// What a turn compiles, without the candidates.
std::set<std::string> shareOf(const Turn &turn) {
  std::set<std::string> share;
  for (size_t architecture = 0; architecture < std::size(kArchitectures); ++architecture)
    for (const CompileCall &call : problemsOf(turn, architecture))
      share.insert(textOf(call));
  for (const char *op : kAttentionOperators)
    if (compilesMainTemplate(turn, op, kHopperTemplate))
      share.insert(std::string(kHopperTemplate) + " " + op);
  for (const CompileCall &call : configCornerProblems(turn))
    share.insert("corners " + textOf(call));
  return share;
}

TEST(CompileMatrix, TurnsTogetherCompileEverything) {
  const std::set<std::string> all = shareOf({.isAll = true});
  std::set<std::string> together;
  for (size_t number = 0; number < Turn::kCount; ++number) {
    const std::set<std::string> share = shareOf({.number = number});
    EXPECT_LT(share.size(), all.size());
    together.insert(share.begin(), share.end());
  }
  for (const std::string &problem : all)
    EXPECT_TRUE(together.contains(problem)) << "no turn compiles " << problem;
}

// The first digits of a digest: each turn is some revision's.
TEST(CompileMatrix, ARevisionHasOneTurn) {
  EXPECT_EQ(Turn::of("0000002b00112233").number, 19u);
  EXPECT_EQ(Turn::of("ffffffff").number, 0xffffffffu % 24);
  EXPECT_FALSE(Turn::of("ffffffff").isAll);
}

} // namespace
