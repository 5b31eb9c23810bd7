#include "runtime/engine/call/call.h"

#include "runtime/base/key_splits.h"
#include "runtime/base/saturated.h"
#include "runtime/base/signature.h"
#include "runtime/engine/call/bound_tensors.h"
#include "runtime/engine/call/cache_call.h"
#include "runtime/engine/call/coordinates.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace nsa {

namespace {

constexpr int32_t kUnbounded = std::numeric_limits<int32_t>::max();

// Checks one operator's bindings. Members are what the checks establish on the way, each used by the later ones.
class CallChecker {
public:
  CallChecker(const CallRules &rules, const Bindings &bindings, Call &call)
      : rules(rules), spec(rules.spec), maxima(rules.maxima), tensors(bindings), call(call),
        cache(rules, tensors, call), operands(operandsOf(spec.op)), packed(spec.layout == Layout::kPacked),
        decodes(definitionOf(spec.op).hasCache), timeAxis(packed ? 0 : 1) {
    // Inputs first: the tensor that serves for an input decides which tensor is its gradient.
    for (const Operand &operand : operands)
      if (!operand.isWritten())
        resolve(operand);
    for (const Operand &operand : operands)
      if (operand.isWritten())
        resolve(operand);
  }

  Status run() {
    NSA_RETURN_IF_ERROR(checkPresence());
    NSA_RETURN_IF_ERROR(checkLengths());
    if (decodes) {
      NSA_RETURN_IF_ERROR(cache.checkLengths());
      batchSource = &CacheChecker::kBatchSource;
    }
    for (const Operand &operand : operands)
      if (const TensorName *name = boundName(operand))
        NSA_RETURN_IF_ERROR(checkOperand(operand, *name));
    if (decodes)
      NSA_RETURN_IF_ERROR(checkNewTokens());
    fillSizes();
    NSA_RETURN_IF_ERROR(checkMaxima());
    NSA_RETURN_IF_ERROR(checkOutputs());
    fillScalars();
    return Status::ok();
  }

private:
  // What the bindings say of an operand. It is found once, because every search takes time in each run.
  struct Resolved {
    const TensorName *name = nullptr; // what serves for the operand; null: nothing
    const Operand *source = nullptr;  // the input whose gradient an output is; null: none
  };
  // The operands whose time dimension is one quantity, and whose tensor said first how long it is.
  struct Time {
    const TensorName *source = nullptr;
    int64_t extent = 0;
  };

  // What an error says of an axis' extent.
  std::string_view sourceOf(Axis axis) const {
    if (axis == Axis::kOutHeads && !(fieldsOf(spec.op) & kHeads))
      return "kv_heads";
    if (axis == Axis::kOutDim && !(fieldsOf(spec.op) & kV))
      return "qk_dim";
    return axis == Axis::kGateHeads ? "gate heads: query_heads, or kv_heads with gate_per_group" : axisSource(axis);
  }

  void resolve(const Operand &operand) {
    Resolved &found = resolved[static_cast<size_t>(operand.name)];
    if (const std::optional<TensorName> of = operand.isWritten() ? gradientOf(operand.name) : std::nullopt)
      found.source = definitionOf(spec.op).operandOf(*of);
    found.name = findName(operand, found.source);
    if (found.name && operand.isRead())
      read.add(*found.name);
  }
  // The gradient of `k` is d_k, and the gradient of `k_win` is d_k_win.
  const TensorName *findName(const Operand &operand, const Operand *source) const {
    if (isZeroGradient(spec, operand.name))
      return tensors.find(operand.name) ? &operand.name : nullptr;
    if (!takes(spec, operand.name))
      return nullptr;
    if (source) {
      const TensorName *input = boundName(*source);
      const TensorName &gradient = input && *input == source->name ? operand.name : operand.otherwise;
      return tensors.find(gradient) ? &gradient : nullptr;
    }
    if (tensors.find(operand.name))
      return &operand.name;
    return tensors.find(operand.otherwise) ? &operand.otherwise : nullptr;
  }

  // What serves for an operand; nullptr: nothing.
  const TensorName *boundName(const Operand &operand) const { return resolved[static_cast<size_t>(operand.name)].name; }
  // The input whose gradient an output is; nullptr: none.
  const Operand *differentiated(const Operand &operand) const {
    return resolved[static_cast<size_t>(operand.name)].source;
  }
  bool isRead(TensorName name) const { return read.has(name); }

  // Where each branch has keys of its own, no branch reads `k`, and its gradient is 0.
  bool hasGradient(TensorName name) const {
    return isRead(name) || (definitionOf(spec.op).isWholeGradient() && tensors.find(name));
  }

  Status checkPresence(const Operand &operand) const {
    if (operand.isOptional() || boundName(operand))
      return Status::ok();
    const OperatorDef *writer = writerOf(spec.op, operand.name);
    const Operand *of = differentiated(operand);
    return BoundTensors::broken(
        of && tensors.find(of->name) ? operand.name : operand.otherwise, "", "absent",
        operand.name == TensorName::kKOffset ? "must be bound, because the spec's key_offset is 1" : "must be bound",
        writer ? "the operator " + std::string(writer->name) + " writes it" : "");
  }

  Status checkPresence() const {
    TensorNames known;
    for (const Operand &operand : operands) {
      if (isZeroGradient(spec, operand.name))
        known.add(operand.name);
      if (!takes(spec, operand.name))
        continue;
      known.add(operand.name);
      known.add(operand.otherwise);
      if (!differentiated(operand))
        NSA_RETURN_IF_ERROR(checkPresence(operand));
    }
    for (const Operand &operand : operands)
      for (const TensorName gradient : {operand.name, operand.otherwise})
        if (const std::optional<TensorName> of = gradientOf(gradient);
            of && operand.isWritten() && takes(spec, operand.name) && tensors.find(gradient) && !hasGradient(*of))
          return BoundTensors::broken(gradient, "", "bound",
                                      "is the gradient of " + std::string(tensorName(*of)) +
                                          ", which this call does not read");
    for (const Operand &operand : operands)
      if (takes(spec, operand.name) && differentiated(operand))
        NSA_RETURN_IF_ERROR(checkPresence(operand));
    // An angle has both.
    const bool hasCos = tensors.find(TensorName::kCos) != nullptr;
    if (known.has(TensorName::kCos) && hasCos != (tensors.find(TensorName::kSin) != nullptr))
      return BoundTensors::broken(hasCos ? TensorName::kSin : TensorName::kCos, "", "absent",
                                  "cos and sin must be bound together");
    // Of the compressed keys and values that a forward pass made a gradient takes both, or makes both anew.
    const Operand *keys = definitionOf(spec.op).operandOf(TensorName::kKComp);
    const bool hasKeys = tensors.find(TensorName::kKComp) != nullptr;
    if (keys && known.has(keys->name) && keys->role == Operand::Role::kOptionalIn &&
        hasKeys != (tensors.find(TensorName::kVComp) != nullptr))
      return BoundTensors::broken(hasKeys ? TensorName::kVComp : TensorName::kKComp, "", "absent",
                                  "k_comp and v_comp must be bound together");
    const bool takesLengths = packed && readsLengths(spec.op);
    const bool anyLengths =
        tensors.find(TensorName::kCuSeqlensQ) || (!decodes && tensors.find(TensorName::kCuSeqlensK));
    if (takesLengths && !anyLengths)
      return BoundTensors::broken(TensorName::kCuSeqlensQ, "", "absent",
                                  decodes ? "packed layout needs cu_seqlens_q"
                                          : "packed layout needs cu_seqlens_q or cu_seqlens_k");
    for (TensorName name : {TensorName::kCuSeqlensQ, TensorName::kCuSeqlensK}) {
      if (decodes && name == TensorName::kCuSeqlensK)
        continue; // the cache knows how many keys there are
      if (!packed && tensors.find(name))
        return BoundTensors::broken(name, "", "bound", "belongs to the packed layout only");
      known.add(name);
    }
    if (decodes) {
      cache.addNames(known);
      NSA_RETURN_IF_ERROR(cache.checkPresence());
    }
    const bool mayOffset = (fieldsOf(spec.op) & kKeyOffsetField) != 0;
    if (mayOffset && !spec.keyOffset && tensors.find(TensorName::kKOffset))
      return BoundTensors::broken(TensorName::kKOffset, "", "bound", "needs a plan whose spec has key_offset = 1");
    if (tensors.find(TensorName::kBlockIndex) && (fieldsOf(spec.op) & kMakeIndexField)) {
      if (!spec.makeIndex)
        return BoundTensors::broken(TensorName::kBlockIndex, "", "bound", "needs a plan whose spec has make_index = 1",
                                    "set make_index, or make it of block_list with the operator invert");
      // The lists in the workspace are of a chunk of queries.
      if (!tensors.find(TensorName::kBlockList))
        return BoundTensors::broken(TensorName::kBlockList, "", "absent",
                                    "must be bound with block_index, which is made of it");
    }
    if (const std::optional<TensorName> unknown = tensors.names().firstNotIn(known))
      return BoundTensors::broken(*unknown, "", "bound",
                                  "is no tensor of operator " + std::string(operatorName(spec.op)) + " with this spec");
    return Status::ok();
  }

  Status checkLengths() {
    if (!packed || !readsLengths(spec.op))
      return Status::ok();
    const TensorName names[] = {TensorName::kCuSeqlensQ, TensorName::kCuSeqlensK};
    for (size_t i = 0; i < 2; ++i) {
      // One given stands for both.
      TensorName name = tensors.find(names[i]) ? names[i] : names[1 - i];
      NSA_RETURN_IF_ERROR(tensors.check(name, DType::kI32, 1));
      const Tensor &t = tensors[name];
      if (t.shape[0] < 1)
        return BoundTensors::broken(name, ".shape", shapeText(t), "must have batch + 1 elements, so at least 1");
      if (i == 0)
        call.sizes.batch = t.shape[0] - 1;
      else
        NSA_RETURN_IF_ERROR(tensors.checkExtent(name, 0, call.sizes.batch + 1, "batch + 1, as cu_seqlens_q"));
      call.set(names[i], t, {t.strideOf(0)});
    }
    return Status::ok();
  }

  Status checkTime(Time &time, const TensorName &name, Lead lead) {
    const int64_t extent = tensors[name].shape[static_cast<size_t>(timeAxis)];
    if (time.source)
      return tensors.checkExtent(name, timeAxis, time.extent, "as ", tensorName(*time.source));
    // How many compressed blocks there are follows from the tokens, where the host knows them.
    if (lead == Lead::kBlocks && !packed) {
      const Time &tokens = keys.source ? keys : queries;
      NSA_RETURN_IF_ERROR(tensors.checkExtent(name, timeAxis, spec.compressedBlocks(tokens.extent),
                                              "compressed blocks of ", tensorName(*tokens.source)));
    }
    time = {&name, extent};
    return Status::ok();
  }

  Status checkOperand(const Operand &operand, const TensorName &name) {
    const TensorRule &rule = tensorRule(operand.name);
    if (rule.lead == Lead::kEntries)
      return checkIndex(operand, name);
    const bool ofCache = CacheChecker::isOfCache(rule.lead);
    const bool countsNoTime = rule.lead == Lead::kPositions || rule.lead == Lead::kSequences;
    if (tensors[name].accumulate && !operand.isGradient() && differentiated(operand))
      return BoundTensors::broken(
          name, ".accumulate", "1",
          "must be 0, because the gradient of a branch's output replaces what its tensor holds");
    const int leading = rule.lead == Lead::kNone ? 0 : countsNoTime ? 1 : ofCache ? 2 : timeAxis + 1;
    NSA_RETURN_IF_ERROR(operand.isGradient()
                            ? tensors.checkGradient(name, spec.dtype, leading + rule.axisCount)
                            : tensors.check(name, spec.types().of(rule.role), leading + rule.axisCount));
    const Tensor &t = tensors[name];
    for (int i = 0; i < rule.axisCount; ++i) {
      const Axis axis = rule.axes[static_cast<size_t>(i)];
      NSA_RETURN_IF_ERROR(tensors.checkExtent(name, leading + i, axisExtent(axis, spec), sourceOf(axis)));
    }
    if (rule.contiguous)
      NSA_RETURN_IF_ERROR(tensors.checkContiguous(name, leading + rule.axisCount - 1));
    if (ofCache) {
      NSA_RETURN_IF_ERROR(cache.checkLead(name, rule.lead));
      call.set(operand.name, t, coordinateStrides(spec, operand, t),
               rule.lead == Lead::kRing || spec.pageSize > 0 ? 0 : rowsOf(name, 1));
      cache.addTable(rule.lead, call.tensors[static_cast<size_t>(operand.name)]);
      return Status::ok();
    }
    if (countsNoTime) {
      NSA_RETURN_IF_ERROR(rule.lead == Lead::kPositions ? checkPositions(name)
                                                        : tensors.checkExtent(name, 0, call.sizes.batch, "batch"));
      call.set(operand.name, t, coordinateStrides(spec, operand, t));
      return Status::ok();
    }
    if (rule.lead != Lead::kNone && !packed)
      NSA_RETURN_IF_ERROR(checkBatch(name));
    if (rule.lead != Lead::kNone)
      NSA_RETURN_IF_ERROR(checkTime(timeOf(rule.lead), name, rule.lead));
    call.set(operand.name, t, coordinateStrides(spec, operand, t),
             rule.lead == Lead::kNone ? 0 : rowsOf(name, timeAxis));
    return Status::ok();
  }

  Status checkBatch(const TensorName &name) {
    if (!batchSource) {
      batchSource = &name;
      call.sizes.batch = tensors[name].shape[0];
    }
    return tensors.checkExtent(name, 0, call.sizes.batch, "batch of ", tensorName(*batchSource));
  }

  // The inverse of lists of blocks, whose last dimension has a part for each sequence (docs/specification.md 9). Its
  // queries, and its keys where they are bound, were checked before it.
  Status checkIndex(const Operand &operand, const TensorName &name) {
    const int heads = packed ? 0 : 1, last = heads + 1;
    NSA_RETURN_IF_ERROR(tensors.check(name, spec.types().of(tensorRule(name).role), last + 1));
    if (!packed)
      NSA_RETURN_IF_ERROR(checkBatch(name));
    NSA_RETURN_IF_ERROR(tensors.checkExtent(name, heads, spec.kvHeads, "kv_heads"));
    const Tensor &t = tensors[name];
    // No sequence has more queries than keys.
    const int64_t tokens = keys.source ? keys.extent : queries.extent, listed = queries.extent * spec.selCount;
    const int64_t offsets =
        packed ? tokens / spec.selBlock + 2 * call.sizes.batch : (tokens + spec.selBlock - 1) / spec.selBlock + 1;
    const int64_t places = t.shape[static_cast<size_t>(last)], needed = offsets + listed;
    const auto broken = [&](std::string rule, const char *hint) {
      return BoundTensors::broken(name, ".shape", shapeText(t),
                                  std::move(rule) + std::to_string(offsets) + " for offsets and " +
                                      std::to_string(listed) + " for queries",
                                  hint);
    };
    if (needed > kUnbounded)
      return broken("more than 2^31 - 1 places are needed: ", "split the batch into several calls");
    if (places < needed)
      return broken("dimension " + std::to_string(last) + " must be at least " + std::to_string(needed) + ": ", "");
    // The tensor has room for the blocks of so many keys.
    if (packed)
      indexedKeys = std::min<int64_t>(
          (std::min<int64_t>(places, kUnbounded) - 2 * call.sizes.batch - listed + 1) * spec.selBlock - 1, kUnbounded);
    call.set(operand.name, t, coordinateStrides(spec, operand, t));
    return Status::ok();
  }

  Status checkPositions(TensorName name) const {
    if (tensors[name].shape[0] >= maxima.seqlenK)
      return Status::ok();
    return BoundTensors::broken(name, ".shape", shapeText(tensors[name]),
                                "dimension 0 must be at least the plan's max_seqlen_k = " +
                                    std::to_string(maxima.seqlenK));
  }

  // For tensor maps. Entries that lie on each other have none: a kernel would ask for the second one.
  int64_t rowsOf(const TensorName &name, int timeAxis) const {
    const bool haveEntries = timeAxis > 0 && call.sizes.batch > 1;
    return haveEntries && tensors[name].strideOf(0) == 0 ? 0 : tensors[name].shape[static_cast<size_t>(timeAxis)];
  }

  // After all shapes: strides that belong to another shape are no fault of their own.
  Status checkOutputs() const {
    for (const Operand &operand : operands)
      if (const TensorName *name = operand.isWritten() ? boundName(operand) : nullptr)
        NSA_RETURN_IF_ERROR(tensors.checkDisjoint(*name));
    return definitionOf(spec.op).isGradient() ? checkGradients() : Status::ok();
  }

  // The gradient of `rotate` may lie where its input lies: its elements replace elements of the same type, each when it
  // was read.
  bool mayReplace(TensorName gradient, TensorName input) const {
    if (gradient != TensorName::kOut || input != TensorName::kX)
      return false;
    const Tensor &out = tensors[gradient], &x = tensors[input];
    if (out.accumulate || out.dtype != x.dtype || out.data != x.data)
      return false;
    for (int axis = 0; axis < out.rank; ++axis) // the shapes are equal
      if (out.strideOf(axis) != x.strideOf(axis))
        return false;
    return true;
  }

  // Kernels read inputs and lengths after they have written gradients.
  Status checkGradients() const {
    const auto check = [&](TensorName gradient, TensorName other) {
      return mayReplace(gradient, other)
                 ? Status::ok()
                 : checkApart(tensorName(gradient), tensors[gradient], tensorName(other), tensors[other]);
    };
    TensorNames checked; // gradients that lie apart from all other tensors
    for (const Operand &operand : operands) {
      const TensorName *name = operand.isWritten() ? boundName(operand) : nullptr;
      if (!name || checked.has(*name))
        continue;
      checked.add(*name);
      TensorNames met = checked;
      for (const Operand &other : operands) {
        const TensorName *otherName = boundName(other);
        if (!otherName || met.has(*otherName))
          continue;
        met.add(*otherName);
        NSA_RETURN_IF_ERROR(check(*name, *otherName));
      }
      for (const TensorName lengths : {TensorName::kCuSeqlensQ, TensorName::kCuSeqlensK})
        if (readsLengths(spec.op) && tensors.find(lengths))
          NSA_RETURN_IF_ERROR(check(*name, lengths));
    }
    return Status::ok();
  }

  // New tokens are queries and keys alike.
  Status checkNewTokens() const {
    if (keys.source)
      NSA_RETURN_IF_ERROR(
          tensors.checkExtent(*keys.source, timeAxis, queries.extent, "as ", tensorName(*queries.source)));
    return cache.checkSharedPools();
  }

  Time &timeOf(Lead lead) { return lead == Lead::kQueries ? queries : lead == Lead::kKeys ? keys : blocks; }

  void fillSizes() {
    call.timeQ = queries.extent;
    // An operator that sees no key tensor has as many tokens as queries, unless cu_seqlens_k says otherwise.
    timeK = keys.source ? keys.extent : packed ? maxima.seqlenK : queries.extent;
    if (decodes)
      timeK = std::min(maxima.seqlenK, cache.capacity()); // of one sequence, in either layout
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
    // Keys alone are compressed too, and their gradients are 0. Their blocks have no queries.
    const bool writesKeys = ((fieldsOf(spec.op) & kPhi) && !decodes) || definitionOf(spec.op).isAttentionGradient();
    const bool readsKeys = writesKeys && (keys.extent > 0 || blocks.extent > 0);
    const bool isEmpty = sizes.batch == 0 || (queries.extent == 0 && !readsKeys && !call[TensorName::kBlockIndex].data);
    call.empty = isEmpty && !definitionOf(spec.op).sumsOverTokens();
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
    if (keys.source && !decodes)
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
    // Where a block is one token, kernels address blocks as tokens.
    const bool blocksAreTokens = blocks.source && spec.cmpBlock == 1;
    int64_t mostKeys = std::min<int64_t>(blocksAreTokens ? blocks.extent : kUnbounded, indexedKeys);
    if (keys.source)
      mostKeys = keys.extent;
    // Partial gradients lie in the workspace where the keys lie in the tensor, and have room for the plan's maxima.
    if (definitionOf(spec.op).isGradient())
      mostKeys = std::min(mostKeys, (Saturated(maxima.batch) * maxima.seqlenK).value());
    setScalar(call.scalars, Scalar::kTotalK, mostKeys);
    setScalar(call.scalars, Scalar::kTotalC, blocks.source ? blocks.extent : kUnbounded);
    setScalar(call.scalars, Scalar::kBatch, call.sizes.batch);
    setScalar(call.scalars, Scalar::kCapacity, cache.capacity());
    setScalar(call.scalars, Scalar::kPages, call.pages);
  }

  const CallRules &rules;
  const Spec &spec;
  const Maxima &maxima;
  const BoundTensors tensors;
  Call &call;
  CacheChecker cache; // of decode
  const std::span<const Operand> operands;
  const bool packed, decodes;
  const int timeAxis;
  std::array<Resolved, kTensorNames> resolved = {}; // of the operands, by Operand::name
  TensorNames read;                                 // what serves for the inputs
  const TensorName *batchSource = nullptr;
  Time queries, keys, blocks;
  int64_t timeK = 0;
  int64_t indexedKeys = kUnbounded; // for which a packed block_index has room
};

} // namespace

CallRules::CallRules(const Spec &spec, const Maxima &maxima) : spec(spec), maxima(maxima) {
#define NSA_SCALAR(scalar, name, type, ...) __VA_OPT__(setScalar(scalars, Scalar::scalar, __VA_ARGS__);)
#include "runtime/model/kernel_arguments.def"
}

Status prepareCall(const CallRules &rules, const Bindings &bindings, Call &call) {
  return CallChecker(rules, bindings, call).run();
}

} // namespace nsa
