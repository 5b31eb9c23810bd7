// The definitions that what is installed has inside in place of those of a newer glibc. They are linked into this test
// too, so they are what it calls. The linker (--wrap) leads their calls of getrandom and dlsym to this file.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <malloc.h>
#include <numbers>
#include <pthread.h>
#include <set>
#include <sys/random.h>
#include <thread>
#include <unistd.h>

extern "C" uint32_t arc4random();
extern "C" timespec nsaDeadlineOfOtherClock(timespec deadline, timespec now, timespec otherNow);
extern "C" int nsaWaitOnWallClock(pthread_cond_t *, pthread_mutex_t *, clockid_t, const timespec *);

namespace {

std::atomic<int> drawsThatFail, drawError; // the next calls of getrandom, and their error
int lookedUp;                              // the calls of dlsym for pthread_cond_clockwait

} // namespace

extern "C" {
// The names that the linker gives to the functions of glibc, and takes for calls of them.
ssize_t getrandomOfGlibc(void *bytes, size_t count, unsigned flags) asm("__real_getrandom");
void *dlsymOfGlibc(void *library, const char *name) asm("__real_dlsym");
ssize_t getrandomOfTest(void *bytes, size_t count, unsigned flags) asm("__wrap_getrandom");
void *dlsymOfTest(void *library, const char *name) asm("__wrap_dlsym");

ssize_t getrandomOfTest(void *bytes, size_t count, unsigned flags) {
  if (drawsThatFail == 0)
    return getrandomOfGlibc(bytes, count, flags);
  --drawsThatFail;
  errno = drawError;
  return -1;
}
// A sanitizer calls dlsym while it starts, when its memory and its strcmp are not there yet.
__attribute__((no_sanitize_address)) void *dlsymOfTest(void *library, const char *name) {
  const char *at = name, *wanted = "pthread_cond_clockwait";
  while (*at != 0 && *at == *wanted)
    ++at, ++wanted;
  if (*at == *wanted)
    __atomic_fetch_add(&lookedUp, 1, __ATOMIC_RELAXED);
  return dlsymOfGlibc(library, name);
}
}

namespace nsa {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t nanoseconds(const timespec &time) { return time.tv_sec * kSecond + time.tv_nsec; }

int64_t monotonicNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return nanoseconds(now);
}

// What a wait for something that does not happen answers, and how long it took.
template <typename Wait> int waitUntil(Wait wait, int64_t deadline) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const timespec time{deadline / kSecond, deadline % kSecond};
  pthread_mutex_lock(&mutex);
  const int answer = wait(&condition, &mutex, CLOCK_MONOTONIC, &time);
  pthread_mutex_unlock(&mutex);
  return answer;
}

TEST(OlderGlibc, DrawsDifferentNumbers) {
  std::set<uint32_t> drawn;
  for (int i = 0; i < 64; ++i)
    drawn.insert(arc4random());
  EXPECT_GE(drawn.size(), 63u); // two of 64 are equal once in two million times
}

TEST(OlderGlibc, DrawsAgainAfterASignal) {
  drawError = EINTR;
  drawsThatFail = 3;
  arc4random();
  EXPECT_EQ(drawsThatFail, 0);
}

TEST(OlderGlibcDeathTest, EndsWithoutRandomBytes) {
  EXPECT_EXIT(
      {
        alarm(10); // where it tries again and again
        drawError = EPERM;
        drawsThatFail = 1'000'000'000;
        arc4random();
      },
      testing::KilledBySignal(SIGABRT), "");
}

#if __GLIBC_PREREQ(2, 33)
TEST(OlderGlibc, CountsAllocatedBytes) {
  void *block = std::malloc(5000);
  const struct mallinfo2 wide = mallinfo2();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
  std::free(block);
  EXPECT_EQ(wide.arena, static_cast<unsigned>(narrow.arena));
  EXPECT_EQ(wide.uordblks, static_cast<unsigned>(narrow.uordblks));
  EXPECT_EQ(wide.fordblks, static_cast<unsigned>(narrow.fordblks));
}
#endif

TEST(OlderGlibc, KnowsThreads) {
  EXPECT_EQ(gettid(), getpid());
  std::thread([] { EXPECT_NE(gettid(), getpid()); }).join();
}

TEST(OlderGlibc, MovesADeadlineToAnotherClock) {
  const auto moved = [](timespec deadline, timespec now, timespec otherNow) {
    const timespec result = nsaDeadlineOfOtherClock(deadline, now, otherNow);
    EXPECT_GE(result.tv_nsec, 0);
    EXPECT_LT(result.tv_nsec, kSecond);
    return nanoseconds(result);
  };
  EXPECT_EQ(moved({20, 0}, {17, 0}, {1000, 0}), 1003 * kSecond);
  EXPECT_EQ(moved({20, 100}, {17, 200}, {1000, 50}), 1003 * kSecond - 50);
  EXPECT_EQ(moved({20, 900'000'000}, {17, 100'000'000}, {1000, 300'000'000}), 1004 * kSecond + 100'000'000);
  EXPECT_EQ(moved({20, 999'999'999}, {17, 0}, {1000, 999'999'999}), 1005 * kSecond - 2);
  EXPECT_EQ(moved({17, 0}, {20, 999'999'999}, {1000, 0}), 996 * kSecond + 1); // passed
}

TEST(OlderGlibc, WaitsUntilTheDeadline) {
  for (const auto wait : {pthread_cond_clockwait, nsaWaitOnWallClock}) {
    for (const int64_t duration : {1'000'000, 30'000'000}) {
      const int64_t begin = monotonicNow();
      EXPECT_EQ(waitUntil(wait, begin + duration), ETIMEDOUT);
      EXPECT_GE(monotonicNow() - begin, duration - 1'000'000); // the wall clock may be slewed
      EXPECT_LT(monotonicNow() - begin, duration + 5 * kSecond);
    }
    const int64_t begin = monotonicNow();
    EXPECT_EQ(waitUntil(wait, begin > 2 * kSecond ? begin - 2 * kSecond : 0), ETIMEDOUT);
    EXPECT_LT(monotonicNow() - begin, 5 * kSecond);
  }
}

TEST(OlderGlibc, LooksUpTheWaitOnce) {
  const auto wait = [] { return waitUntil(pthread_cond_clockwait, monotonicNow()); };
  EXPECT_EQ(wait(), ETIMEDOUT);
  EXPECT_GE(lookedUp, 1);
  const int before = lookedUp;
  EXPECT_EQ(wait(), ETIMEDOUT);
  EXPECT_EQ(lookedUp, before);
}

TEST(OlderGlibc, Computes) {
  // volatile: the compiler must not do it.
  volatile double one = 1, two = 2, eight = 8, half = 0.5;
  EXPECT_DOUBLE_EQ(std::exp(one), std::numbers::e);
  EXPECT_DOUBLE_EQ(std::exp2(eight), 256);
  EXPECT_DOUBLE_EQ(std::log(two), std::numbers::ln2);
  EXPECT_DOUBLE_EQ(std::log2(eight), 3);
  EXPECT_DOUBLE_EQ(std::pow(two, half), std::numbers::sqrt2);
}

} // namespace
} // namespace nsa
