// Who takes which kernel when, and how much of the budget it may use, with a clock that the test sets.
#include "autotune/workload/tune_queue.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

// Families of three: a0 a1 a2 b0 b1 b2 ..., and at the end one kernel without choices.
std::vector<TuneJob> jobsOf(int families) {
  std::vector<TuneJob> jobs;
  for (int i = 0; i < families * 3; ++i) {
    TuneJob job;
    job.family = std::string(1, static_cast<char>('a' + i / 3));
    job.problem = job.family + std::to_string(i % 3);
    jobs.push_back(job);
  }
  TuneJob made;
  made.family = made.problem = "made";
  made.isTuned = false;
  jobs.push_back(made);
  return jobs;
}

std::vector<size_t> allOf(const std::vector<TuneJob> &jobs) {
  std::vector<size_t> indices(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i)
    indices[i] = i;
  return indices;
}

class TuneQueueTest : public ::testing::Test {
protected:
  TuneQueue make(const std::vector<TuneJob> &jobs, double total, double kernel = 0, int workers = 1) {
    return TuneQueue(jobs, allOf(jobs), {total, kernel, workers, [this] { return time; }});
  }
  // The problem that a worker gets, and its new family.
  std::string take(TuneQueue &queue, const std::vector<TuneJob> &jobs, std::string &family) {
    const std::optional<TuneQueue::Ticket> ticket = queue.take(family);
    if (!ticket)
      return "";
    seconds = ticket->seconds;
    last = ticket->job;
    family = jobs[ticket->job].family;
    return jobs[ticket->job].problem;
  }

  double time = 1000;
  double seconds = 0;
  size_t last = 0;
};

TEST_F(TuneQueueTest, AWorkerStaysWithItsFamily) {
  const std::vector<TuneJob> jobs = jobsOf(2);
  TuneQueue queue = make(jobs, 0);
  std::string first, second, order;
  order += take(queue, jobs, first) + " ";
  order += take(queue, jobs, second) + " "; // another family, as the first is begun
  order += take(queue, jobs, first) + " " + take(queue, jobs, second) + " " + take(queue, jobs, first) + " ";
  order += take(queue, jobs, first) + " "; // its own is over: a family that no worker has begun
  order += take(queue, jobs, first);       // then it helps
  EXPECT_EQ(order, "a0 b0 a1 b1 a2 made b2");
  EXPECT_EQ(take(queue, jobs, second), "");
  EXPECT_EQ(seconds, 0) << "without a budget the engine's own counts";
}

TEST_F(TuneQueueTest, TheBudgetIsDividedOverWhatIsLeft) {
  const std::vector<TuneJob> jobs = jobsOf(2);
  TuneQueue queue = make(jobs, 122);
  std::string family;
  // Weights: 4 + 1 + 1 twice, and 0.2.
  EXPECT_EQ(take(queue, jobs, family), "a0");
  EXPECT_NEAR(seconds, 122 * 4 / 12.2, 1e-9);
  time += 0.5; // it needed next to nothing
  queue.finish(last);
  EXPECT_EQ(take(queue, jobs, family), "a1");
  EXPECT_NEAR(seconds, 121.5 * 1 / 8.2, 1e-9) << "what was saved goes to the others";
  time += 60; // it needed more than it had
  queue.finish(last);
  EXPECT_EQ(take(queue, jobs, family), "a2");
  EXPECT_NEAR(seconds, 61.5 * 1 / 7.2, 1e-9) << "one slow job stops no worker";
}

TEST_F(TuneQueueTest, WorkersHaveTheirTimeBesideEachOther) {
  const std::vector<TuneJob> jobs = jobsOf(2);
  TuneQueue queue = make(jobs, 122, 0, 2);
  std::string first, second;
  take(queue, jobs, first);
  EXPECT_NEAR(seconds, 2 * 122 * 4 / 12.2, 1e-9);
  take(queue, jobs, second);
  EXPECT_NEAR(seconds, 2 * 122 * 4 / 12.2, 1e-9) << "what is in hand still needs its share";
}

TEST_F(TuneQueueTest, AKernelHasItsOwnLimitToo) {
  const std::vector<TuneJob> jobs = jobsOf(1);
  TuneQueue queue = make(jobs, 1000, 5);
  std::string family;
  take(queue, jobs, family);
  EXPECT_EQ(seconds, 5);
  TuneQueue without = make(jobs, 0, 5);
  family.clear();
  take(without, jobs, family);
  EXPECT_EQ(seconds, 5);
}

TEST_F(TuneQueueTest, NoJobBeginsAfterTheEnd) {
  const std::vector<TuneJob> jobs = jobsOf(1);
  TuneQueue queue = make(jobs, 10);
  std::string family;
  EXPECT_EQ(take(queue, jobs, family), "a0");
  time += 9.75;
  EXPECT_EQ(take(queue, jobs, family), "a1");
  EXPECT_DOUBLE_EQ(seconds, 0.25) << "the least share would be more than there is";
  time += 1;
  EXPECT_EQ(take(queue, jobs, family), "");
  EXPECT_EQ(queue.left(), (std::vector<size_t>{2, 3}));
}

// A kernel's default takes its time whatever its share is.
TEST_F(TuneQueueTest, NoJobBeginsThatWouldEndTooLate) {
  const std::vector<TuneJob> jobs = jobsOf(3);
  TuneQueue queue = make(jobs, 30, 1);
  std::string family;
  const auto takes = [&](double needed) {
    ASSERT_NE(take(queue, jobs, family), "");
    EXPECT_LE(seconds, 1);
    time += needed;
    queue.finish(last);
  };
  takes(12); // eleven more than it had
  takes(4);
  EXPECT_NE(take(queue, jobs, family), "") << "14 s are left; two have exceeded their shares, one of them by 3 s";
  time += 4.5;
  queue.finish(last);
  takes(5.5);
  EXPECT_EQ(take(queue, jobs, family), "") << "4 s are left, and two of the last took 4.5 s or more beyond their own";
  EXPECT_FALSE(queue.left().empty());
}

TEST_F(TuneQueueTest, OneSlowJobStopsNoWorker) {
  const std::vector<TuneJob> jobs = jobsOf(2);
  TuneQueue queue = make(jobs, 20, 0.5);
  std::string family;
  take(queue, jobs, family);
  time += 11;
  queue.finish(last);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(take(queue, jobs, family), "") << i;
    time += 0.6;
    queue.finish(last);
  }
}

TEST_F(TuneQueueTest, AShareIsWorthMeasuring) {
  const std::vector<TuneJob> jobs = jobsOf(20);
  TuneQueue queue = make(jobs, 24);
  std::string family;
  take(queue, jobs, family);
  take(queue, jobs, family);
  EXPECT_DOUBLE_EQ(seconds, 1);
}

TEST_F(TuneQueueTest, StopsWhenTold) {
  const std::vector<TuneJob> jobs = jobsOf(1);
  TuneQueue queue = make(jobs, 0);
  std::string family;
  take(queue, jobs, family);
  queue.stop();
  EXPECT_EQ(take(queue, jobs, family), "");
  EXPECT_EQ(queue.left().size(), 3u);
}

TEST_F(TuneQueueTest, SaysHowLongItTakes) {
  const std::vector<TuneJob> jobs = jobsOf(1);
  TuneQueue queue = make(jobs, 0);
  std::string family;
  EXPECT_FALSE(queue.state().secondsLeft) << "nothing is known yet";
  take(queue, jobs, family);
  time += 8;
  queue.finish(last);
  const TuneQueue::State state = queue.state();
  EXPECT_EQ(state.done, 1u);
  EXPECT_EQ(state.total, 4u);
  EXPECT_EQ(state.working, 0u);
  EXPECT_NEAR(*state.secondsLeft, 8 / 4.0 * 2.2, 1e-9) << "two kernels of weight 1 and one of 0.2, at 2 s each weight";
  TuneQueue limited = make(jobs, 10);
  family.clear();
  take(limited, jobs, family);
  time += 9;
  limited.finish(last);
  EXPECT_NEAR(*limited.state().secondsLeft, 1, 1e-9) << "no longer than the budget";
}

} // namespace
} // namespace nsa::tools
