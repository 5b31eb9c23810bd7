// The threads that compile: what they throw, what they receive, and what happens where there are none.
#include "tests/unit/autotune/fake_machine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <latch>
#include <new>
#include <pthread.h>
#include <thread>

namespace nsa {
namespace {

TEST(TunerThreads, WhatAnotherThreadThrowsFailsItsCandidate) {
  FakeMachine machine{.trueMs = {2.0, 1.0, 1.5, 1.2}};
  TuneCallbacks callbacks = machine.callbacks();
  std::latch bothIn(2);
  std::atomic<size_t> thrown = 0;
  callbacks.compile = [&, caller = std::this_thread::get_id()](size_t index) {
    if (index < 2)
      bothIn.arrive_and_wait();
    if (std::this_thread::get_id() == caller || thrown)
      return Status::ok();
    thrown = index + 1;
    throw std::bad_alloc();
  };
  TuneOptions options;
  options.compileThreads = 2;
  const Result<TuneReport> report = tune(candidatesFor(machine), callbacks, options);
  ASSERT_TRUE(report) << report.status().toString();
  ASSERT_NE(thrown, 0u);
  const CandidateReport &failed = report->candidates[thrown - 1];
  EXPECT_EQ(failed.outcome, CandidateOutcome::kCompileFailed);
  EXPECT_NE(failed.detail.find("no host memory to compile a candidate"), std::string::npos) << failed.detail;
  EXPECT_EQ(report->winner, thrown == 2 ? 3u : 1u);
}

TEST(TunerThreads, AHostsSignalsDoNotRunOnThem) {
  FakeMachine machine{.trueMs = {2.0, 1.0}};
  TuneCallbacks callbacks = machine.callbacks();
  const auto caller = std::this_thread::get_id();
  std::latch bothIn(2);
  std::atomic<int> begun = 0, blocked = 0;
  callbacks.beginThread = [&] {
    EXPECT_NE(std::this_thread::get_id(), caller);
    ++begun;
  };
  callbacks.compile = [&](size_t) {
    bothIn.arrive_and_wait();
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked += sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGINT);
    return Status::ok();
  };
  TuneOptions options;
  options.compileThreads = 2;
  ASSERT_TRUE(tune(candidatesFor(machine), callbacks, options));
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(blocked, 1) << "the other thread, and not the caller's";
}

TEST(TunerThreads, WhereThereAreNoneTheCallerCompiles) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_default_np(&attributes), 0);
  size_t before = 0;
  ASSERT_EQ(pthread_attr_getstacksize(&attributes, &before), 0);
  // No address space has room for such a stack.
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&attributes), 0);
  FakeMachine machine{.trueMs = {2.0, 1.0, 1.5}};
  TuneOptions options;
  options.compileThreads = 8;
  const Result<TuneReport> report = tune(candidatesFor(machine), machine.callbacks(), options);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, before), 0);
  ASSERT_EQ(pthread_setattr_default_np(&attributes), 0);
  pthread_attr_destroy(&attributes);
  ASSERT_TRUE(report) << report.status().toString();
  EXPECT_EQ(report->winner, 1u);
  EXPECT_EQ(machine.compiles, 3u);
}

} // namespace
} // namespace nsa
