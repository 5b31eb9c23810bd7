// CUDA does not survive a fork: in a child the parent's engine and plans answer with what to do instead, nothing hangs
// or crashes, and a CPU engine works; the parent goes on.
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace nsa::test {
namespace {

constexpr unsigned kHangSeconds = 60;

class GpuFork : public AttentionTest {};

bool saysWhatToDo(const Status &status) {
  const bool right = status.code() == ErrorCode::kUnavailable && status.toString().find("fork") != std::string::npos &&
                     status.error().hint.find("spawn") != std::string::npos;
  if (!right)
    std::fprintf(stderr, "in the child: %s\n", status.toString().c_str());
  return right;
}

TEST_F(GpuFork, AChildIsToldWhatToDoAndTheParentGoesOn) {
  std::mt19937_64 random(freshSeed());
  const AttentionCase shape = plainCase("fork");
  AttentionData data = AttentionData::draw(shape, random);
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();
  ASSERT_TRUE(launch->enqueue().isOk());
  ASSERT_TRUE(launch->finish().isOk());

  Spec spec;
  spec.queryHeads = spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  const Maxima maxima{.batch = 1, .tokensQ = 16, .seqlenQ = 16, .seqlenK = 16};
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kHangSeconds);
    if (!saysWhatToDo(tools::createPlan(session->engine(), spec, maxima).status()))
      _exit(1);
    if (!saysWhatToDo(launch->enqueue()))
      _exit(2);
    if (!saysWhatToDo(tools::toStatus(nsa_plan_status(launch->plan.get(), nullptr, nullptr))))
      _exit(3);
    launch->plan.reset();
    tools::EngineSettings settings;
    settings.device = "cpu";
    settings.cachePath = ":memory:";
    settings.missPolicy = NSA_MISS_FAIL;
    Result<tools::EngineHandle> own = tools::createEngine(settings);
    if (!own || tools::createPlan(own->get(), spec, maxima).status().code() != ErrorCode::kCacheMiss)
      _exit(4);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);

  ASSERT_TRUE(launch->runInto(data).isOk());
  checkOutputs(data);
}

} // namespace
} // namespace nsa::test
