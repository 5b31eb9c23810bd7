// Which stored kernels a plan may take.
#include "runtime/engine/choices/kernel_match.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

// A kernel for the CPU, and the problem for which it is stored.
struct Stored {
  explicit Stored(const char *op) {
    manifest.op = problem.op = op;
    manifest.target = "cpu";
  }
  Status serves() const { return checkServes(manifest, problem, "cpu"); }

  Manifest manifest;
  ProblemKey problem;
};

TEST(KernelMatch, AKernelThatCutsSequencesAtOtherQueriesDoesNotServe) {
  Stored stored("combine");
  Manifest &manifest = stored.manifest;
  EXPECT_TRUE(stored.serves().isOk());
  manifest.fixed["packed"] = "1";
  ManifestParam begin, step;
  begin.name = "query_begin";
  step.name = "query_step";
  manifest.params = {begin};
  const Status refused = stored.serves();
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().field, "query_step");
  EXPECT_EQ(refused.error().value, "absent");
  EXPECT_NE(refused.error().rule.find("query_begin"), std::string::npos);
  manifest.params = {begin, step};
  EXPECT_TRUE(stored.serves().isOk());
  // A dense chunk has the same queries of each sequence.
  manifest.fixed["packed"] = "0";
  manifest.params = {begin};
  EXPECT_TRUE(stored.serves().isOk());
}

// The key of a problem leaves out what is 0 in most problems. A kernel with another value computes something else.
TEST(KernelMatch, WhatAKeyLeavesOutIsZero) {
  Stored stored("deltas");
  stored.manifest.fixed["key_offset"] = "0";
  EXPECT_TRUE(stored.serves().isOk());
  stored.manifest.fixed["key_offset"] = "1";
  EXPECT_EQ(stored.serves().toString(), "invalid argument: key_offset = 1: must be 0");
  stored.problem.fixed["key_offset"] = "1";
  EXPECT_TRUE(stored.serves().isOk());
  stored.manifest.fixed["own"] = "1"; // of a program of one's own
  EXPECT_TRUE(stored.serves().isOk());
}

// Plans of nsa_bwd leave the rests of compressed gradients to `sum_parts`, and a later kernel reads them.
TEST(KernelMatch, AKernelThatLacksAViewOfItsOperatorDoesNotServe) {
  for (const char *op : {"sum_parts", "attention_dq", "compress_dz", "sel_dq_slots", "sum_slots"}) {
    Stored stored(op);
    for (const View view : findOperator(op)->planViews) {
      const Status refused = stored.serves();
      EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(refused.error().field, viewRule(view).name);
      EXPECT_EQ(refused.error().value, "absent");
      EXPECT_EQ(refused.error().rule, std::string("must be a parameter of each kernel of ") + op);
      stored.manifest.params.emplace_back().name = viewRule(view).name;
    }
    EXPECT_TRUE(stored.serves().isOk());
  }
}

// `compress_dw` reads the rests of hidden values that `compress_dz` leaves behind the heads.
TEST(KernelMatch, AKernelWithoutRestsOfHiddenValuesDoesNotServe) {
  Stored stored("compress_dz");
  for (const View view : findOperator("compress_dz")->planViews)
    stored.manifest.params.emplace_back().name = viewRule(view).name;
  for (const char *dtype : {"bf16", "fp16"}) {
    stored.manifest.fixed["dtype"] = dtype;
    EXPECT_EQ(stored.serves().toString(),
              "invalid argument: kv_heads = absent: must be a parameter of each compress_dz of 16 bits");
  }
  stored.manifest.fixed["dtype"] = "fp32";
  EXPECT_TRUE(stored.serves().isOk());
  stored.manifest.fixed["dtype"] = "bf16";
  stored.manifest.params.emplace_back().name = "kv_heads";
  EXPECT_TRUE(stored.serves().isOk());
}

} // namespace
} // namespace nsa
