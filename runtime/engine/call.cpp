#include "runtime/engine/call.h"

#include "runtime/base/manifest.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numbers>
#include <string>

namespace nsa {

namespace {

constexpr std::string_view kTensorNameTexts[kTensorNames] = {
    "q", "k", "v", "k_win", "v_win", "out", "lse", "cu_seqlens_q", "cu_seqlens_k"};

void setScalar(std::array<uint64_t, kScalars> &scalars, Scalar name, int64_t value) {
  scalars[static_cast<size_t>(name)] = static_cast<uint32_t>(value);
}

// Checks one operator's bindings. Members are what the checks establish on the way, each used by the later ones.
class CallChecker {
public:
  CallChecker(const CallRules &rules, const Bindings &bindings, Call &call)
      : rules(rules), spec(rules.spec), maxima(rules.maxima), bindings(bindings), call(call),
        packed(spec.layout == Layout::kPacked), timeAxis(packed ? 0 : 1), headAxis(timeAxis + 1),
        dimAxis(timeAxis + 2) {}

  Status run() {
    TensorName k = bound(TensorName::kKWin) ? TensorName::kKWin : TensorName::kK;
    TensorName v = bound(TensorName::kVWin) ? TensorName::kVWin : TensorName::kV;
    NSA_RETURN_IF_ERROR(checkPresence(k, v));
    NSA_RETURN_IF_ERROR(checkLengths());
    NSA_RETURN_IF_ERROR(checkRows(TensorName::kQ, View::kQ, spec.queryHeads, spec.qkDim, nullptr, false));
    NSA_RETURN_IF_ERROR(readSizes(k));
    NSA_RETURN_IF_ERROR(checkRows(k, View::kK, spec.kvHeads, spec.qkDim, nullptr, false));
    NSA_RETURN_IF_ERROR(checkRows(v, View::kV, spec.kvHeads, spec.vDim, &k, false));
    const TensorName q = TensorName::kQ;
    NSA_RETURN_IF_ERROR(checkRows(TensorName::kOut, View::kOut, spec.queryHeads, spec.vDim, &q, true));
    if (bound(TensorName::kLse))
      NSA_RETURN_IF_ERROR(checkLse());
    NSA_RETURN_IF_ERROR(checkMaxima());
    fillScalars();
    return Status::ok();
  }

private:
  const Tensor *bound(TensorName name) const {
    const std::optional<Tensor> &tensor = bindings[static_cast<size_t>(name)];
    return tensor ? &*tensor : nullptr;
  }
  const Tensor &tensor(TensorName name) const { return *bound(name); }

  static Status broken(TensorName name, const char *aspect, std::string value, std::string rule) {
    return Status::invalid(std::string(tensorName(name)) + aspect, std::move(value), std::move(rule));
  }

  static std::string shapeText(const Tensor &tensor) {
    std::string text = "[";
    for (int i = 0; i < tensor.rank; ++i)
      text += (i ? ", " : "") + std::to_string(tensor.shape[static_cast<size_t>(i)]);
    return text + "]";
  }

  Status checkPresence(TensorName k, TensorName v) const {
    for (TensorName name : {TensorName::kQ, k, v, TensorName::kOut})
      if (!bound(name))
        return broken(name, "", "absent", "must be bound");
    bool anyLengths = bound(TensorName::kCuSeqlensQ) || bound(TensorName::kCuSeqlensK);
    if (packed && !anyLengths)
      return broken(TensorName::kCuSeqlensQ, "", "absent", "packed layout needs cu_seqlens_q or cu_seqlens_k");
    if (!packed)
      for (TensorName name : {TensorName::kCuSeqlensQ, TensorName::kCuSeqlensK})
        if (bound(name))
          return broken(name, "", "bound", "belongs to the packed layout only");
    return Status::ok();
  }

  // Rules of any tensor: dtype, rank, extents, strides, pointer.
  Status checkTensor(TensorName name, DType dtype, int rank, bool written) const {
    const Tensor &t = tensor(name);
    if (t.dtype != dtype)
      return broken(name, ".dtype", std::string(dtypeName(t.dtype)), "must be " + std::string(dtypeName(dtype)));
    if (t.rank != rank)
      return broken(name, ".rank", std::to_string(t.rank), "must be " + std::to_string(rank));
    // Without elements no stride is ever used; row-major ones come out as 0 then.
    bool emptyTensor = std::find(t.shape.begin(), t.shape.begin() + rank, 0) != t.shape.begin() + rank;
    for (size_t axis = 0; axis < static_cast<size_t>(rank); ++axis) {
      int64_t extent = t.shape[axis];
      int64_t stride = t.strides[axis];
      // Kernels count rows in 32 bits; offsets in memory are 64 bits wide.
      if (extent < 0 || extent > std::numeric_limits<int32_t>::max())
        return broken(name, ".shape", shapeText(t), "each extent must be from 0 to 2^31 - 1");
      if (extent <= 1)
        continue; // the stride is never used
      if (stride < 0)
        return broken(name, ".strides", std::to_string(stride), "must not be negative");
      if (written && stride == 0 && !emptyTensor)
        return broken(name, ".strides", "0", "elements of an output must not share memory");
      // No element is wider than 4 bytes. A product, as a division for each axis is what a call would feel.
      if (int64_t bytes; __builtin_mul_overflow(stride, extent * 4, &bytes))
        return broken(name, ".strides", std::to_string(stride), "the last element's byte offset must fit 63 bits");
    }
    if (!t.data && !emptyTensor)
      return broken(name, ".data", "null", "must point to " + shapeText(t) + " elements");
    auto address = reinterpret_cast<uintptr_t>(t.data);
    if (address % static_cast<uintptr_t>(dtypeBytes(dtype)) != 0)
      return broken(name, ".data", std::to_string(address),
                    "must be a multiple of the element's " + std::to_string(dtypeBytes(dtype)) + " bytes");
    return Status::ok();
  }

  // `source` (and what it is called there) says where the expected extent comes from.
  Status checkExtent(TensorName name, int axis, int64_t expected, std::string_view source,
                     std::string_view sourceName = "") const {
    if (tensor(name).shape[static_cast<size_t>(axis)] == expected)
      return Status::ok();
    return broken(name, ".shape", shapeText(tensor(name)),
                  "dimension " + std::to_string(axis) + " must be " + std::to_string(expected) + " (" +
                      std::string(source) + std::string(sourceName) + ")");
  }

  int64_t strideOf(const Tensor &t, int axis) const {
    auto index = static_cast<size_t>(axis);
    // Of an extent of 1 any stride is legal, and 0 keeps it out of the alignment flag.
    return t.shape[index] <= 1 ? 0 : t.strides[index];
  }

  void setView(View view, const Tensor &t, std::array<int64_t, 3> strides) {
    ViewSlots &slots = call.views[static_cast<size_t>(view)];
    slots.data = t.data;
    slots.strides = strides;
    uint64_t bits = reinterpret_cast<uintptr_t>(t.data);
    for (int64_t stride : strides)
      bits |= static_cast<uint64_t>(stride * dtypeBytes(t.dtype));
    slots.flags = bits % 16 == 0 ? kViewRowsAligned16 : 0;
  }

  Status checkLengths() {
    if (!packed)
      return Status::ok();
    const TensorName names[] = {TensorName::kCuSeqlensQ, TensorName::kCuSeqlensK};
    const View views[] = {View::kCuSeqlensQ, View::kCuSeqlensK};
    for (size_t i = 0; i < 2; ++i) {
      // One given stands for both.
      TensorName name = bound(names[i]) ? names[i] : names[1 - i];
      NSA_RETURN_IF_ERROR(checkTensor(name, DType::kI32, 1, false));
      const Tensor &t = tensor(name);
      if (t.shape[0] < 1)
        return broken(name, ".shape", shapeText(t), "must have batch + 1 elements, so at least 1");
      if (i == 0)
        call.grid.batch = t.shape[0] - 1;
      else
        NSA_RETURN_IF_ERROR(checkExtent(name, 0, call.grid.batch + 1, "batch + 1, as cu_seqlens_q"));
      setView(views[i], t, {strideOf(t, 0), 0, 0});
    }
    return Status::ok();
  }

  // A tensor of rows: [batch, time, heads, dim], or [total, heads, dim]. Time and batch must equal `like`'s.
  Status checkRows(TensorName name, View view, int64_t heads, int64_t dim, const TensorName *like, bool written) {
    NSA_RETURN_IF_ERROR(checkTensor(name, spec.dtype, dimAxis + 1, written));
    const Tensor &t = tensor(name);
    NSA_RETURN_IF_ERROR(checkExtent(name, headAxis, heads, heads == spec.queryHeads ? "query_heads" : "kv_heads"));
    NSA_RETURN_IF_ERROR(checkExtent(name, dimAxis, dim, view == View::kQ || view == View::kK ? "qk_dim" : "v_dim"));
    if (dim > 1 && t.strides[static_cast<size_t>(dimAxis)] != 1)
      return broken(name, ".strides", std::to_string(t.strides[static_cast<size_t>(dimAxis)]),
                    "the last dimension must be contiguous (stride 1)");
    if (!packed && name == TensorName::kQ)
      call.grid.batch = t.shape[0];
    if (!packed)
      NSA_RETURN_IF_ERROR(checkExtent(name, 0, call.grid.batch, "batch of q"));
    if (like)
      NSA_RETURN_IF_ERROR(
          checkExtent(name, timeAxis, tensor(*like).shape[static_cast<size_t>(timeAxis)], "as ", tensorName(*like)));
    setView(view, t, {packed ? 0 : strideOf(t, 0), strideOf(t, timeAxis), strideOf(t, headAxis)});
    return Status::ok();
  }

  Status checkLse() {
    const TensorName name = TensorName::kLse;
    NSA_RETURN_IF_ERROR(checkTensor(name, DType::kF32, headAxis + 1, true));
    const Tensor &t = tensor(name);
    if (!packed)
      NSA_RETURN_IF_ERROR(checkExtent(name, 0, call.grid.batch, "batch of q"));
    NSA_RETURN_IF_ERROR(checkExtent(name, timeAxis, timeQ, "as q"));
    NSA_RETURN_IF_ERROR(checkExtent(name, headAxis, spec.queryHeads, "query_heads"));
    setView(View::kLse, t, {packed ? 0 : strideOf(t, 0), strideOf(t, timeAxis), strideOf(t, headAxis)});
    return Status::ok();
  }

  Status readSizes(TensorName k) {
    timeQ = tensor(TensorName::kQ).shape[static_cast<size_t>(timeAxis)];
    const Tensor &keys = tensor(k);
    // The rank is not checked yet, and the axis must exist.
    timeK = keys.rank > timeAxis ? keys.shape[static_cast<size_t>(timeAxis)] : 0;
    call.grid.kvHeads = spec.kvHeads;
    call.grid.queryHeads = spec.queryHeads;
    call.grid.group = spec.group();
    if (packed) {
      // No sequence is longer than all together, so a short batch gets a small grid.
      call.grid.maxTokensQ = timeQ;
      call.grid.maxSeqlenQ = std::min(maxima.seqlenQ, timeQ);
      call.grid.maxSeqlenK = std::min(maxima.seqlenK, timeK);
    } else {
      call.grid.maxTokensQ = call.grid.batch * timeQ;
      call.grid.maxSeqlenQ = timeQ;
      call.grid.maxSeqlenK = timeK;
    }
    call.empty = call.grid.batch == 0 || timeQ == 0;
    return Status::ok();
  }

  static Status atMost(const char *field, int64_t value, const char *maximum, int64_t limit) {
    if (value <= limit)
      return Status::ok();
    return Status::invalid(field, std::to_string(value),
                           std::string("must be at most the plan's ") + maximum + " = " + std::to_string(limit),
                           "make a plan with larger maxima");
  }

  Status checkMaxima() const {
    NSA_RETURN_IF_ERROR(atMost("batch", call.grid.batch, "max_batch", maxima.batch));
    if (packed)
      return atMost("tokens_q", timeQ, "max_tokens_q", maxima.tokensQ);
    NSA_RETURN_IF_ERROR(atMost("seqlen_q", timeQ, "max_seqlen_q", maxima.seqlenQ));
    NSA_RETURN_IF_ERROR(atMost("seqlen_k", timeK, "max_seqlen_k", maxima.seqlenK));
    NSA_RETURN_IF_ERROR(atMost("tokens_q", call.grid.maxTokensQ, "max_tokens_q", maxima.tokensQ));
    if (timeQ > timeK)
      return Status::invalid("seqlen_q", std::to_string(timeQ),
                             "must be at most seqlen_k = " + std::to_string(timeK) + ": queries are the last tokens");
    return Status::ok();
  }

  void fillScalars() {
    call.scalars = rules.scalars;
    setScalar(call.scalars, Scalar::kSeqlenQ, packed ? 0 : timeQ);
    setScalar(call.scalars, Scalar::kSeqlenK, packed ? 0 : timeK);
    setScalar(call.scalars, Scalar::kTotalQ, timeQ);
    setScalar(call.scalars, Scalar::kTotalK, timeK);
  }

  const CallRules &rules;
  const Spec &spec;
  const Maxima &maxima;
  const Bindings &bindings;
  Call &call;
  const bool packed;
  const int timeAxis, headAxis, dimAxis;
  int64_t timeQ = 0;
  int64_t timeK = 0;
};

// Element i of a rank-1 int32 view.
int64_t lengthAt(const ViewSlots &view, int64_t i) {
  return static_cast<const int32_t *>(view.data)[i * view.strides[0]];
}

Status checkHostOffsets(const char *name, const ViewSlots &view, int64_t batch, int64_t total, const char *totalName) {
  auto broken = [&](int64_t i, std::string rule) {
    return Status::invalid(std::string(name) + "[" + std::to_string(i) + "]", std::to_string(lengthAt(view, i)),
                           std::move(rule));
  };
  if (lengthAt(view, 0) != 0)
    return broken(0, "must be 0");
  for (int64_t i = 1; i <= batch; ++i) {
    if (lengthAt(view, i) < lengthAt(view, i - 1))
      return broken(i, "must not be less than the one before, " + std::to_string(lengthAt(view, i - 1)));
    if (lengthAt(view, i) > total)
      return broken(i, std::string("must be at most ") + totalName + " = " + std::to_string(total));
  }
  return Status::ok();
}

} // namespace

std::string_view tensorName(TensorName name) { return kTensorNameTexts[static_cast<size_t>(name)]; }

GridSizes GridSizes::ofMaxima(const Spec &spec, const Maxima &maxima) {
  GridSizes sizes;
  sizes.batch = maxima.batch;
  sizes.kvHeads = spec.kvHeads;
  sizes.queryHeads = spec.queryHeads;
  sizes.group = spec.group();
  sizes.maxSeqlenQ = maxima.seqlenQ;
  sizes.maxSeqlenK = maxima.seqlenK;
  sizes.maxTokensQ = maxima.tokensQ;
  return sizes;
}

CallRules::CallRules(const Spec &spec, const Maxima &maxima) : spec(spec), maxima(maxima) {
  setScalar(scalars, Scalar::kMaxSeqlenQ, maxima.seqlenQ);
  setScalar(scalars, Scalar::kMaxSeqlenK, maxima.seqlenK);
  setScalar(scalars, Scalar::kWindow, spec.op == Operator::kWindow ? spec.window : std::numeric_limits<int32_t>::max());
  setScalar(scalars, Scalar::kScaleLog2, std::bit_cast<int32_t>(spec.effectiveScale() * std::numbers::log2e_v<float>));
}

Status prepareCall(const CallRules &rules, const Bindings &bindings, Call &call) {
  return CallChecker(rules, bindings, call).run();
}

Status checkHostLengths(const CallRules &rules, const Call &call) {
  const auto &[spec, maxima, scalars] = rules;
  if (spec.layout != Layout::kPacked)
    return Status::ok();
  const ViewSlots &q = call.view(View::kCuSeqlensQ);
  const ViewSlots &k = call.view(View::kCuSeqlensK);
  auto total = [&](Scalar name) { return static_cast<int64_t>(call.scalars[static_cast<size_t>(name)]); };
  NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_q", q, call.grid.batch, total(Scalar::kTotalQ), "the rows of q"));
  NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_k", k, call.grid.batch, total(Scalar::kTotalK), "the rows of k"));
  for (int64_t i = 0; i < call.grid.batch; ++i) {
    int64_t seqlenQ = lengthAt(q, i + 1) - lengthAt(q, i);
    int64_t seqlenK = lengthAt(k, i + 1) - lengthAt(k, i);
    auto broken = [&](const char *name, int64_t value, std::string rule) {
      return Status::invalid(std::string(name) + " of sequence " + std::to_string(i), std::to_string(value),
                             std::move(rule));
    };
    if (seqlenQ > seqlenK)
      return broken("seqlen_q", seqlenQ, "must be at most its seqlen_k = " + std::to_string(seqlenK));
    if (seqlenQ > maxima.seqlenQ)
      return broken("seqlen_q", seqlenQ, "must be at most the plan's max_seqlen_q = " + std::to_string(maxima.seqlenQ));
    if (seqlenK > maxima.seqlenK)
      return broken("seqlen_k", seqlenK, "must be at most the plan's max_seqlen_k = " + std::to_string(maxima.seqlenK));
  }
  return Status::ok();
}

} // namespace nsa
