#include "runtime/engine/call.h"

#include "runtime/base/signature.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numbers>
#include <string>

namespace nsa {

namespace {

constexpr int32_t kUnbounded = std::numeric_limits<int32_t>::max();

// Checks one operator's bindings. Members are what the checks establish on the way, each used by the later ones.
class CallChecker {
public:
  CallChecker(const CallRules &rules, const Bindings &bindings, Call &call)
      : rules(rules), spec(rules.spec), maxima(rules.maxima), bindings(bindings), call(call),
        operands(operandsOf(spec.op)), packed(spec.layout == Layout::kPacked), timeAxis(packed ? 0 : 1) {}

  Status run() {
    NSA_RETURN_IF_ERROR(checkPresence());
    NSA_RETURN_IF_ERROR(checkLengths());
    if (spec.op == Operator::kDecode)
      NSA_RETURN_IF_ERROR(checkCacheLengths());
    for (const Operand &operand : operands)
      if (const TensorName *name = boundName(operand))
        NSA_RETURN_IF_ERROR(checkOperand(operand, *name));
    if (spec.op == Operator::kDecode)
      NSA_RETURN_IF_ERROR(checkCache());
    fillSizes();
    NSA_RETURN_IF_ERROR(checkMaxima());
    fillScalars();
    return Status::ok();
  }

private:
  // The operands whose time dimension is one quantity, and whose tensor said first how long it is.
  struct Time {
    const TensorName *source = nullptr;
    int64_t extent = 0;
  };

  const Tensor &tensor(TensorName name) const { return *bindings.find(name); }

  // What serves for an operand; nullptr: nothing.
  const TensorName *boundName(const Operand &operand) const {
    if (!takes(spec, operand.name))
      return nullptr;
    if (bindings.find(operand.name))
      return &operand.name;
    return bindings.find(operand.otherwise) ? &operand.otherwise : nullptr;
  }

  static Status broken(TensorName name, const char *aspect, std::string value, std::string rule) {
    return Status::invalid(std::string(tensorName(name)) + aspect, std::move(value), std::move(rule));
  }

  static std::string shapeText(const Tensor &tensor) {
    std::string text = "[";
    for (int i = 0; i < tensor.rank; ++i)
      text += (i ? ", " : "") + std::to_string(tensor.shape[static_cast<size_t>(i)]);
    return text + "]";
  }

  Status checkPresence() const {
    uint64_t known = 0;
    for (const Operand &operand : operands) {
      if (!takes(spec, operand.name))
        continue;
      known |= Bindings::bit(operand.name) | Bindings::bit(operand.otherwise);
      if (!operand.isOptional() && !boundName(operand))
        return broken(operand.otherwise, "", "absent", "must be bound");
    }
    const bool decodes = spec.op == Operator::kDecode;
    const bool takesLengths = packed && readsLengths(spec.op);
    const bool anyLengths =
        bindings.find(TensorName::kCuSeqlensQ) || (!decodes && bindings.find(TensorName::kCuSeqlensK));
    if (takesLengths && !anyLengths)
      return broken(TensorName::kCuSeqlensQ, "", "absent",
                    decodes ? "packed layout needs cu_seqlens_q" : "packed layout needs cu_seqlens_q or cu_seqlens_k");
    for (TensorName name : {TensorName::kCuSeqlensQ, TensorName::kCuSeqlensK}) {
      if (decodes && name == TensorName::kCuSeqlensK)
        continue; // the cache knows how many keys there are
      if (!packed && bindings.find(name))
        return broken(name, "", "bound", "belongs to the packed layout only");
      known |= Bindings::bit(name);
    }
    if (decodes) {
      known |= Bindings::bit(TensorName::kCacheSeqlens) | (isPaged() ? Bindings::bit(TensorName::kBlockTable) : 0);
      if (!bindings.find(TensorName::kCacheSeqlens))
        return broken(TensorName::kCacheSeqlens, "", "absent", "must be bound");
      if (isPaged() && !bindings.find(TensorName::kBlockTable))
        return broken(TensorName::kBlockTable, "", "absent", "must be bound where the spec has a page_size");
    }
    if (uint64_t unknown = bindings.names() & ~known)
      return broken(static_cast<TensorName>(std::countr_zero(unknown)), "", "bound",
                    "is no tensor of operator " + std::string(operatorName(spec.op)) + " with this spec");
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

  static int64_t strideOf(const Tensor &t, int axis) {
    auto index = static_cast<size_t>(axis);
    // Of an extent of 1 any stride is legal, and 0 keeps it out of the alignment flag.
    return t.shape[index] <= 1 ? 0 : t.strides[index];
  }

  void setTensor(TensorName name, const Tensor &t, const std::array<int64_t, kMaxCoordinates> &strides) {
    call.tensors[static_cast<size_t>(name)] = ViewSlots::make(t.data, t.dtype, strides);
  }

  Status checkLengths() {
    if (!packed || !readsLengths(spec.op))
      return Status::ok();
    const TensorName names[] = {TensorName::kCuSeqlensQ, TensorName::kCuSeqlensK};
    for (size_t i = 0; i < 2; ++i) {
      // One given stands for both.
      TensorName name = bindings.find(names[i]) ? names[i] : names[1 - i];
      NSA_RETURN_IF_ERROR(checkTensor(name, DType::kI32, 1, false));
      const Tensor &t = tensor(name);
      if (t.shape[0] < 1)
        return broken(name, ".shape", shapeText(t), "must have batch + 1 elements, so at least 1");
      if (i == 0)
        call.sizes.batch = t.shape[0] - 1;
      else
        NSA_RETURN_IF_ERROR(checkExtent(name, 0, call.sizes.batch + 1, "batch + 1, as cu_seqlens_q"));
      setTensor(names[i], t, {strideOf(t, 0)});
    }
    return Status::ok();
  }

  bool isPaged() const { return spec.pageSize > 0; }

  // How many tokens each sequence has in the cache, and where its pages are.
  Status checkCacheLengths() {
    constexpr TensorName kLengths = TensorName::kCacheSeqlens, kTable = TensorName::kBlockTable;
    NSA_RETURN_IF_ERROR(checkTensor(kLengths, DType::kI32, 1, true));
    const int64_t batch = tensor(kLengths).shape[0];
    if (packed)
      NSA_RETURN_IF_ERROR(checkExtent(kLengths, 0, call.sizes.batch, "the sequences of cu_seqlens_q"));
    call.sizes.batch = batch;
    batchSource = &kCacheSeqlensSource;
    setTensor(kLengths, tensor(kLengths), {strideOf(tensor(kLengths), 0)});
    if (!isPaged())
      return Status::ok();
    NSA_RETURN_IF_ERROR(checkTensor(kTable, DType::kI32, 2, false));
    const Tensor &table = tensor(kTable);
    NSA_RETURN_IF_ERROR(checkExtent(kTable, 0, batch, "batch of ", tensorName(kCacheSeqlensSource)));
    if (table.shape[1] > 1 && table.strides[1] != 1)
      return broken(kTable, ".strides", std::to_string(table.strides[1]),
                    "the last dimension must be contiguous (stride 1)");
    capacity = table.shape[1] * spec.pageSize;
    setTensor(kTable, table, {strideOf(table, 0), 1});
    return Status::ok();
  }

  // The leading dimensions of a cache's tensor: [batch, room], or [pages, rows of a page].
  Status checkCacheLead(const TensorName &name, Lead lead) {
    const int64_t rowTokens = lead == Lead::kCacheBlocks ? spec.cmpStride : 1;
    if (lead == Lead::kRing || !isPaged())
      NSA_RETURN_IF_ERROR(checkExtent(name, 0, call.sizes.batch, "batch of ", tensorName(*batchSource)));
    if (lead == Lead::kRing)
      return checkExtent(name, 1, spec.cmpBlock, "cmp_block");
    if (isPaged()) {
      NSA_RETURN_IF_ERROR(
          checkExtent(name, 1, spec.pageSize / rowTokens, rowTokens == 1 ? "page_size" : "page_size / cmp_stride"));
      if (pageSource)
        return checkExtent(name, 0, call.pages, "as ", tensorName(*pageSource));
      pageSource = &name;
      call.pages = tensor(name).shape[0];
      return Status::ok();
    }
    if (lead == Lead::kCacheBlocks) {
      if (!roomSource) // of the compressed branch alone
        capacity = maxima.seqlenK;
      const int64_t least = spec.compressedBlocks(capacity);
      if (tensor(name).shape[1] < least)
        return broken(name, ".shape", shapeText(tensor(name)),
                      "dimension 1 must be at least " + std::to_string(least) + ", the compressed blocks of " +
                          std::to_string(capacity) + " tokens");
      return Status::ok();
    }
    if (roomSource)
      return checkExtent(name, 1, capacity, "as ", tensorName(*roomSource));
    roomSource = &name;
    capacity = tensor(name).shape[1];
    return Status::ok();
  }

  // New tokens are queries and keys alike. Where one pool serves two branches, so must one tensor of new tokens.
  Status checkCache() const {
    using T = TensorName;
    if (keys.source && keys.extent != queries.extent)
      return checkExtent(*keys.source, timeAxis, queries.extent, "as ", tensorName(*queries.source));
    for (const auto &[sel, win, selCache, winCache] : {std::array{T::kKSel, T::kKWin, T::kKSelCache, T::kKWinCache},
                                                       std::array{T::kVSel, T::kVWin, T::kVSelCache, T::kVWinCache}}) {
      if (call[selCache].data && call[selCache].data == call[winCache].data && call[sel].data != call[win].data)
        return broken(win, ".data", "another tensor than " + std::string(tensorName(sel)),
                      "where one cache serves both branches, the new tokens must be one tensor too");
    }
    return Status::ok();
  }

  Status checkTime(Time &time, const TensorName &name, Lead lead) {
    const int64_t extent = tensor(name).shape[static_cast<size_t>(timeAxis)];
    if (time.source)
      return checkExtent(name, timeAxis, time.extent, "as ", tensorName(*time.source));
    // How many compressed blocks there are follows from the tokens, where the host knows them.
    if (lead == Lead::kBlocks && !packed) {
      const Time &tokens = keys.source ? keys : queries;
      NSA_RETURN_IF_ERROR(checkExtent(name, timeAxis, spec.compressedBlocks(tokens.extent), "compressed blocks of ",
                                      tensorName(*tokens.source)));
    }
    time = {&name, extent};
    return Status::ok();
  }

  Status checkOperand(const Operand &operand, const TensorName &name) {
    const TensorRule &rule = tensorRule(operand.name);
    const bool ofCache = isOfCache(rule.lead);
    const int leading = rule.lead == Lead::kNone ? 0 : ofCache ? 2 : timeAxis + 1;
    NSA_RETURN_IF_ERROR(
        checkTensor(name, elementDType(rule.type, spec.dtype), leading + rule.axisCount, operand.isWritten()));
    const Tensor &t = tensor(name);
    for (int i = 0; i < rule.axisCount; ++i) {
      const Axis axis = rule.axes[static_cast<size_t>(i)];
      NSA_RETURN_IF_ERROR(checkExtent(name, leading + i, axisExtent(axis, spec), axisSource(axis)));
    }
    const int last = leading + rule.axisCount - 1;
    if (rule.contiguous && t.shape[static_cast<size_t>(last)] > 1 && t.strides[static_cast<size_t>(last)] != 1)
      return broken(name, ".strides", std::to_string(t.strides[static_cast<size_t>(last)]),
                    "the last dimension must be contiguous (stride 1)");
    if (ofCache) {
      NSA_RETURN_IF_ERROR(checkCacheLead(name, rule.lead));
      setTensor(operand.name, t, coordinateStrides(t, rule, leading));
      if (isPaged() && rule.lead != Lead::kRing) {
        ViewSlots &slots = call.tensors[static_cast<size_t>(operand.name)];
        const ViewSlots &table = call[TensorName::kBlockTable];
        slots.table = static_cast<const int32_t *>(table.data);
        slots.tableStride = table.strides[0];
      }
      return Status::ok();
    }
    if (rule.lead != Lead::kNone && !packed) {
      if (!batchSource) {
        batchSource = &name;
        call.sizes.batch = t.shape[0];
      }
      NSA_RETURN_IF_ERROR(checkExtent(name, 0, call.sizes.batch, "batch of ", tensorName(*batchSource)));
    }
    if (rule.lead != Lead::kNone)
      NSA_RETURN_IF_ERROR(checkTime(timeOf(rule.lead), name, rule.lead));
    setTensor(operand.name, t, coordinateStrides(t, rule, leading));
    return Status::ok();
  }

  // [entry, time] before the others where time counts; a matrix of a block's tokens has [token, element] for its first.
  std::array<int64_t, kMaxCoordinates> coordinateStrides(const Tensor &t, const TensorRule &rule, int leading) const {
    std::array<int64_t, kMaxCoordinates> strides = {};
    size_t next = 0;
    if (rule.lead != Lead::kNone) {
      const bool packedRows = packed && !isOfCache(rule.lead);
      strides[next++] = packedRows ? 0 : strideOf(t, 0);
      strides[next++] = strideOf(t, packedRows ? 0 : 1);
    }
    const Axis first = rule.axes[0];
    if (first == Axis::kBlockQk || first == Axis::kBlockV)
      strides[next++] = strideOf(t, 0) * (first == Axis::kBlockQk ? spec.qkDim : spec.vDim);
    for (int i = 0; i < rule.axisCount - rule.contiguous; ++i)
      strides[next++] = strideOf(t, leading + i);
    return strides;
  }

  static bool isOfCache(Lead lead) { return lead == Lead::kCache || lead == Lead::kCacheBlocks || lead == Lead::kRing; }

  Time &timeOf(Lead lead) { return lead == Lead::kQueries ? queries : lead == Lead::kKeys ? keys : blocks; }

  void fillSizes() {
    call.timeQ = queries.extent;
    // An operator that sees no key tensor has as many tokens as queries, unless cu_seqlens_k says otherwise.
    timeK = keys.source ? keys.extent : packed ? maxima.seqlenK : queries.extent;
    if (spec.op == Operator::kDecode)
      timeK = std::min(maxima.seqlenK, capacity); // of one sequence, in either layout
    GridSizes &sizes = call.sizes;
    const bool hasSequences = packed && readsLengths(spec.op);
    if (packed && !hasSequences)
      sizes.batch = 1; // rows alone
    sizes.kvHeads = spec.kvHeads;
    sizes.queryHeads = spec.queryHeads;
    sizes.group = spec.group();
    // No sequence is longer than all together, so a short packed batch gets a small grid.
    sizes.maxTokensQ = packed ? queries.extent : sizes.batch * queries.extent;
    sizes.maxSeqlenQ = hasSequences ? std::min(maxima.seqlenQ, queries.extent) : queries.extent;
    sizes.maxSeqlenK = hasSequences ? std::min(maxima.seqlenK, timeK) : timeK;
    sizes.maxBlocksC = spec.compressedBlocks(sizes.maxSeqlenK);
    // Keys alone are compressed too.
    const bool compresses = spec.op == Operator::kCompress || spec.op == Operator::kNsa;
    call.empty = sizes.batch == 0 || (queries.extent == 0 && !(compresses && keys.extent > 0));
  }

  static Status atMost(const char *field, int64_t value, const char *maximum, int64_t limit) {
    if (value <= limit)
      return Status::ok();
    return Status::invalid(field, std::to_string(value),
                           std::string("must be at most the plan's ") + maximum + " = " + std::to_string(limit),
                           "make a plan with larger maxima");
  }

  Status checkMaxima() const {
    NSA_RETURN_IF_ERROR(atMost("batch", call.sizes.batch, "max_batch", maxima.batch));
    if (packed)
      return atMost("tokens_q", queries.extent, "max_tokens_q", maxima.tokensQ);
    NSA_RETURN_IF_ERROR(atMost("seqlen_q", queries.extent, "max_seqlen_q", maxima.seqlenQ));
    if (keys.source && spec.op != Operator::kDecode)
      NSA_RETURN_IF_ERROR(atMost("seqlen_k", keys.extent, "max_seqlen_k", maxima.seqlenK));
    NSA_RETURN_IF_ERROR(atMost("tokens_q", call.sizes.maxTokensQ, "max_tokens_q", maxima.tokensQ));
    if (queries.extent > timeK)
      return Status::invalid("seqlen_q", std::to_string(queries.extent),
                             "must be at most seqlen_k = " + std::to_string(timeK) + ": queries are the last tokens");
    return Status::ok();
  }

  void fillScalars() {
    call.scalars = rules.scalars;
    setScalar(call.scalars, Scalar::kSeqlenQ, packed ? 0 : queries.extent);
    setScalar(call.scalars, Scalar::kSeqlenK, packed ? 0 : timeK);
    setScalar(call.scalars, Scalar::kTotalQ, queries.source ? queries.extent : kUnbounded);
    setScalar(call.scalars, Scalar::kTotalK, keys.source ? keys.extent : kUnbounded);
    setScalar(call.scalars, Scalar::kTotalC, blocks.source ? blocks.extent : kUnbounded);
    setScalar(call.scalars, Scalar::kBatch, call.sizes.batch);
    setScalar(call.scalars, Scalar::kCapacity, capacity);
    setScalar(call.scalars, Scalar::kPages, call.pages);
  }

  const CallRules &rules;
  const Spec &spec;
  const Maxima &maxima;
  const Bindings &bindings;
  Call &call;
  const std::span<const Operand> operands;
  const bool packed;
  const int timeAxis;
  const TensorName *batchSource = nullptr;
  Time queries, keys, blocks;
  int64_t timeK = 0;
  // Of decode: what each sequence has room for, in tokens, and which tensor said so.
  static constexpr TensorName kCacheSeqlensSource = TensorName::kCacheSeqlens;
  const TensorName *roomSource = nullptr, *pageSource = nullptr;
  int64_t capacity = 0;
};

// Element i of a rank-1 int32 view.
int64_t lengthAt(const ViewSlots &view, int64_t i) {
  return static_cast<const int32_t *>(view.data)[i * view.strides[0]];
}

} // namespace

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

CallRules::CallRules(const Spec &spec, const Maxima &maxima) : spec(spec), maxima(maxima) {
  setScalar(scalars, Scalar::kMaxSeqlenQ, maxima.seqlenQ);
  setScalar(scalars, Scalar::kMaxSeqlenK, maxima.seqlenK);
  setScalar(scalars, Scalar::kQueryBegin, 0);
  setScalar(scalars, Scalar::kQueryEnd, kUnbounded);
  setScalar(scalars, Scalar::kWindow, spec.op == Operator::kDense ? kUnbounded : spec.window);
  setScalar(scalars, Scalar::kInitBlocks, spec.initBlocks);
  setScalar(scalars, Scalar::kLocalBlocks, spec.localBlocks);
  setScalar(scalars, Scalar::kScaleLog2, std::bit_cast<int32_t>(spec.effectiveScale() * std::numbers::log2e_v<float>));
}

Status prepareCall(const CallRules &rules, const Bindings &bindings, Call &call) {
  return CallChecker(rules, bindings, call).run();
}

namespace {

// A table's page is looked at where a new token comes to lie.
Status checkHostCache(const CallRules &rules, const Call &call) {
  const ViewSlots &offsets = call[TensorName::kCuSeqlensQ], &table = call[TensorName::kBlockTable];
  if (offsets.data)
    NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_q", offsets, call.sizes.batch,
                                         static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kTotalQ)]),
                                         "the rows of q"));
  const auto capacity = static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kCapacity)]);
  for (int64_t i = 0; i < call.sizes.batch; ++i) {
    const int64_t length = lengthAt(call[TensorName::kCacheSeqlens], i);
    const int64_t added = offsets.data ? lengthAt(offsets, i + 1) - lengthAt(offsets, i) : call.timeQ;
    auto broken = [&](std::string rule, std::string hint = "") {
      return Status::invalid("cache_seqlens[" + std::to_string(i) + "]", std::to_string(length), std::move(rule),
                             std::move(hint));
    };
    if (length < 0 || length > capacity)
      return broken("must be from 0 to the cache's room of " + std::to_string(capacity) + " tokens");
    if (added > rules.maxima.seqlenQ)
      return Status::invalid("seqlen_q of sequence " + std::to_string(i), std::to_string(added),
                             "must be at most the plan's max_seqlen_q = " + std::to_string(rules.maxima.seqlenQ));
    if (added > capacity - length)
      return broken("the cache has room for " + std::to_string(capacity) + " tokens, and " + std::to_string(added) +
                    " more come");
    if (length + added > rules.maxima.seqlenK)
      return broken("with " + std::to_string(added) +
                        " new tokens must be at most the plan's max_seqlen_k = " + std::to_string(rules.maxima.seqlenK),
                    "make a plan with larger maxima");
    for (int64_t token = length; table.data && token < length + added; ++token) {
      const int64_t place = token / rules.spec.pageSize;
      const int32_t page = static_cast<const int32_t *>(table.data)[i * table.strides[0] + place];
      if (page < 0 || page >= call.pages)
        return Status::invalid(
            "block_table[" + std::to_string(i) + ", " + std::to_string(place) + "]", std::to_string(page),
            "must be one of the pools' " + std::to_string(call.pages) + " pages: new tokens go there");
    }
  }
  return Status::ok();
}

} // namespace

Status checkHostLengths(const CallRules &rules, const Call &call) {
  const auto &[spec, maxima, scalars] = rules;
  if (spec.op == Operator::kDecode)
    return checkHostCache(rules, call);
  if (spec.layout != Layout::kPacked || !readsLengths(spec.op))
    return Status::ok();
  const ViewSlots &q = call[TensorName::kCuSeqlensQ];
  const ViewSlots &k = call[TensorName::kCuSeqlensK];
  auto total = [&](Scalar name) { return static_cast<int64_t>(call.scalars[static_cast<size_t>(name)]); };
  NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_q", q, call.sizes.batch, total(Scalar::kTotalQ), "the rows of q"));
  NSA_RETURN_IF_ERROR(checkHostOffsets("cu_seqlens_k", k, call.sizes.batch, total(Scalar::kTotalK), "the rows of k"));
  int64_t blocks = 0;
  for (int64_t i = 0; i < call.sizes.batch; ++i) {
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
    blocks += spec.compressedBlocks(seqlenK);
  }
  const int64_t rows = total(Scalar::kTotalC);
  if (blocks > rows)
    return Status::invalid("k_comp.shape", std::to_string(rows) + " rows",
                           "must hold the " + std::to_string(blocks) + " compressed blocks of all sequences");
  return Status::ok();
}

} // namespace nsa
