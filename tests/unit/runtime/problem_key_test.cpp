#include "runtime/engine/choices/problem_key.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

TEST(ProblemKey, IsReadFromItsText) {
  for (const char *text :
       {"window dtype=bf16 group=8 qk_dim=192 | batch=2 kv_heads=4 seqlen_k=2048", "cmp dtype=bf16 | batch=1",
        "softmax@0123456789abcdef columns=4096 dtype=bf16 | rows=8192", "compress cmp_kind=mlp |"}) {
    const std::optional<ProblemKey> key = ProblemKey::parse(text);
    ASSERT_TRUE(key) << text;
    EXPECT_EQ(key->text(), text);
  }
  EXPECT_EQ(ProblemKey::parse("window dtype=bf16 | batch=4")->buckets.at("batch"), 4);
  for (const char *text :
       {"", "window", "window dtype | batch=1", "window qk_dim=64 dtype=bf16 |", "window dtype=bf16 dtype=bf16 |",
        "window | batch=3", "window | batch=0", "window | batch=-2", "window | batch=01", "window | dtype=bf16",
        "window | | batch=1", "window  dtype=bf16 |", "window | batch=9223372036854775808"})
    EXPECT_FALSE(ProblemKey::parse(text)) << text;
}

TEST(ProblemKey, SaysHowAnotherDiffers) {
  const ProblemKey own = *ProblemKey::parse("window dtype=bf16 group=4 | batch=8 seqlen_k=1024 seqlen_q=16");
  const ProblemKey other = *ProblemKey::parse("window dtype=fp32 group=4 | batch=2 seqlen_k=4096 seqlen_q=16");
  EXPECT_EQ(own.fixedDifferences(other), 1u);
  EXPECT_FALSE(own.hasKernelOf(other));
  EXPECT_EQ(own.differenceText(other),
            "dtype=fp32 instead of bf16, batch=2 instead of 8, seqlen_k=4096 instead of 1024");
  EXPECT_EQ(own.distanceTo(other)->powers, 4);
  EXPECT_EQ(own.distanceTo(other)->size, 1 + 12 + 4);
  EXPECT_FALSE(own.distanceTo(*ProblemKey::parse("window dtype=bf16 group=4 | batch=8 seqlen_k=1024")));
  EXPECT_FALSE(own.distanceTo(*ProblemKey::parse("window dtype=bf16 group=4 | batch=8 keys=1024 seqlen_q=16")));
  EXPECT_EQ(own.differenceText(own), "");
  const ProblemKey more =
      *ProblemKey::parse("window dtype=bf16 group=4 key_offset=1 | batch=8 seqlen_k=1024 seqlen_q=16");
  EXPECT_EQ(own.fixedDifferences(more), 1u);
  EXPECT_EQ(own.differenceText(more), "key_offset=1 instead of none");
  const ProblemKey dense = *ProblemKey::parse("dense dtype=bf16 | batch=8");
  EXPECT_EQ(own.fixedDifferences(dense), 2u) << "the operator and the group";
  EXPECT_EQ(own.differenceText(dense), "group=none instead of 4, seqlen_k=none instead of 1024, seqlen_q=none instead "
                                       "of 16");
}

} // namespace
} // namespace nsa
