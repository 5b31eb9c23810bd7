// Keys that do not begin at position 0: shards of a sequence, whose merged results must be those of the whole. For
// every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/elements.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class KeyOffsets : public OperatorTestPerType {
protected:
  // A part of the whole's keys, in tokens: [begin, begin + tokens). Keys of cmp are the blocks that lie in it.
  struct Shard {
    int64_t begin, tokens;
  };

  // Runs each operator that takes offsets, with each template of attention that the executable tests.
  template <typename Body> void forEachCase(const Body &body) {
    for (const std::string &variant : testedVariants()) {
      useVariant(variant);
      for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp})
        body(op, std::string(operatorName(op)) + " by " + variant);
    }
  }

  static Spec withOffsets(Spec spec) {
    spec.keyOffset = true;
    return spec;
  }

  // The names that the operands of the operator have in drawn inputs.
  static T nameOf(const OperatorInputs &inputs, View view) {
    const Operand &operand = *definitionOf(inputs.spec.op).operandOf(view);
    return inputs.tensors.contains(operand.name) ? operand.name : operand.otherwise;
  }

  // The inputs of one shard for queries [firstQuery, firstQuery + queries) of the whole, which is one sequence with as
  // many queries as tokens.
  static OperatorInputs shardOf(const OperatorInputs &whole, int64_t firstQuery, int64_t queries, const Shard &shard) {
    const Spec &spec = whole.spec;
    const bool compressed = definitionOf(spec.op).keys == MetKeys::kBlocks;
    OperatorInputs inputs = tools::layOut(spec, {{queries}, {shard.tokens}});
    const auto copy = [&](T name, int64_t first, int64_t count) {
      const tools::HostTensor &from = whole.tensors.at(name);
      tools::HostTensor &to = inputs.tensors[name] =
          tools::HostTensor::make(from.dtype, tools::shapeOf(spec, name, inputs.extents));
      tools::HostTensor source = from;
      for (int64_t i = 0; i < count; ++i)
        std::ranges::copy(timeOf(spec, source, 0, first + i), timeOf(spec, to, 0, i).begin());
    };
    copy(nameOf(whole, View::kQ), firstQuery, queries);
    for (const View view : {View::kK, View::kV})
      copy(nameOf(whole, view), compressed ? shard.begin / spec.cmpStride : shard.begin,
           compressed ? spec.compressedBlocks(shard.tokens) : shard.tokens);
    // The last query stands at the shard's last token, and key 0 as far before it as in the whole.
    bindKeyOffsets(inputs, {static_cast<int32_t>(shard.begin - (firstQuery + queries) + shard.tokens)});
    return inputs;
  }

  // The merged rows of the shards, in the place of the whole's: each result counts as its log-sum-exp says.
  static void merge(const Spec &spec, const std::vector<NamedTensors> &parts, int64_t queries, int64_t firstQuery,
                    NamedTensors &whole) {
    for (int64_t row = 0; row < queries * spec.queryHeads; ++row) {
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (const NamedTensors &part : parts)
        most = std::max(most, elementOf(part.at(T::kLse), row));
      std::vector<double> shares;
      for (const NamedTensors &part : parts)
        sum += shares.emplace_back(std::isinf(most) ? 0 : std::exp(elementOf(part.at(T::kLse), row) - most));
      const int64_t target = firstQuery * spec.queryHeads + row;
      reference::storeElement(DType::kF32, whole.at(T::kLse).bytes.data(), target,
                              std::isinf(most) ? most : most + std::log(sum));
      for (int64_t column = 0; column < spec.vDim; ++column) {
        double value = 0;
        for (size_t i = 0; i < parts.size(); ++i)
          if (shares[i] > 0)
            value += shares[i] / sum * elementOf(parts[i].at(T::kOut), row * spec.vDim + column);
        reference::storeElement(spec.dtype, whole.at(T::kOut).bytes.data(), target * spec.vDim + column, value);
      }
    }
  }

  static NamedTensors emptyOutputs(const OperatorInputs &whole) {
    NamedTensors outputs;
    for (const T name : {T::kOut, T::kLse})
      outputs.emplace(name, tools::HostTensor::make(tools::dtypeOf(whole.spec, name),
                                                    tools::shapeOf(whole.spec, name, whole.extents)));
    return outputs;
  }
};
NSA_INSTANTIATE_PER_TYPE(KeyOffsets);

// As ring attention runs it: equal shards, and each shard of queries meets each shard of keys.
TEST_P(KeyOffsets, EqualShardsOfADenseBatchMergeToTheWhole) {
  forEachCase([&](Operator op, const std::string &trace) {
    for (const int64_t shards : {2, 3}) {
      SCOPED_TRACE(trace + " in " + std::to_string(shards));
      constexpr int64_t kTokens = 64;
      Spec spec = smallSpec(op, dtype());
      spec.cmpBlock = spec.cmpStride; // no block lies in two shards
      spec.window = 90;
      const int64_t tokens = shards * kTokens;
      const OperatorInputs whole = tools::drawInputs(spec, {{tokens}, {tokens}}, freshSeed());
      const tools::PlanHandle made = plan(withOffsets(spec), {1, kTokens, kTokens, kTokens});
      NamedTensors merged = emptyOutputs(whole);
      for (int64_t r = 0; r < shards; ++r) {
        std::vector<NamedTensors> parts;
        for (int64_t s = 0; s < shards; ++s) {
          const OperatorInputs shard = shardOf(whole, r * kTokens, kTokens, {s * kTokens, kTokens});
          ASSERT_EQ(elementOf(shard.tensors.at(T::kKOffset), 0), static_cast<double>((s - r) * kTokens));
          parts.push_back(run(made, shard));
          checkOutputs(shard, parts.back());
        }
        merge(spec, parts, kTokens, r * kTokens, merged);
      }
      checkOutputs(whole, merged);
    }
  });
}

// Shards of several lengths, of which each has the tokens of all blocks that begin in it.
TEST_P(KeyOffsets, UnevenShardsOfAPackedBatchMergeToTheWhole) {
  forEachCase([&](Operator op, const std::string &trace) {
    for (const std::vector<int64_t> &begins : {std::vector<int64_t>{0, 104}, {0, 48, 136}}) {
      SCOPED_TRACE(trace + " in " + std::to_string(begins.size()));
      constexpr int64_t kTokens = 200, kQueries = 40;
      Spec spec = smallSpec(op, dtype());
      spec.layout = Layout::kPacked;
      const bool compressed = definitionOf(op).keys == MetKeys::kBlocks;
      const OperatorInputs whole = tools::drawInputs(spec, {{kTokens}, {kTokens}}, freshSeed());
      const tools::PlanHandle made = plan(withOffsets(spec), {1, kQueries, kQueries, kTokens});
      NamedTensors merged = emptyOutputs(whole);
      for (int64_t first = 0; first < kTokens; first += kQueries) {
        std::vector<NamedTensors> parts;
        for (size_t s = 0; s < begins.size(); ++s) {
          const bool isLast = s + 1 == begins.size();
          const int64_t past = isLast ? kTokens : begins[s + 1] + (compressed ? spec.cmpBlock - spec.cmpStride : 0);
          const OperatorInputs shard = shardOf(whole, first, kQueries, {begins[s], past - begins[s]});
          parts.push_back(run(made, shard));
          checkOutputs(shard, parts.back());
        }
        merge(spec, parts, kQueries, first, merged);
      }
      checkOutputs(whole, merged);
    }
  });
}

// Queries that stand behind a shard look at its last keys. What lies behind those in memory is another sequence's.
TEST_P(KeyOffsets, NothingBehindAShardIsSeen) {
  forEachCase([&](Operator op, const std::string &trace) {
    for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
      SCOPED_TRACE(trace + " " + std::string(layoutName(layout)));
      Spec spec = smallSpec(op, dtype());
      spec.layout = layout;
      spec.window = 1000;
      OperatorInputs inputs = tools::drawInputs(spec, {{77, 77}, {77, 77}}, freshSeed());
      bindKeyOffsets(inputs, {-256, 0});
      const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
      const NamedTensors clean = run(made, inputs);
      checkOutputs(inputs, clean);
      const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
      for (const double value : {1000.0, std::numeric_limits<double>::quiet_NaN()}) {
        OperatorInputs spoilt = inputs;
        const bool compressed = definitionOf(op).keys == MetKeys::kBlocks;
        const int64_t keys = compressed ? spec.compressedBlocks(77) : 77;
        for (const View view : {View::kK, View::kV})
          for (int64_t key = 0; key < keys; ++key)
            fill(spec.dtype,
                 timeOf(spec, spoilt.tensors.at(nameOf(inputs, view)), sequences[1].keyBatch,
                        (compressed ? sequences[1].blockBegin : sequences[1].keyBegin) + key),
                 value);
        const NamedTensors after = run(made, spoilt);
        for (int64_t query = 0; query < 77; ++query)
          expectSameQuery(spec, clean, after, sequences[0], query);
        ASSERT_FALSE(HasFailure()) << "value " << value;
      }
    }
  });
}

TEST_P(KeyOffsets, AnOffsetOfZeroChangesNoBit) {
  forEachCase([&](Operator op, const std::string &) {
    for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
      Spec spec = smallSpec(op, dtype());
      spec.layout = layout;
      OperatorInputs inputs = tools::drawInputs(spec, {{90, 90}, {90, 90}}, freshSeed());
      const NamedTensors before = run(plan(spec, inputs.maxima), inputs);
      bindKeyOffsets(inputs, {0, 0});
      const NamedTensors after = run(plan(inputs.spec, inputs.maxima), inputs);
      for (const auto &[name, tensor] : before)
        EXPECT_EQ(after.at(name).bytes, tensor.bytes) << operatorName(op) << " " << tensorName(name);
    }
  });
}

// Offsets between the elements of a longer tensor.
TEST_P(KeyOffsets, OffsetsMayHaveAStride) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    Spec spec = smallSpec(Operator::kDense, dtype());
    spec.layout = layout;
    OperatorInputs inputs = tools::drawInputs(spec, {{50, 50, 50}, {60, 60, 60}}, freshSeed());
    bindKeyOffsets(inputs, {-7, 20, 3});
    checkOutputs(inputs, run(plan(inputs.spec, inputs.maxima), inputs, {.base = 3, .gap = 2}));
  }
}

// Whether calls bind offsets is a fact of the plan, because its kernels are compiled for it.
TEST_P(KeyOffsets, ThePlanSaysWhetherCallsBindThem) {
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp})
    for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
      SCOPED_TRACE(std::string(operatorName(op)) + " " + std::string(layoutName(layout)));
      Spec spec = smallSpec(op, dtype());
      spec.layout = layout;
      const OperatorInputs without = tools::drawInputs(spec, {{40}, {40}}, freshSeed());
      OperatorInputs with = without;
      bindKeyOffsets(with, {0});
      const Status refused = tryRun(plan(spec, without.maxima), with).status();
      EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument) << refused.toString();
      EXPECT_EQ(refused.error().field, "k_offset");
      EXPECT_NE(refused.error().rule.find("key_offset = 1"), std::string::npos) << refused.error().rule;
      const Status missed = tryRun(plan(with.spec, without.maxima), without).status();
      EXPECT_EQ(missed.code(), ErrorCode::kInvalidArgument) << missed.toString();
      EXPECT_EQ(missed.error().field, "k_offset");
      EXPECT_NE(missed.error().rule.find("key_offset is 1"), std::string::npos) << missed.error().rule;
    }
}

TEST_P(KeyOffsets, OtherOperatorsRefuseThem) {
  for (const OperatorDef &def : publicOperators()) {
    // No other template serves the kernels of a gradient.
    if (def.operandOf(T::kKOffset) || def.hasCache || (def.isGradient() && session->variant() != kTileTemplate))
      continue;
    const Spec spec = smallSpec(def.op, dtype());
    OperatorInputs inputs = tools::drawInputs(spec, {{40}, {40}}, freshSeed());
    const tools::PlanHandle made = plan(spec, inputs.maxima);
    ASSERT_TRUE(tryRun(made, inputs).isOk());
    bindKeyOffsets(inputs, {0});
    const Status status = tryRun(made, inputs).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << status.toString();
    EXPECT_EQ(status.error().field, "k_offset");
    EXPECT_NE(status.error().rule.find("no tensor of operator " + std::string(def.name)), std::string::npos)
        << status.error().rule;
  }
}

} // namespace
} // namespace nsa::test
