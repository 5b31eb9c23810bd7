// The text for a tuning that timed a part of a call. A stored choice keeps the same text.
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/report/timed_shape.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

std::string cut(Operator op, const Maxima &maxima, const TimedShape &timed) {
  Spec spec;
  spec.op = op;
  return cutText(spec, maxima, timed);
}

TEST(TimedShape, SaysWhatWasLeftOut) {
  const Maxima one = {1, 1024, 1024, 1024}, four = {4, 4096, 1024, 2048};
  EXPECT_EQ(cut(Operator::kDense, one, {1, 1024, 1024}), "");
  EXPECT_EQ(cut(Operator::kDense, one, {1, 64, 1024}), "64 of 1024 queries timed");
  EXPECT_EQ(cut(Operator::kDense, one, {1, 64, 512}), "64 of 1024 queries over 512 of 1024 keys timed");
  EXPECT_EQ(cut(Operator::kDense, four, {4, 1024, 512}), "512 of 2048 keys timed");
  EXPECT_EQ(cut(Operator::kSel, four, {1, 1024, 2048}), "1024 of 4096 queries timed") << "a sequence of four";
  EXPECT_EQ(cut(Operator::kMerge, {64, 64, 1, 8192}, {8, 1, 8192}), "8 of 64 queries timed");
}

TEST(TimedShape, CountsWhatTheOperatorSees) {
  const Maxima two = {2, 2048, 1024, 1024};
  EXPECT_EQ(cut(Operator::kCompress, two, {2, 1, 1024}), "") << "no query";
  EXPECT_EQ(cut(Operator::kCompress, two, {1, 1, 1024}), "1024 of 2048 keys timed");
  EXPECT_EQ(cut(Operator::kCombine, two, {2, 1024, 64}), "") << "no key";
  // A packed batch whose tokens are fewer than its longest sequence would have in each place.
  EXPECT_EQ(cut(Operator::kDense, {3, 2048, 1024, 1024}, {2, 1024, 1024}), "") << "that many queries and no more";
}

TEST(TimedShape, AChoiceKeepsTheText) {
  for (const std::string text : {"64 of 1024 queries timed", "64 of 1024 queries over 512 of 1024 keys timed", ""}) {
    const std::string provenance = "compiler=01 driver=13000 search=exhaustive" + cutProvenance(text);
    EXPECT_EQ(cutTextOf(provenance), text);
    EXPECT_EQ(cutTextOf(remadeProvenance(provenance, "02")), text) << "the measurement stays";
  }
  EXPECT_EQ(cutTextOf(""), "");
  EXPECT_EQ(cutProvenance("64 of 1024 queries timed"), " timed=64_of_1024_queries");
}

} // namespace
} // namespace nsa
