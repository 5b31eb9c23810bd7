// Gradients of attention where queries, keys or values have a mean. A rounded output is then wrong by as much in a row
// whose gradient is small, and what that leaves of the sum of dS is multiplied with the mean of the keys. For every
// operator with gradients of attention, on every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/elements.h"
#include "tools/support/forward_pass.h"

#include <cmath>
#include <numeric>

namespace nsa::test {
namespace {

using T = TensorName;

class CommonParts : public OperatorTestPerType {
protected:
  struct Means {
    double q, k, v;
  };
  // Keys that many times the deviation of their elements lie from 0, and values; and queries too, whose scores spread
  // less evenly.
  static constexpr Means kMeans[] = {{0, 2, 1}, {0, 4, 0.5}, {0, 0, 1}, {0.5, 2, 1}};

  static Spec specOf(Operator op) {
    Spec spec = smallSpec(op, dtype());
    spec.queryHeads = 2;
    spec.kvHeads = 1;
    spec.qkDim = spec.vDim = 64;
    spec.window = 128;
    return spec;
  }

  // Of keys and values behind the first sequence of a packed batch the mean has another sign.
  static void addMean(OperatorInputs &inputs, std::initializer_list<T> names, double mean, double firstShare = 1) {
    for (const T name : names)
      if (const auto found = inputs.tensors.find(name); found != inputs.tensors.end()) {
        tools::HostTensor &tensor = found->second;
        const auto past = static_cast<int64_t>(std::llround(firstShare * static_cast<double>(tensor.elements())));
        for (int64_t i = 0; i < tensor.elements(); ++i)
          reference::storeElement(tensor.dtype, tensor.bytes.data(), i,
                                  (i < past ? mean : -mean) +
                                      reference::loadElement(tensor.dtype, tensor.bytes.data(), i));
      }
  }

  void check(const Spec &spec, const tools::SequenceLengths &lengths, std::span<const Means> means = kMeans) {
    const OperatorInputs drawn = tools::drawInputs(spec, lengths, freshSeed(), tools::Saved::kByCaller);
    const tools::PlanHandle made = plan(spec, drawn.maxima);
    const auto tokens = static_cast<double>(std::reduce(lengths.k.begin(), lengths.k.end()));
    const double share = spec.layout == Layout::kPacked ? static_cast<double>(lengths.k.front()) / tokens : 1;
    for (const Means &mean : means) {
      SCOPED_TRACE(std::string(operatorName(spec.op)) + ", means " + std::to_string(mean.q) + " of queries, " +
                   std::to_string(mean.k) + " of keys, " + std::to_string(mean.v) + " of values");
      OperatorInputs inputs = drawn;
      addMean(inputs, {T::kQ, T::kQCmp}, mean.q);
      addMean(inputs, {T::kK, T::kKCmp, T::kKSel, T::kKWin}, mean.k, share);
      addMean(inputs, {T::kV, T::kVCmp, T::kVSel, T::kVWin}, mean.v, share);
      if (spec.op == Operator::kCmpBwd) {
        addMean(inputs, {T::kKComp}, mean.k);
        addMean(inputs, {T::kVComp}, mean.v);
      }
      tools::addReferenceSaved(inputs);
      checkOutputs(inputs, run(made, inputs));
    }
  }
};
NSA_INSTANTIATE_PER_TYPE(CommonParts);

TEST_P(CommonParts, OfAttention) {
  for (const Operator op : {Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd})
    check(specOf(op), {{500}, {500}});
  Spec narrow = specOf(Operator::kWindowBwd);
  narrow.window = 5; // some rows of a tile see no key that others see
  narrow.layout = Layout::kPacked;
  check(narrow, {{70, 0, 33}, {90, 7, 133}});
}

// `sel_bwd` has other kernels of queries for large groups.
TEST_P(CommonParts, OfSelectedAttention) {
  for (const int32_t heads : {2, 8}) {
    Spec spec = specOf(Operator::kSelBwd);
    spec.queryHeads = heads;
    spec.selBlock = 32;
    spec.selCount = 8;
    check(spec, {{300}, {500}});
    spec.layout = Layout::kPacked;
    spec.selCount = 5;
    check(spec, {{90, 0, 150}, {200, 7, 150}}, std::span(kMeans).first(1));
  }
}

// What all tokens or hidden values have in common is multiplied with what rounding leaves of the sum of the gradients
// of compressed keys, which is 0. Tokens of a large mean have hidden values of a large mean.
TEST_P(CommonParts, OfWhatIsMultipliedWithWeights) {
  for (const auto &[kind, name, mean] :
       {std::tuple{CmpKind::kLinear, T::kKCmp, 16}, {CmpKind::kMlp, T::kKCmp, 16}, {CmpKind::kMlp, T::kB1K, 1}})
    for (const int32_t branches : {kBranchCmp | kBranchWin, int32_t{kBranchCmp}}) {
      // With one branch the batch is packed.
      SCOPED_TRACE(std::string(cmpKindName(kind)) + " " + std::string(tensorName(name)) + " branches " +
                   std::to_string(branches));
      Spec spec = smallSpec(Operator::kNsaBwd, dtype());
      spec.branches = branches;
      spec.layout = branches == kBranchCmp ? Layout::kPacked : Layout::kDense;
      spec.cmpKind = kind;
      spec.mlpHidden = 64;
      const std::vector<int64_t> lengths =
          branches == kBranchCmp ? std::vector<int64_t>{300, 0, 7, 250} : std::vector<int64_t>{300, 300};
      OperatorInputs inputs = tools::drawInputs(spec, {lengths, lengths}, freshSeed(), tools::Saved::kByCaller);
      addMean(inputs, {name}, mean);
      moveOffKink(inputs);
      tools::addReferenceSaved(inputs);
      checkOutputs(inputs, run(inputs));
    }
}

// A few keys have most of the weight here. The rest must be multiplied with the mean by these weights and not with
// another mean.
TEST_P(CommonParts, OfUnevenWeights) {
  for (const int32_t qkDim : {16, 128})
    for (const Operator op : {Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd, Operator::kSelBwd}) {
      SCOPED_TRACE(std::string(operatorName(op)) + " " + std::to_string(qkDim));
      Spec spec = specOf(op);
      spec.qkDim = qkDim;
      spec.vDim = 16;
      spec.selCount = 24;
      spec.scale = qkDim == 16 ? 1 : 0.3f;
      OperatorInputs inputs = tools::drawInputs(spec, {{500}, {500}}, freshSeed(), tools::Saved::kByCaller);
      addMean(inputs, {T::kV, T::kVComp, T::kVSel, T::kVWin}, 4);
      tools::addReferenceSaved(inputs);
      checkOutputs(inputs, run(inputs));
    }
}

// A bias of `linear` or `mlp` is a mean of all compressed values, so that the outputs of the branch are large, and what
// is rounded of them.
TEST_P(CommonParts, OfBiases) {
  for (const auto &[kind, bias] : {std::pair{CmpKind::kLinear, T::kBV}, {CmpKind::kMlp, T::kB2V}}) {
    SCOPED_TRACE(cmpKindName(kind));
    Spec spec = specOf(Operator::kNsaBwd);
    spec.branches = kBranchCmp | kBranchWin;
    spec.cmpKind = kind;
    spec.mlpHidden = 16;
    spec.scale = 0.3f; // a few keys have most of the weight
    OperatorInputs inputs = tools::drawInputs(spec, {{500}, {500}}, freshSeed(), tools::Saved::kByCaller);
    moveOffKink(inputs);
    addMean(inputs, {bias}, 4);
    tools::addReferenceSaved(inputs);
    checkOutputs(inputs, run(inputs));
  }
}

TEST_P(CommonParts, OfTheWholeForwardPass) {
  Spec spec = specOf(Operator::kNsaBwd);
  spec.selBlock = 32;
  spec.selCount = 8;
  check(spec, {{500}, {500}});
}

} // namespace
} // namespace nsa::test
