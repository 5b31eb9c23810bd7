#include "tools/support/operator_job.h"

#include "tools/reference/elements.h"
#include "tools/support/forward_pass.h"
#include "tools/support/standard_normal.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace nsa::tools {
namespace {

// So many elements are drawn and then repeated: drawing a gigabyte takes longer than everything that is done with it. A
// prime, so that no row begins like another one.
constexpr int64_t kDrawnElements = 4'194'301;

constexpr unsigned char kWorkspacePoison = poisonOf(DType::kF32);

HostTensor offsets(const std::vector<int64_t> &lengths) {
  HostTensor tensor = HostTensor::make(DType::kI32, {static_cast<int64_t>(lengths.size()) + 1});
  std::partial_sum(lengths.begin(), lengths.end(), tensor.integers().begin() + 1);
  return tensor;
}

// The own block, the first ones with a coin, and any others up to it, in order.
HostTensor drawLists(const Spec &spec, const SequenceLengths &lengths, const CallExtents &extents,
                     std::mt19937_64 &random) {
  HostTensor tensor = HostTensor::make(DType::kI32, shapeOf(spec, TensorName::kBlockList, extents));
  int32_t *list = tensor.integers().data();
  for (size_t sequence = 0; sequence < lengths.q.size(); ++sequence)
    for (int64_t query = 0; query < lengths.q[sequence]; ++query)
      for (int32_t group = 0; group < spec.kvHeads; ++group, list += spec.selCount) {
        const int64_t own = (lengths.k[sequence] - lengths.q[sequence] + query) / spec.selBlock;
        std::set<int64_t> blocks = {own};
        const auto wanted = static_cast<size_t>(1 + random() % static_cast<uint64_t>(spec.selCount));
        while (blocks.size() < std::min(wanted, static_cast<size_t>(own + 1)))
          blocks.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(own + 1)));
        std::fill_n(list, spec.selCount, -1);
        std::copy(blocks.begin(), blocks.end(), list);
      }
  return tensor;
}

// The dimensions in front of those that the spec gives.
std::vector<int64_t> leadOf(const Spec &spec, TensorName name, const CallExtents &extents) {
  const int64_t page = spec.pageSize;
  const auto rows = [&](int64_t time) {
    return spec.layout == Layout::kPacked ? std::vector{time} : std::vector{extents.batch, time};
  };
  switch (tensorRule(name).lead) {
  case Lead::kQueries:
    return rows(extents.timeQ);
  case Lead::kKeys:
    return rows(extents.timeK);
  case Lead::kBlocks:
    return rows(extents.blocks);
  case Lead::kCache:
    return page ? std::vector{extents.pages, page} : std::vector{extents.batch, extents.room};
  case Lead::kCacheBlocks:
    return page ? std::vector{extents.pages, page / spec.cmpStride}
                : std::vector{extents.batch, spec.compressedBlocks(extents.room)};
  case Lead::kRing:
    return {extents.batch, spec.cmpBlock};
  case Lead::kPositions:
    return {extents.timeK};
  case Lead::kSequences:
    return {extents.batch};
  case Lead::kEntries:
    return spec.layout == Layout::kPacked ? std::vector<int64_t>() : std::vector{extents.batch};
  case Lead::kNone:
    break;
  }
  if (name == TensorName::kCuSeqlensQ || name == TensorName::kCuSeqlensK)
    return {extents.batch + 1};
  if (name == TensorName::kCacheSeqlens)
    return {extents.batch};
  if (name == TensorName::kBlockTable)
    return {extents.batch, page ? extents.room / page : 0};
  return {};
}

} // namespace

HostTensor drawTensor(DType dtype, std::vector<int64_t> shape, const std::function<float()> &draw) {
  HostTensor tensor = HostTensor::make(dtype, std::move(shape));
  const int64_t count = tensor.elements(), drawn = std::min(count, kDrawnElements);
  for (int64_t i = 0; i < drawn; ++i)
    reference::storeElement(dtype, tensor.bytes.data(), i, draw());
  const int64_t bytes = dtypeBytes(dtype);
  for (int64_t done = drawn; done < count; done += drawn)
    std::memcpy(tensor.bytes.data() + done * bytes, tensor.bytes.data(),
                static_cast<size_t>(std::min(drawn, count - done) * bytes));
  return tensor;
}

nsa_tensor contiguousTensor(void *data, DType dtype, const std::vector<int64_t> &shape) {
  nsa_tensor tensor;
  return *nsa_tensor_rows(&tensor, data, static_cast<nsa_dtype>(dtype), static_cast<int32_t>(shape.size()),
                          shape.data());
}

std::vector<int64_t> shapeOf(const Spec &spec, TensorName name, const CallExtents &extents) {
  const TensorRule &rule = tensorRule(name);
  std::vector<int64_t> shape = leadOf(spec, name, extents);
  for (int i = 0; i < rule.axisCount; ++i)
    shape.push_back(axisExtent(rule.axes[static_cast<size_t>(i)], spec));
  // The inverse of lists: offsets, and room for every query of each place of a list (docs/specification.md 9).
  if (rule.lead == Lead::kEntries)
    shape.push_back((spec.layout == Layout::kPacked ? extents.timeK / spec.selBlock + 2 * extents.batch
                                                    : (extents.timeK + spec.selBlock - 1) / spec.selBlock + 1) +
                    extents.timeQ * spec.selCount);
  return shape;
}

DType dtypeOf(const Spec &spec, TensorName name) { return spec.types().of(tensorRule(name).role); }

bool isOfCache(Lead lead) { return lead == Lead::kCache || lead == Lead::kCacheBlocks || lead == Lead::kRing; }

bool isUpdated(TensorName name) { return isOfCache(tensorRule(name).lead) || name == TensorName::kCacheSeqlens; }

const HostTensor *OperatorInputs::find(TensorName name, TensorName otherwise) const {
  auto found = tensors.find(name);
  if (found == tensors.end())
    found = tensors.find(otherwise);
  return found == tensors.end() ? nullptr : &found->second;
}

SequenceLengths SequenceLengths::largest(const Maxima &maxima) {
  const auto batch = static_cast<size_t>(maxima.batch);
  return {std::vector(batch, maxima.seqlenQ), std::vector(batch, maxima.seqlenK)};
}

std::set<TensorName> allOutputs(Operator op) {
  std::set<TensorName> names;
  for (const Operand &operand : operandsOf(op))
    if (!operand.isRead())
      names.insert(operand.name);
  return names;
}

std::set<TensorName> requiredOutputs(Operator op) {
  std::set<TensorName> names;
  for (const Operand &operand : operandsOf(op))
    if (!operand.isRead() && !operand.isOptional())
      names.insert(operand.name);
  return names;
}

TensorName outputName(const Operand &operand, const NamedTensors &inputs) {
  const std::optional<TensorName> of = gradientOf(operand.name);
  return of && !inputs.contains(*of) ? operand.otherwise : operand.name;
}

std::set<TensorName> outputsOf(const Spec &spec, const NamedTensors &inputs, const std::set<TensorName> &wanted) {
  std::set<TensorName> names;
  // A tensor that the call leaves out has no gradient.
  const auto isMade = [&](const Operand &operand) {
    const std::optional<TensorName> of = gradientOf(operand.name);
    return !operand.isOptional() || (wanted.contains(operand.name) && (!of || inputs.contains(*of)));
  };
  for (const Operand &operand : operandsOf(spec.op)) {
    if (!operand.isRead() && takes(spec, operand.name) && isMade(operand))
      names.insert(outputName(operand, inputs));
    if (!operand.isRead() && isZeroGradient(spec, operand.name) && wanted.contains(operand.name))
      names.insert(operand.name);
  }
  return names;
}

OperatorInputs layOut(const Spec &spec, const SequenceLengths &lengths) {
  assert(lengths.q.size() == lengths.k.size() && !lengths.q.empty());
  OperatorInputs inputs;
  inputs.spec = spec;
  CallExtents &extents = inputs.extents;
  extents.batch = static_cast<int64_t>(lengths.q.size());
  inputs.maxima.batch = extents.batch;
  inputs.maxima.tokensQ = std::reduce(lengths.q.begin(), lengths.q.end());
  inputs.maxima.seqlenQ = *std::max_element(lengths.q.begin(), lengths.q.end());
  inputs.maxima.seqlenK = *std::max_element(lengths.k.begin(), lengths.k.end());
  if (spec.layout == Layout::kDense) {
    extents.timeQ = lengths.q[0];
    extents.timeK = lengths.k[0];
    extents.blocks = spec.compressedBlocks(lengths.k[0]);
    return inputs;
  }
  extents.timeQ = inputs.maxima.tokensQ;
  extents.timeK = std::reduce(lengths.k.begin(), lengths.k.end());
  for (int64_t keys : lengths.k)
    extents.blocks += spec.compressedBlocks(keys);
  if (readsLengths(spec.op)) {
    inputs.tensors[TensorName::kCuSeqlensQ] = offsets(lengths.q);
    inputs.tensors[TensorName::kCuSeqlensK] = offsets(lengths.k);
  }
  return inputs;
}

OperatorInputs drawInputs(const Spec &spec, const SequenceLengths &lengths, uint64_t seed, Saved saved) {
  assert(!definitionOf(spec.op).hasCache && "begins with a history");
  std::mt19937_64 random(seed);
  OperatorInputs inputs = layOut(spec, lengths);
  StandardNormal normal;
  // Not so small that outputs leave the normal numbers of fp16.
  std::uniform_real_distribution<float> uniform(0.0625f, 1);
  for (const Operand &operand : operandsOf(spec.op)) {
    const TensorName name = operand.name;
    const TensorRule &rule = tensorRule(name);
    // The forward pass makes what gradients take of it.
    const Operand *ofForward = definitionOf(definitionOf(spec.op).gradientOf).operandOf(name);
    // Without the branch cmp a gradient does not read what lists are made from, and the lists are drawn.
    const bool isDrawnList = name == TensorName::kBlockList && !spec.compresses();
    if (ofForward && ofForward->isWritten() && !operand.isWritten() && !isDrawnList)
      continue;
    // Without a log-sum-exp of its own select finds the right one, and without cosines a rotation computes its angles;
    // drawn ones would mean nothing. Drawn keys begin at position 0.
    if (!takes(spec, name) || operand.isWritten() || name == TensorName::kLse || name == TensorName::kQCmp ||
        name == TensorName::kBlockIndex || rule.lead == Lead::kPositions)
      continue;
    std::vector<int64_t> shape = shapeOf(spec, name, inputs.extents);
    if (name == TensorName::kKOffset) {
      inputs.tensors[name] = HostTensor::make(DType::kI32, std::move(shape));
    } else if (name == TensorName::kBlockList) {
      inputs.tensors[name] = drawLists(spec, lengths, inputs.extents, random);
    } else if (name == TensorName::kGates && spec.gate == Gate::kValue) {
      inputs.tensors[name] = drawTensor(spec.dtype, std::move(shape), [&] { return uniform(random); });
    } else {
      // A product over the inner dimension keeps the scale of its rows.
      const bool isMatrix =
          rule.lead == Lead::kNone && shape.size() >= 2 && name != TensorName::kPeK && name != TensorName::kPeV;
      float inner = 1;
      if (isMatrix)
        for (size_t i = 0; i + 1 < shape.size(); ++i)
          inner *= static_cast<float>(shape[i]);
      const float scale = 1 / std::sqrt(inner);
      inputs.tensors[name] = drawTensor(spec.dtype, std::move(shape), [&] { return scale * normal(random); });
    }
  }
  if (definitionOf(spec.op).keys == MetKeys::kBlocks) {
    inputs.tensors[TensorName::kQCmp] =
        drawTensor(spec.dtype, shapeOf(spec, TensorName::kQCmp, inputs.extents), [&] { return normal(random); });
  }
  if (saved == Saved::kByReference)
    addReferenceSaved(inputs);
  return inputs;
}

Status DeviceCall::add(TensorName name, DType dtype, const std::vector<int64_t> &shape, const HostTensor *source,
                       std::optional<SpacedLayout> layout) {
  auto &[buffer, tensor, entryLayout] = entries[name];
  const int64_t bytes = layout ? layout->bytes() : elementsOf(shape) * dtypeBytes(dtype);
  NSA_ASSIGN_OR_RETURN(buffer, accelerator->allocate(static_cast<size_t>(bytes)));
  tensor = contiguousTensor(buffer.data(), dtype, shape);
  bindings.push_back({static_cast<nsa_name>(name), &tensor});
  if (layout) {
    tensor.data = static_cast<std::byte *>(buffer.data()) + layout->beginBytes();
    std::ranges::copy(layout->strides(), tensor.strides);
    entryLayout = std::move(layout);
  }
  if (!source)
    return accelerator->fill(buffer.data(), poisonOf(dtype), buffer.size());
  const std::vector<std::byte> image = entryLayout ? entryLayout->scatter(source->bytes) : std::vector<std::byte>();
  return accelerator->upload(buffer.data(), (entryLayout ? image : source->bytes).data(), buffer.size());
}

Result<DeviceOperator> DeviceOperator::upload(Accelerator &accelerator, const OperatorInputs &inputs,
                                              const std::set<TensorName> &wanted, const Spacing &spacing,
                                              const HeldOutputs &held) {
  const Spec &spec = inputs.spec;
  DeviceOperator job;
  job.accelerator = &accelerator;
  job.outputNames = outputsOf(spec, inputs.tensors, wanted);
  const auto add = [&](TensorName name, DType dtype, const std::vector<int64_t> &shape, const HostTensor *source) {
    const Lead lead = tensorRule(name).lead;
    const bool hasHeads = lead != Lead::kNone && lead != Lead::kSequences && lead != Lead::kEntries;
    const size_t headAxis = !hasHeads ? 0 : spec.layout == Layout::kPacked && !isUpdated(name) ? 1 : 2;
    return job.add(name, dtype, shape, source,
                   spacing.isContiguous() ? std::optional<SpacedLayout>()
                                          : SpacedLayout(dtype, shape, spacing, headAxis));
  };
  for (const auto &[name, tensor] : inputs.tensors)
    NSA_RETURN_IF_ERROR(add(name, dtypeOf(spec, name), tensor.shape, &tensor));
  for (const TensorName name : job.outputNames) {
    const auto own = held.find(name);
    if (own == held.end()) {
      NSA_RETURN_IF_ERROR(add(name, dtypeOf(spec, name), shapeOf(spec, name, inputs.extents), nullptr));
      continue;
    }
    const auto &[content, accumulate] = own->second;
    NSA_RETURN_IF_ERROR(add(name, content.dtype, content.shape, &content));
    job.tensor(name).accumulate = accumulate;
  }
  return job;
}

void DeviceOperator::rebind(TensorName name, void *data, const std::vector<int64_t> &strides) {
  nsa_tensor &tensor = entries.at(name).tensor;
  assert(static_cast<size_t>(tensor.rank) == strides.size());
  tensor.data = data;
  std::copy(strides.begin(), strides.end(), tensor.strides);
}

Status DeviceCall::poisonOutputs() {
  for (const TensorName name : outputNames) {
    const Entry &entry = entries.at(name);
    NSA_RETURN_IF_ERROR(
        accelerator->fill(entry.buffer.data(), poisonOf(static_cast<DType>(entry.tensor.dtype)), entry.buffer.size()));
  }
  return Status::ok();
}

Status DeviceCall::checkGuards() const {
  NSA_RETURN_IF_ERROR(accelerator->checkGuards(workspace, "the workspace"));
  for (const auto &[name, entry] : entries)
    NSA_RETURN_IF_ERROR(accelerator->checkGuards(entry.buffer, tensorName(name)));
  return Status::ok();
}

Result<HostTensor> DeviceCall::download(TensorName name) const {
  const auto &[buffer, tensor, layout] = entries.at(name);
  HostTensor target = HostTensor::make(static_cast<DType>(tensor.dtype), {tensor.shape, tensor.shape + tensor.rank});
  if (!layout) {
    NSA_RETURN_IF_ERROR(accelerator->download(target.bytes.data(), buffer.data(), target.bytes.size()));
    return target;
  }
  std::vector<std::byte> image(buffer.size());
  NSA_RETURN_IF_ERROR(accelerator->download(image.data(), buffer.data(), image.size()));
  if (const int64_t stray = layout->strayBytes(image))
    return Status::error(ErrorCode::kInternal, std::to_string(stray) + " bytes between the elements of " +
                                                   std::string(tensorName(name)) + " were written");
  target.bytes = layout->gather(image);
  return target;
}

Status DeviceCall::allocateWorkspace(const nsa_plan *plan) {
  NSA_ASSIGN_OR_RETURN(size_t bytes, workspaceSize(plan));
  if (bytes > workspace.size()) { // plans of one job share it
    NSA_ASSIGN_OR_RETURN(workspace, accelerator->allocate(bytes));
  }
  return workspace.size() ? accelerator->fill(workspace.data(), kWorkspacePoison, workspace.size()) : Status::ok();
}

Status DeviceCall::enqueue(const nsa_plan *plan) const {
  return toStatus(nsa_run(plan, bindings.data(), bindings.size(), workspace.data(), workspace.size(),
                          accelerator->stream(), nullptr));
}

Result<std::vector<nsa_part_time>> DeviceCall::runTimed(const nsa_plan *plan) const {
  std::vector<nsa_part_time> times(NSA_MOST_PARTS);
  size_t count = 0;
  NSA_RETURN_IF_ERROR(toStatus(nsa_run_timed(plan, bindings.data(), bindings.size(), workspace.data(), workspace.size(),
                                             accelerator->stream(), times.data(), times.size(), &count, nullptr)));
  times.resize(std::min(count, times.size()));
  return times;
}

Result<NamedTensors> DeviceOperator::download() const {
  NSA_RETURN_IF_ERROR(checkGuards());
  NamedTensors outputs;
  for (const auto &[name, entry] : entries)
    if (outputNames.contains(name) || isUpdated(name)) {
      NSA_ASSIGN_OR_RETURN(outputs[name], DeviceCall::download(name));
    }
  return outputs;
}

Result<RunResult> runOnce(Accelerator &accelerator, nsa_plan *plan, const OperatorInputs &inputs,
                          const std::set<TensorName> &wanted, const Spacing &spacing, const HeldOutputs &held) {
  NSA_ASSIGN_OR_RETURN(DeviceOperator job, DeviceOperator::upload(accelerator, inputs, wanted, spacing, held));
  NSA_RETURN_IF_ERROR(job.allocateWorkspace(plan));
  NSA_ASSIGN_OR_RETURN(double milliseconds, accelerator.time([&] { return job.enqueue(plan); }));
  NSA_RETURN_IF_ERROR(toStatus(nsa_plan_status(plan, accelerator.stream(), nullptr)));
  NSA_ASSIGN_OR_RETURN(NamedTensors outputs, job.download());
  return RunResult{std::move(outputs), milliseconds};
}

} // namespace nsa::tools
