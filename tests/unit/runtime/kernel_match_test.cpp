// Which stored kernels a plan may take.
#include "runtime/engine/choices/kernel_match.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

TEST(KernelMatch, AKernelThatCutsSequencesAtOtherQueriesDoesNotServe) {
  Manifest manifest;
  manifest.op = "combine";
  manifest.target = "cpu";
  ProblemKey problem;
  problem.op = "combine";
  const auto serves = [&] { return checkServes(manifest, problem, "cpu"); };
  EXPECT_TRUE(serves().isOk());
  manifest.fixed["packed"] = "1";
  ManifestParam begin, step;
  begin.name = "query_begin";
  step.name = "query_step";
  manifest.params = {begin};
  const Status refused = serves();
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().field, "query_step");
  EXPECT_EQ(refused.error().value, "absent");
  EXPECT_NE(refused.error().rule.find("query_begin"), std::string::npos);
  manifest.params = {begin, step};
  EXPECT_TRUE(serves().isOk());
  // A dense chunk has the same queries of each sequence.
  manifest.fixed["packed"] = "0";
  manifest.params = {begin};
  EXPECT_TRUE(serves().isOk());
}

// The key of a problem leaves out what is 0 in most problems. A kernel with another value computes something else.
TEST(KernelMatch, WhatAKeyLeavesOutIsZero) {
  Manifest manifest;
  manifest.op = "deltas";
  manifest.target = "cpu";
  ProblemKey problem;
  problem.op = "deltas";
  manifest.fixed["weighs_keys"] = "0";
  EXPECT_TRUE(checkServes(manifest, problem, "cpu").isOk());
  manifest.fixed["weighs_keys"] = "1";
  EXPECT_EQ(checkServes(manifest, problem, "cpu").toString(), "invalid argument: weighs_keys = 1: must be 0");
  problem.fixed["weighs_keys"] = "1";
  EXPECT_TRUE(checkServes(manifest, problem, "cpu").isOk());
  manifest.fixed["own"] = "1"; // of a program of one's own
  EXPECT_TRUE(checkServes(manifest, problem, "cpu").isOk());
}

// Plans of nsa_bwd leave the rests of compressed gradients to `sum_parts`, and a later kernel reads them.
TEST(KernelMatch, AKernelThatLacksAViewOfItsOperatorDoesNotServe) {
  for (const char *op : {"sum_parts", "attention_dq", "compress_dz"}) {
    Manifest manifest;
    manifest.op = op;
    manifest.target = "cpu";
    ProblemKey problem;
    problem.op = op;
    for (const View view : findOperator(op)->planViews) {
      const Status refused = checkServes(manifest, problem, "cpu");
      EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(refused.error().field, viewRule(view).name);
      EXPECT_EQ(refused.error().value, "absent");
      EXPECT_EQ(refused.error().rule, std::string("must be a parameter of each kernel of ") + op);
      manifest.params.emplace_back().name = viewRule(view).name;
    }
    EXPECT_TRUE(checkServes(manifest, problem, "cpu").isOk());
  }
}

} // namespace
} // namespace nsa
