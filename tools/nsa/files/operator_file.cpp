#include "tools/nsa/files/operator_file.h"

#include "runtime/base/signature.h"
#include "tools/nsa/files/kv_cache_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

namespace nsa::tools {
namespace {

using T = TensorName;

Status disagrees(std::string key, std::string given, const std::string &tensors) {
  return Status::invalid(std::move(key), std::move(given), "must agree with the tensors, which say " + tensors);
}

// The fields of a spec that axes give. The extents of the other axes follow from these.
constexpr std::pair<Axis, int32_t Spec::*> kFields[] = {
    {Axis::kQueryHeads, &Spec::queryHeads}, {Axis::kKvHeads, &Spec::kvHeads},
    {Axis::kQkDim, &Spec::qkDim},           {Axis::kVDim, &Spec::vDim},
    {Axis::kSelCount, &Spec::selCount},     {Axis::kCmpBlock, &Spec::cmpBlock},
    {Axis::kHidden, &Spec::mlpHidden}};

// The longest sequence. Malformed lengths are the runtime's to report: they only must not make the maxima nonsense.
int64_t longest(const HostTensor &cuSeqlens, int64_t total) {
  const std::span<const int32_t> values = cuSeqlens.integers();
  int64_t length = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i)
    length = std::max(length, int64_t{values[i + 1]} - values[i]);
  return std::min(length, total);
}

// True for tensors with one first dimension that is the same in both layouts.
bool countsNoTime(Lead lead) { return lead == Lead::kPositions || lead == Lead::kSequences; }

// What an axis or a leading dimension is, and the tensor that said so first.
struct Known {
  T source;
  int64_t extent;
};

// One reading. Members are what it establishes on the way, each used by the later steps.
class OperatorReader {
public:
  OperatorReader(Operator op, const ConfigFile &config, const SafetensorsFile &file)
      : config(config), file(file), decodes(definitionOf(op).hasCache), cache(config, file, result.inputs) {
    spec = config.spec;
    spec.op = op;
    spec.clearUnread();
    // The rest is the tensors' to say: queryHeads and the like stay as they are where no tensor shows them. How many
    // keys decode has stands in its cache.
    isPacked = file.contains("cu_seqlens_q") || (!decodes && file.contains("cu_seqlens_k")) ||
               (!readsLengths(op) && config.spec.layout == Layout::kPacked);
  }

  Result<OperatorFile> run() {
    NSA_RETURN_IF_ERROR(settleKeyOffset());
    for (const Operand &operand : operandsOf(spec.op))
      if (operand.isRead() && takes(spec, operand.name))
        NSA_RETURN_IF_ERROR(readOperand(operand));
    NSA_RETURN_IF_ERROR(settleGates());
    for (const auto &[name, tensor] : result.inputs.tensors)
      NSA_RETURN_IF_ERROR(checkDerivedAxes(name, tensor));
    NSA_RETURN_IF_ERROR(settleLayout());
    if (config.has("dtype") && config.spec.dtype != spec.dtype)
      return disagrees("dtype", std::string(dtypeName(config.spec.dtype)), std::string(dtypeName(spec.dtype)));
    if (!known(Axis::kVDim) && !config.has("v_dim"))
      spec.vDim = spec.qkDim; // select sees no values
    if (!known(Axis::kKvHeads) && !config.has("kv_heads"))
      return config.missing("kv_heads"); // combine with a gate for each query head
    if (decodes)
      NSA_RETURN_IF_ERROR(cache.settlePages(spec));
    NSA_RETURN_IF_ERROR(spec.validate());
    NSA_RETURN_IF_ERROR(isPacked ? settlePacked() : settleDense());
    if (decodes)
      NSA_RETURN_IF_ERROR(settleCache());
    result.inputs.spec = spec;
    NSA_RETURN_IF_ERROR(result.inputs.maxima.validate(spec));
    for (const auto &[name, entry] : file.entries())
      if (!(isPacked && name.starts_with("cu_seqlens")) && // say that the layout is packed
          !std::ranges::any_of(result.inputs.tensors, [&](const auto &read) { return nameText(read.first) == name; }))
        result.ignored.push_back(name);
    return std::move(result);
  }

private:
  const Known *known(Axis axis) const {
    const auto found = axes.find(axis);
    return found == axes.end() ? nullptr : &found->second;
  }

  // "[time, query_heads, qk_dim] or [batch, time, query_heads, qk_dim]"
  std::string shapeRule(const TensorRule &rule) const {
    if (isOfCache(rule.lead))
      return cache.shapeRule(rule);
    std::string text;
    for (int i = 0; i < rule.axisCount; ++i)
      text += (text.empty() ? "" : ", ") + std::string(axisSource(rule.axes[static_cast<size_t>(i)]));
    if (rule.lead == Lead::kNone)
      return "must be [" + text + "]";
    if (rule.lead == Lead::kSequences)
      return "must be [batch]";
    if (rule.lead == Lead::kPositions)
      return "must be [positions, " + text + "]";
    if (rule.lead == Lead::kEntries)
      return "must be [" + text + ", places]" + (isPacked ? " beside cu_seqlens" : " or [batch, " + text + ", places]");
    if (isPacked)
      return "must be [total, " + text + "] beside cu_seqlens";
    const std::string time = rule.lead == Lead::kBlocks ? "blocks, " : "time, ";
    if (decodes)
      return "must be [batch, " + time + text + "]";
    return "must be [" + time + text + "] or [batch, " + time + text + "]";
  }

  // A tensor of offsets says that there are some, to an operator that reads offsets.
  Status settleKeyOffset() {
    if (!(fieldsOf(spec.op) & kKeyOffsetField) || !file.contains(nameText(T::kKOffset)))
      return Status::ok();
    if (config.has("key_offset") && !spec.keyOffset)
      return disagrees("key_offset", "false", "true");
    spec.keyOffset = true;
    return Status::ok();
  }

  Status readOperand(const Operand &operand) {
    const bool hasOwn = file.contains(nameText(operand.name));
    if (!hasOwn && operand.isOptional() && !file.contains(nameText(operand.otherwise)))
      return Status::ok();
    const T name = hasOwn ? operand.name : operand.otherwise;
    if (result.inputs.tensors.contains(name))
      return Status::ok(); // stands for several operands
    if (const OperatorDef *writer = writerOf(spec.op, name); writer && !file.contains(nameText(name)))
      return Status::invalid(nameText(name), "absent", "must be in the file",
                             "the operator " + std::string(writer->name) + " writes it with --all-outputs");
    NSA_ASSIGN_OR_RETURN(HostTensor tensor, file.read(nameText(name)));
    NSA_RETURN_IF_ERROR(checkType(name, tensor));
    NSA_RETURN_IF_ERROR(checkLead(name, tensor));
    NSA_RETURN_IF_ERROR(takeAxes(name, tensor));
    result.inputs.tensors.emplace(name, std::move(tensor));
    return Status::ok();
  }

  Status checkType(T name, const HostTensor &tensor) {
    const TensorRole role = tensorRule(name).role;
    if (role != TensorRole::kIo && role != TensorRole::kKeyValue) {
      const DType wanted = spec.types().of(role);
      if (tensor.dtype != wanted)
        return Status::invalid(nameText(name), std::string(dtypeName(tensor.dtype)),
                               "must be " + std::string(dtypeName(wanted)));
      return Status::ok();
    }
    if (tensor.dtype == DType::kI32)
      return Status::invalid(nameText(name), "int32", "must be bf16, fp16 or fp32");
    if (!dtypeSource) {
      dtypeSource = name;
      spec.dtype = tensor.dtype;
    }
    if (tensor.dtype != spec.dtype)
      return Status::invalid(nameText(name), std::string(dtypeName(tensor.dtype)),
                             "must have the dtype of " + nameText(*dtypeSource) + ", " +
                                 std::string(dtypeName(spec.dtype)));
    return Status::ok();
  }

  // The first one of the rule's axes. The places of an inverse of lists stand behind them, and what else counts tokens
  // stands in front.
  static size_t axesBegin(const TensorRule &rule, const HostTensor &tensor) {
    return tensor.shape.size() - rule.axisCount - (rule.lead == Lead::kEntries ? 1 : 0);
  }

  // Rank, batch and time.
  Status checkLead(T name, const HostTensor &tensor) {
    const TensorRule &rule = tensorRule(name);
    const std::vector<int64_t> &shape = tensor.shape;
    auto broken = [&](std::string text) { return Status::invalid(nameText(name), shapeText(shape), std::move(text)); };
    if (std::ranges::any_of(shape, [](int64_t n) { return n > std::numeric_limits<int32_t>::max(); }))
      return broken("must have extents below 2^31");
    const size_t axisCount = rule.axisCount;
    const bool hasLead = rule.lead != Lead::kNone, ofCache = isOfCache(rule.lead);
    const bool countsTime = hasLead && !ofCache && !countsNoTime(rule.lead);
    const bool hasBatch = ofCache || (countsTime && !isPacked && (decodes || shape.size() == axisCount + 2));
    if (shape.size() != axisCount + hasLead + hasBatch)
      return broken(shapeRule(rule));
    if (!countsTime)
      return Status::ok();
    if (!isPacked) {
      if (!batch)
        batch = {name, hasBatch ? shape[0] : kNoBatch};
      const std::string other = nameText(batch->source);
      if (hasBatch != (batch->extent != kNoBatch))
        return broken(hasBatch ? "must have no batch, as " + other + " has none"
                               : "must have a batch in front, as " + other + " has");
      if (hasBatch && shape[0] != batch->extent)
        return broken("must have the batch of " + other + ", " + std::to_string(batch->extent));
    }
    std::optional<Known> &time = times[static_cast<size_t>(rule.lead)];
    const int64_t extent = rule.lead == Lead::kEntries ? shape.back() : shape[hasBatch];
    if (!time)
      time = {name, extent};
    if (extent != time->extent)
      return broken("must have the time of " + nameText(time->source) + ", " + std::to_string(time->extent));
    return Status::ok();
  }

  // Fields of the spec that the tensor's shape gives, or must agree with.
  Status takeAxes(T name, const HostTensor &tensor) {
    const TensorRule &rule = tensorRule(name);
    const size_t lead = axesBegin(rule, tensor);
    for (size_t i = 0; i < rule.axisCount; ++i) {
      const Axis axis = rule.axes[i];
      const auto *field = std::ranges::find(kFields, axis, &std::pair<Axis, int32_t Spec::*>::first);
      if (field == std::end(kFields))
        continue;
      if (const Known *first = known(axis))
        NSA_RETURN_IF_ERROR(checkExtent(name, tensor, lead + i, first->extent,
                                        std::string(axisSource(axis)) + ", as in " + nameText(first->source)));
      else
        NSA_RETURN_IF_ERROR(takeAxis(axis, name, tensor.shape[lead + i], spec.*field->second));
    }
    return Status::ok();
  }

  Status takeAxis(Axis axis, T name, int64_t extent, int32_t &field) {
    const std::string key(axisSource(axis));
    if (config.has(key) && field != extent)
      return disagrees(key, std::to_string(field), std::to_string(extent));
    axes[axis] = {name, extent};
    field = static_cast<int32_t>(extent);
    return Status::ok();
  }

  // Gates for each query head or for each group: their extent says it.
  Status settleGates() {
    auto found = result.inputs.tensors.find(T::kGates);
    if (found == result.inputs.tensors.end())
      return Status::ok();
    const std::vector<int64_t> &shape = found->second.shape;
    const int64_t heads = shape[shape.size() - 2];
    const bool perGroup = heads != spec.queryHeads;
    if (perGroup && !known(Axis::kKvHeads))
      NSA_RETURN_IF_ERROR(takeAxis(Axis::kKvHeads, T::kGates, heads, spec.kvHeads));
    if (perGroup && heads != spec.kvHeads)
      return Status::invalid("gates", shapeText(shape),
                             "dimension " + std::to_string(shape.size() - 2) + " must be query_heads = " +
                                 std::to_string(spec.queryHeads) + " or kv_heads = " + std::to_string(spec.kvHeads));
    if (!config.has("gate_per_group"))
      spec.gatePerGroup = perGroup;
    // With as many groups as heads both are right.
    if (axisExtent(Axis::kGateHeads, spec) != heads)
      return disagrees("gate_per_group", config.spec.gatePerGroup ? "true" : "false", perGroup ? "true" : "false");
    return Status::ok();
  }

  // Extents that follow from fields of the spec, which are all known now.
  Status checkDerivedAxes(T name, const HostTensor &tensor) const {
    const TensorRule &rule = tensorRule(name);
    const size_t lead = axesBegin(rule, tensor);
    for (size_t i = 0; i < rule.axisCount; ++i) {
      const Axis axis = rule.axes[i];
      NSA_RETURN_IF_ERROR(checkExtent(name, tensor, lead + i, axisExtent(axis, spec), std::string(axisSource(axis))));
    }
    return Status::ok();
  }

  Status settleLayout() {
    spec.layout = isPacked ? Layout::kPacked : Layout::kDense;
    if (config.has("layout") && config.spec.layout != spec.layout)
      return disagrees("layout", std::string(layoutName(config.spec.layout)), std::string(layoutName(spec.layout)));
    return Status::ok();
  }

  Result<HostTensor> readLengths(T name) const {
    NSA_ASSIGN_OR_RETURN(HostTensor tensor, readIntegers(file, nameText(name)));
    if (tensor.shape.size() != 1 || tensor.shape[0] < 2)
      return Status::invalid(nameText(name), shapeText(tensor.shape), "must be of shape [batch + 1], batch >= 1");
    return tensor;
  }

  int64_t extentOf(Lead lead, int64_t otherwise) const {
    const std::optional<Known> &time = times[static_cast<size_t>(lead)];
    return time ? time->extent : otherwise;
  }

  Status settlePacked() {
    auto &[unusedSpec, maxima, extents, tensors] = result.inputs;
    if (!readsLengths(spec.op)) {
      extents.timeQ = extents.timeK = extentOf(Lead::kQueries, 0);
      maxima = {.batch = 1, .tokensQ = extents.timeQ, .seqlenQ = extents.timeQ, .seqlenK = extents.timeQ};
      return Status::ok();
    }
    for (const auto &[name, other] : {std::pair(T::kCuSeqlensQ, T::kCuSeqlensK), {T::kCuSeqlensK, T::kCuSeqlensQ}}) {
      if (decodes && name == T::kCuSeqlensK)
        continue;
      NSA_ASSIGN_OR_RETURN(tensors[name], readLengths(file.contains(nameText(name)) ? name : other));
    }
    const HostTensor &q = tensors[T::kCuSeqlensQ], &k = tensors[decodes ? T::kCuSeqlensQ : T::kCuSeqlensK];
    if (q.shape != k.shape)
      return Status::invalid("cu_seqlens_k", shapeText(k.shape),
                             "must have the shape of cu_seqlens_q, " + shapeText(q.shape));
    extents.batch = q.shape[0] - 1;
    const std::span<const int32_t> keys = k.integers();
    extents.timeQ = extentOf(Lead::kQueries, std::max(0, q.integers().back()));
    extents.timeK = extentOf(Lead::kKeys, std::max(0, keys.back()));
    int64_t blocks = 0;
    for (size_t i = 0; i + 1 < keys.size(); ++i)
      blocks += spec.compressedBlocks(std::min(int64_t{keys[i + 1]} - keys[i], extents.timeK));
    extents.blocks = extentOf(Lead::kBlocks, blocks);
    maxima = {.batch = extents.batch,
              .tokensQ = extents.timeQ,
              .seqlenQ = longest(q, extents.timeQ),
              .seqlenK = longest(k, extents.timeK)};
    return Status::ok();
  }

  Status settleDense() {
    auto &[unusedSpec, maxima, extents, tensors] = result.inputs;
    result.withoutBatch = batch && batch->extent == kNoBatch;
    if (result.withoutBatch)
      for (auto &[name, tensor] : tensors)
        if (const Lead lead = tensorRule(name).lead; lead != Lead::kNone && !countsNoTime(lead))
          tensor.shape.insert(tensor.shape.begin(), 1);
    extents.batch = result.withoutBatch || !batch ? 1 : batch->extent;
    // Compress sees no queries, cmp and select see no keys.
    extents.timeQ = extentOf(Lead::kQueries, extentOf(Lead::kKeys, 0));
    extents.timeK = extentOf(Lead::kKeys, extents.timeQ);
    extents.blocks = extentOf(Lead::kBlocks, spec.compressedBlocks(extents.timeK));
    maxima = {.batch = extents.batch,
              .tokensQ = extents.batch * extents.timeQ,
              .seqlenQ = extents.timeQ,
              .seqlenK = extents.timeK};
    return Status::ok();
  }

  // New tokens are queries and keys alike.
  Status settleCache() {
    const std::optional<Known> &queries = times[static_cast<size_t>(Lead::kQueries)];
    const std::optional<Known> &keys = times[static_cast<size_t>(Lead::kKeys)];
    if (keys && queries && keys->extent != queries->extent)
      return Status::invalid(nameText(keys->source), shapeText(result.inputs[keys->source].shape),
                             "must have the time of " + nameText(queries->source) + ", " +
                                 std::to_string(queries->extent) + ": new tokens are queries and keys alike");
    return cache.settle(spec);
  }

  static constexpr int64_t kNoBatch = -1;

  const ConfigFile &config;
  const SafetensorsFile &file;
  const bool decodes;
  OperatorFile result;
  KvCacheReader cache; // of decode
  Spec spec;
  bool isPacked;
  std::optional<T> dtypeSource;
  std::optional<Known> batch;                // dense layout
  std::array<std::optional<Known>, 4> times; // by Lead
  std::map<Axis, Known> axes;
};

} // namespace

Result<OperatorFile> readOperatorFile(Operator op, const ConfigFile &config, const SafetensorsFile &file) {
  return OperatorReader(op, config, file).run();
}

} // namespace nsa::tools
