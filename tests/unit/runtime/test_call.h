// A well-formed call of any operator, for tests that break one rule of its tensors at a time.
// Ownership: a TestCall owns the lengths that its tensors point to.
// Thread-safety: values.
#pragma once

#include "runtime/base/signature.h"
#include "runtime/engine/call/call.h"
#include "runtime/engine/call/host_lengths.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace nsa::test {

// A call with all tensors of its operator, in memory that is not read.
struct TestCall {
  static constexpr int64_t kRoom = 96; // of decode's cache

  Spec spec;
  Maxima maxima = {.batch = 2, .tokensQ = 128, .seqlenQ = 64, .seqlenK = 96};
  Bindings bindings;
  std::array<int32_t, 3> offsetsQ = {0, 30, 80}, offsetsK = {0, 40, 120};
  std::array<int32_t, 2> cacheLengths = {0, 30}, firstKeys = {-64, 16};

  TestCall(Operator op, Layout layout) {
    spec.op = op;
    spec.layout = layout;
    spec.queryHeads = 6;
    spec.kvHeads = 2;
    spec.qkDim = 24;
    spec.vDim = 16;
    spec.cmpBlock = 16;
    spec.cmpStride = 8;
    spec.selBlock = 16;
    spec.selCount = 4;
    spec.mlpHidden = 10;
    spec.keyOffset = spec.makeIndex = true; // read by few operators
    bindAll();
  }

  int64_t timeQ() const { return spec.layout == Layout::kPacked ? 80 : 64; }
  int64_t timeK() const {
    const bool ownTokens = spec.op != Operator::kCmp && spec.op != Operator::kCmpBwd && spec.op != Operator::kSelect &&
                           spec.op != Operator::kInvert;
    if (spec.op == Operator::kDecode)
      return timeQ();
    return spec.layout == Layout::kPacked ? 120 : ownTokens ? 96 : timeQ();
  }

  void bindAll() {
    bindings = {};
    for (const Operand &operand : operandsOf(spec.op)) {
      const std::optional<TensorName> of = gradientOf(operand.name);
      if (takes(spec, operand.name) && (!of || !operand.isWritten() || definitionOf(spec.op).operandOf(*of)))
        bind(operand.name);
    }
    if (spec.layout == Layout::kPacked && readsLengths(spec.op)) {
      set(TensorName::kCuSeqlensQ, offsetsQ.data(), DType::kI32, {3});
      if (spec.op != Operator::kDecode)
        set(TensorName::kCuSeqlensK, offsetsK.data(), DType::kI32, {3});
    }
    if (spec.op == Operator::kDecode)
      set(TensorName::kCacheSeqlens, cacheLengths.data(), DType::kI32, {2});
  }
  // Tensors lie apart.
  static void *placeOf(TensorName name) { return reinterpret_cast<void *>((static_cast<uintptr_t>(name) + 1) << 32); }
  void bind(TensorName name) {
    const TensorRule &rule = tensorRule(name);
    std::vector<int64_t> shape;
    if (rule.lead == Lead::kCache || rule.lead == Lead::kCacheBlocks || rule.lead == Lead::kRing) {
      const int64_t blocks = spec.compressedBlocks(kRoom);
      shape = {2, rule.lead == Lead::kRing ? spec.cmpBlock : rule.lead == Lead::kCache ? kRoom : blocks};
    } else if (rule.lead == Lead::kSequences) {
      return set(name, firstKeys.data(), spec.types().of(rule.role), {2});
    } else if (rule.lead == Lead::kPositions) {
      shape = {maxima.seqlenK};
    } else if (rule.lead == Lead::kEntries) {
      const bool packed = spec.layout == Layout::kPacked;
      shape = packed ? std::vector<int64_t>() : std::vector<int64_t>{2};
      shape.push_back(spec.kvHeads);
      shape.push_back((packed ? timeK() / spec.selBlock + 4 : timeK() / spec.selBlock + 1) + timeQ() * spec.selCount);
      return set(name, placeOf(name), spec.types().of(rule.role), shape);
    } else if (rule.lead != Lead::kNone) {
      if (spec.layout == Layout::kDense)
        shape.push_back(2);
      const int64_t blocks = spec.layout == Layout::kPacked ? spec.compressedBlocks(40) + spec.compressedBlocks(80)
                                                            : spec.compressedBlocks(timeK());
      shape.push_back(rule.lead == Lead::kQueries ? timeQ() : rule.lead == Lead::kKeys ? timeK() : blocks);
    }
    for (int i = 0; i < rule.axisCount; ++i)
      shape.push_back(axisExtent(rule.axes[static_cast<size_t>(i)], spec));
    set(name, placeOf(name), spec.types().of(rule.role), shape);
  }
  void set(TensorName name, void *data, DType dtype, const std::vector<int64_t> &shape) {
    Tensor &tensor = bindings[name];
    tensor = {.data = data, .dtype = dtype, .rank = static_cast<int>(shape.size()), .shape = {}, .strides = {}};
    int64_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      tensor.shape[axis] = shape[axis];
      tensor.strides[axis] = stride;
      stride *= shape[axis];
    }
  }
  // All but one.
  void drop(TensorName name) {
    Bindings kept;
    for (int i = 0; i < kTensorNames; ++i)
      if (const auto other = static_cast<TensorName>(i); other != name && bindings.find(other))
        kept[other] = *bindings.find(other);
    bindings = kept;
  }

  Status check() {
    Call call;
    const CallRules rules(spec, maxima);
    NSA_RETURN_IF_ERROR(prepareCall(rules, bindings, call));
    return checkHostLengths(rules, call);
  }
};

} // namespace nsa::test
