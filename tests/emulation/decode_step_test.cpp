// The kernel decode_step in the emulator, against the definition of a step in fp64.
#include "step_variants.h"
#include "step_world.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <ostream>
#include <random>

#include <gtest/gtest.h>

#define NSA_DECLARE(name)                                                                                              \
  namespace variant_##name {                                                                                           \
    extern const emulation::StepVariant variant;                                                                       \
  }
NSA_STEP_VARIANTS(NSA_DECLARE)

namespace {

using namespace emulation;

struct Named {
  const char *name;
  const StepVariant *variant;

  friend std::ostream &operator<<(std::ostream &stream, const Named &named) { return stream << named.name; }
};

#define NSA_NAME(name) Named{#name, &variant_##name::variant},
const Named kVariants[] = {NSA_STEP_VARIANTS(NSA_NAME)};

class DecodeStep : public ::testing::TestWithParam<Named> {
protected:
  const StepVariant &variant() const { return *GetParam().variant; }
  const StepProblem &problem() const { return variant().problem; }
  bool isSmall() const { return problem().qkDim * problem().group <= 600; }
  // Emulating a large shape or a large cluster takes long, so they get fewer cases.
  int cases(int most) const { return std::max(most * 2 / (std::max(problem().cluster, 2) * (isSmall() ? 1 : 4)), 1); }

  StepReport run(const StepCase &test) const {
    StepReport report = runStepCase(variant(), test);
    for (const std::string &error : report.errors)
      ADD_FAILURE() << error << "\n  at seed " << test.seed << ", order " << test.order << ", length "
                    << test.lengths[0];
    return report;
  }

  // A case drawn from a seed: lengths about the edges, layouts, windows, absent and special values.
  StepCase draw(uint64_t seed) const {
    std::mt19937_64 random(seed);
    const auto number = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<uint64_t>(most - least + 1));
    };
    const StepProblem &p = problem();
    StepCase test;
    test.seed = random();
    test.order = random();
    test.kvHeads = number(1, 3);
    // New tokens complete one compressed block at most.
    if (const int most = std::min(p.cmpStride, isSmall() ? 8 : 2); number(0, 1) == 0)
      test.tokens = number(1, p.hasCmp || p.hasSel ? most : 8);
    const int sequences = isSmall() && test.tokens < 4 ? number(1, 3) : 1;
    for (int s = 0; s < sequences; ++s) {
      const int edges[] = {0,
                           p.cmpBlock - 1 + p.cmpStride * number(0, (p.room - p.cmpBlock) / p.cmpStride),
                           p.selBlock * number(0, p.room / p.selBlock - 1) + number(-1, 1),
                           p.selBlock * p.selCount + number(-2, 1),
                           p.room - 1,
                           number(0, p.room - 1),
                           number(0, p.room - 1)};
      test.lengths.push_back(std::clamp(edges[number(0, 6)], 0, p.room - test.tokens));
    }
    if (number(0, 2) == 0)
      for (int s = 0; s < sequences; ++s)
        test.added.push_back(number(0, test.tokens));
    const int windows[] = {1, 7, 60, 64, 512, 100000};
    test.window = windows[number(0, 5)];
    test.localBlocks = std::min(number(1, 3), p.selCount);
    test.initBlocks = std::min(number(0, 3), p.selCount - test.localBlocks);
    test.onePool = number(0, 2) == 0;
    test.ownQCmp = number(0, 2) == 0;
    test.outputs = number(0, 5) != 0;
    test.padding = number(0, 2) * 8;
    test.shift = number(0, 5) == 0 ? 2 * number(1, 7) : 0;
    test.weightPadding = number(0, 2);
    test.weightGap = number(0, 2) / 2;
    test.addsPe = number(0, 2) != 0;
    test.addsBias = number(0, 2) != 0;
    test.sharpness = number(0, 1) != 0 ? 4.0F : 1.0F;
    test.equalKeys = number(0, 9) == 0;
    test.clustersAtOnce = number(1, 3);
    if (number(0, 7) == 0) {
      const float values[] = {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF};
      test.oddKey = number(0, test.lengths[0] / p.cmpStride);
      test.oddValue = values[number(0, 2)];
    }
    test.oneQCmp = number(0, 3) == 0;
    return test;
  }
};

TEST_P(DecodeStep, TheFirstTokens) {
  for (int length : {0, 1, problem().cmpBlock - 2, problem().cmpBlock - 1, problem().cmpBlock}) {
    StepCase test;
    test.lengths = {length};
    test.window = 60;
    if (length < 2 || isSmall())
      run(test);
  }
}

TEST_P(DecodeStep, DrawnCases) {
  for (int i = 0; i < cases(12); ++i)
    run(draw(static_cast<uint64_t>(i) + 1));
}

// The sums of equal blocks are equal to the last bit, wherever the blocks lie among the pieces of keys.
TEST_P(DecodeStep, EqualBlocksAreListedByNumber) {
  for (int i = 0; problem().hasSel && i < cases(6); ++i) {
    StepCase test;
    test.seed = static_cast<uint64_t>(i) + 1;
    test.equalKeys = true;
    test.lengths = {problem().room - 1 - 37 * i % (problem().room / 4)};
    run(test);
  }
}

// Rows that do not exist have greater scores, and no part in the importance of blocks. The last length makes a row.
TEST_P(DecodeStep, LowScoresKeepTheirDigits) {
  const int last = problem().room - problem().cmpStride;
  for (int i = 0; problem().hasSel && i < cases(4); ++i) {
    StepCase test;
    test.seed = static_cast<uint64_t>(i) + 1;
    test.level = -300;
    test.equalKeys = true;
    test.shift = i % 2 == 0 ? 2 : 0;
    test.lengths = {last - last % problem().cmpStride - 1 - i / 2};
    run(test);
  }
}

// A barrier that is missing shows here, and so does a sum whose order is not fixed.
TEST_P(DecodeStep, TheOrderOfThreadsDoesNotMatter) {
  for (int i = 0; i < cases(4); ++i) {
    StepCase test = draw(static_cast<uint64_t>(i) + 101);
    const StepReport first = run(test);
    test.order = test.order * 3 + 1;
    test.clustersAtOnce = 3;
    EXPECT_TRUE(run(test).results == first.results) << "seed " << test.seed;
  }
}

// Memory that is used again for each piece of keys needs a barrier in front of its next use.
TEST_P(DecodeStep, AStarvedWarpMissesNothing) {
  for (int i = 0; i < (problem().hasCmp ? cases(4) : cases(200)); ++i) {
    StepCase test;
    test.lengths = {problem().room - 1};
    test.seed = static_cast<uint64_t>(i) + 1;
    test.order = 2 * test.seed + 1;
    run(test);
  }
}

template <typename Condition> std::vector<Named> variantsWhere(const Condition &condition) {
  std::vector<Named> found;
  std::copy_if(std::begin(kVariants), std::end(kVariants), std::back_inserter(found),
               [&](const Named &named) { return condition(named.variant->problem); });
  return found;
}

// Variants that compress with weights.
class DecodeWeights : public DecodeStep {};

// The last of the tokens, or one in front of others, completes a row. Rows of weights begin anywhere.
TEST_P(DecodeWeights, ARowIsMade) {
  const int blocks = (problem().room - problem().cmpBlock) / problem().cmpStride;
  for (int i = 0; i < std::max(cases(8), 3); ++i) {
    StepCase test;
    test.seed = static_cast<uint64_t>(i) + 1;
    test.order = test.seed;
    test.tokens = i % 2 == 0 ? 1 : std::min(problem().cmpStride, 3);
    test.kvHeads = 1 + i % 2;
    const int complete = problem().cmpBlock + problem().cmpStride * (i * i % blocks);
    test.lengths = {complete - 1 - i % 2, complete - test.tokens};
    test.addsPe = i % 4 < 2;
    test.addsBias = i % 3 != 1;
    test.weightPadding = i == 1 ? 1 : 0;
    test.shift = i == 2 ? 6 : 0;
    test.padding = i == 3 ? 8 : 0;
    test.weightGap = i == 3 || i == 0 ? 1 : 0;
    run(test);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DecodeWeights, ::testing::ValuesIn(variantsWhere([](const StepProblem &p) {
                           return p.compression != Compression::kMean;
                         })),
                         [](const auto &info) { return std::string(info.param.name); });

// Variants with small shapes.
class BadLengths : public DecodeStep {};

// Nothing is written for the sequence, the rule is reported, and the other sequences are computed.
TEST_P(BadLengths, ASequenceThatBreaksARule) {
  const int length = std::min(problem().room / 2, 100);
  StepCase good;
  good.lengths = {length, length + 3, 5};
  good.kvHeads = 2;
  good.window = 60;
  good.faultySequence = 1;
  const auto breaks = [&](int code, auto change) {
    StepCase test = good;
    test.code = code;
    change(test);
    run(test);
  };
  const auto longer = [&](StepCase &test) { test.capacity = problem().room; };
  breaks(8, [&](StepCase &test) { test.faultyLength = -1; });
  breaks(8, [&](StepCase &test) { longer(test), test.faultyLength = 1 << 30; });
  breaks(9, [&](StepCase &test) { longer(test), test.faultyLength = test.capacity; });
  breaks(5, [&](StepCase &test) { test.faultyLength = problem().room / 2, test.maxSeqlenK = problem().room / 2; });
  if (problem().pageSize > 0)
    breaks(10, [&](StepCase &test) { test.faultyPage = true; });
}

TEST_P(BadLengths, OffsetsThatFall) {
  StepCase test;
  test.lengths = {5, 9};
  test.added = {1, 1};
  test.kvHeads = 2;
  test.faultySequence = 1;
  test.faultyOffset = true;
  test.code = 1;
  run(test);
}

INSTANTIATE_TEST_SUITE_P(All, BadLengths, ::testing::ValuesIn(variantsWhere([](const StepProblem &p) {
                           return p.qkDim * p.group <= 600;
                         })),
                         [](const auto &info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(All, DecodeStep, ::testing::ValuesIn(kVariants),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
