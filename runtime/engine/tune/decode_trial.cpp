#include "runtime/engine/tune/decode_trial.h"

#include "runtime/base/signature.h"
#include "runtime/engine/tune/drawn_values.h"

#include <algorithm>
#include <numeric>

namespace nsa {

namespace {

using T = TensorName;

// Bytes of all caches at most; a GPU that serves decode keeps much more of them.
constexpr double kGpuBytes = 10e9, kCpuBytes = 512e6;
// Where they are filled anew for each run, which takes longer than the run: their bytes, and the keys of a sequence.
constexpr double kRestoredBytes = 2e6;
constexpr int64_t kMostRestoredKeys = 512;
// New tokens of a sequence: a chunk of a prompt tells as much as the whole.
constexpr int64_t kMostGpuTokens = 4096, kMostCpuTokens = 64, kMostCheckedTokens = 64;

// Gates above zero: of two branches that nearly cancel, little more than their rounding would be compared.
constexpr float kTypicalGate = 4;

Spec wholeOf(const Spec &part) {
  Spec spec = part;
  spec.op = Operator::kDecode;
  spec.layout = Layout::kDense;
  return spec;
}

// Of one sequence, with as many blocks as could ever be.
double cacheBytes(const Spec &spec, int64_t room) {
  const double rows = static_cast<double>(room) * (1 + 1.0 / spec.cmpStride);
  return rows * spec.kvHeads * (static_cast<double>(spec.qkDim) + spec.vDim) * dtypeBytes(spec.dtype);
}

class Recorder final : public LaunchTap {
public:
  Recorder(Role role, KernelCall &call) : wanted(role), call(call) {}
  void launching(Role role, const KernelCall &kernelCall) override {
    if (role != wanted)
      return;
    call = kernelCall;
    found = true;
  }
  bool found = false;

private:
  const Role wanted;
  KernelCall &call;
};

} // namespace

DecodeTrial::DecodeTrial(Device &device, const Spec &part, const Maxima &maxima, uint64_t seed, TrialLaunches launches)
    : device(device), spec(wholeOf(part)), maxima(maxima), seed(seed), draw(seed), launches(std::move(launches)) {
  // The dense layout's rule, whatever the part's: all sequences may bring as many.
  this->maxima.tokensQ = maxima.batch * maxima.seqlenQ;
  rules = CallRules(spec, this->maxima);
}

Result<std::unique_ptr<Trial>> DecodeTrial::make(Device &device, const Spec &part, const Maxima &maxima, uint64_t seed,
                                                 double mostBytes, const Serve &serve) {
  NSA_ASSIGN_OR_RETURN(TrialLaunches launches, TrialLaunches::make(device));
  std::unique_ptr<DecodeTrial> trial(new DecodeTrial(device, part, maxima, seed, std::move(launches)));
  for (const Step &step : stepsOf(trial->spec, trial->maxima))
    if (step.spec.op == part.op) {
      trial->role = step.role;
      trial->writesCache = step.node->writesCache;
    }
  if (trial->role == Role::kMain)
    return Status::error(ErrorCode::kInternal,
                         "decode has no " + std::string(operatorName(part.op)) + " with these maxima");
  NSA_RETURN_IF_ERROR(trial->findKernels(serve));
  NSA_RETURN_IF_ERROR(trial->allocate(mostBytes));
  trial->cutOfPart = cutText(part, maxima, trial->shape);
  NSA_RETURN_IF_ERROR(trial->recordTimed());
  // Each compared run finds in the cache what the others have put there. All of it is the same after two rounds: the
  // first writes the new tokens, the second the compressed blocks of what the first has left in the rings.
  const LoadedKernel &served = *trial->kernels[static_cast<size_t>(trial->role)];
  for (int round = 0; round < 2 && !trial->writesCache; ++round)
    if (Result<TuningResult> result = trial->check(served); !result)
      return result.status();
  return std::unique_ptr<Trial>(std::move(trial));
}

Status DecodeTrial::findKernels(const Serve &serve) {
  for (const Step &step : stepsOf(spec, maxima)) {
    NSA_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedKernel> kernel, serve(step.spec, step.maxima));
    kernels[static_cast<size_t>(step.role)] = kernel.get();
    servedKernels.push_back(std::move(kernel));
  }
  return Status::ok();
}

Status DecodeTrial::allocate(double mostBytes) {
  int64_t keys = std::max<int64_t>(maxima.seqlenK, 1);
  const bool attendsTokens = takes(spec, T::kKSelCache) || takes(spec, T::kKWinCache);
  if (writesCache && attendsTokens) // compressed keys alone have room for all that the maxima allow
    keys = std::min(keys, std::max(kMostRestoredKeys, 2 * std::min(maxima.seqlenQ, kMostGpuTokens)));
  const int64_t pagesOfSequence = spec.pageSize ? (keys + spec.pageSize - 1) / spec.pageSize : 0;
  room = spec.pageSize ? pagesOfSequence * spec.pageSize : keys;
  sequences = std::max<int64_t>(maxima.batch, 1);
  const double most = std::min(writesCache ? kRestoredBytes : device.isGpu() ? kGpuBytes : kCpuBytes, mostBytes);
  while (sequences > 1 && static_cast<double>(sequences) * cacheBytes(spec, room) > most)
    sequences /= 2;
  pages = sequences * pagesOfSequence;
  const int64_t tokens = std::min(std::max<int64_t>(maxima.seqlenQ, 1), keys);
  timedTokens = std::min(tokens, device.isGpu() ? kMostGpuTokens : kMostCpuTokens);
  checkedTokens = std::min(tokens, kMostCheckedTokens);

  // Of what stands in for another tensor the other alone: branches share keys, values and caches.
  for (const Operand &operand : operandsOf(spec.op))
    if (takes(spec, operand.name) && operand.name == operand.otherwise && !operand.isOptional())
      NSA_RETURN_IF_ERROR(add(operand.name, timedTokens));
  for (T shared : {T::kK, T::kV, T::kKCache, T::kVCache})
    if (attendsTokens || shared == T::kK || shared == T::kV)
      NSA_RETURN_IF_ERROR(add(shared, timedTokens));
  if (takes(spec, T::kBlockList))
    NSA_RETURN_IF_ERROR(add(T::kBlockList, timedTokens));
  NSA_RETURN_IF_ERROR(add(T::kReads, timedTokens));
  NSA_RETURN_IF_ERROR(add(T::kCacheSeqlens, timedTokens));
  if (spec.pageSize)
    NSA_RETURN_IF_ERROR(addTable());

  // Everywhere in the cache, at its end, and where it has hardly begun.
  auto drawn = [&](int64_t low, int64_t high) {
    std::vector<int32_t> lengths;
    for (int64_t i = 0; i < sequences; ++i)
      lengths.push_back(static_cast<int32_t>(std::uniform_int_distribution<int64_t>(low, std::max(low, high))(draw)));
    return lengths;
  };
  const int64_t last = keys - checkedTokens;
  checkedLengths = {drawn(0, last), drawn(std::max<int64_t>(last - spec.selBlock, 0), last),
                    drawn(0, std::min<int64_t>(last, 2 * int64_t{spec.cmpBlock}))};
  shape = {sequences, timedTokens, keys};
  return Status::ok();
}

Tensor DecodeTrial::shaped(TensorName name, void *data, int64_t time) const {
  const TensorRule &rule = tensorRule(name);
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = spec.types().of(rule.role);
  const bool paged = spec.pageSize > 0;
  if (name == T::kCacheSeqlens) {
    tensor.addAxis(sequences);
  } else if (name == T::kBlockTable) {
    tensor.addAxis(sequences);
    tensor.addAxis(pages / sequences);
  } else if (rule.lead == Lead::kQueries || rule.lead == Lead::kKeys) {
    tensor.addAxis(sequences);
    tensor.addAxis(time);
  } else if (rule.lead == Lead::kCache) {
    tensor.addAxis(paged ? pages : sequences);
    tensor.addAxis(paged ? spec.pageSize : room);
  } else if (rule.lead == Lead::kCacheBlocks) {
    tensor.addAxis(paged ? pages : sequences);
    tensor.addAxis(paged ? spec.pageSize / spec.cmpStride : std::max<int64_t>(spec.compressedBlocks(room), 1));
  } else if (rule.lead == Lead::kRing) {
    tensor.addAxis(sequences);
    tensor.addAxis(spec.cmpBlock);
  }
  for (size_t i = 0; i < rule.axisCount; ++i)
    tensor.addAxis(axisExtent(rule.axes[i], spec));
  const auto axes = static_cast<size_t>(tensor.rank);
  (void)setRowMajorStrides({tensor.shape.data(), axes}, {tensor.strides.data(), axes}); // sized to fit a memory
  return tensor;
}

Status DecodeTrial::add(TensorName name, int64_t time) {
  const Tensor tensor = shaped(name, nullptr, time);
  const auto rank = static_cast<size_t>(tensor.rank);
  const int64_t elements =
      std::reduce(tensor.shape.begin(), tensor.shape.begin() + tensor.rank, int64_t{1}, std::multiplies<>());
  NSA_ASSIGN_OR_RETURN(
      DeviceBuffer buffer,
      DeviceBuffer::allocate(device, static_cast<size_t>(elements * dtypeBytes(tensor.dtype)), drawSkipped(draw)));
  void *data = buffer.data();
  memory.push_back({name, tensor.dtype, elements, std::move(buffer)});
  if (name == T::kOut || name == T::kBlockList || name == T::kReads) {
    using enum TuningResult::Kind;
    const int64_t checked = elements / time * checkedTokens;
    const auto kind = name == T::kOut ? kRows : name == T::kReads ? kCounts : kLists;
    outputs.push_back({std::string(tensorName(name)), kind, tensor.shape[rank - 1], checked, data, tensor.dtype});
    return Status::ok();
  }
  if (tensor.dtype == DType::kI32)
    return Status::ok();
  std::mt19937_64 own(seed + static_cast<uint64_t>(name));
  return fillDrawn(device, data, tensor.dtype, elements, name == T::kGates ? kTypicalGate : 0, own);
}

Status DecodeTrial::restore() {
  for (const Memory &piece : memory) {
    const Lead lead = tensorRule(piece.name).lead;
    if (lead != Lead::kCache && lead != Lead::kCacheBlocks && lead != Lead::kRing)
      continue;
    std::mt19937_64 own(seed + static_cast<uint64_t>(piece.name));
    NSA_RETURN_IF_ERROR(fillDrawn(device, piece.buffer.data(), piece.dtype, piece.elements, 0, own));
  }
  return Status::ok();
}

// Every page where chance has it.
Status DecodeTrial::addTable() {
  NSA_RETURN_IF_ERROR(add(T::kBlockTable, timedTokens));
  std::vector<int32_t> table(static_cast<size_t>(pages));
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), draw);
  return device.upload(memory.back().buffer.data(), table.data(), table.size() * sizeof(int32_t));
}

Bindings DecodeTrial::bindings(int64_t time) const {
  Bindings result;
  for (const Memory &piece : memory)
    result[piece.name] = shaped(piece.name, piece.buffer.data(), time);
  return result;
}

Status DecodeTrial::setLengths(const std::vector<int32_t> &lengths) {
  for (const Memory &piece : memory)
    if (piece.name == T::kCacheSeqlens)
      return device.upload(piece.buffer.data(), lengths.data(), lengths.size() * sizeof(int32_t));
  return Status::error(ErrorCode::kInternal, "the trial has no lengths");
}

Status DecodeTrial::runAll(const LoadedKernel &kernel, int64_t time, DeviceBuffer &workspace, size_t &workspaceBytes,
                           LaunchTap *tap) {
  RoleKernels used = kernels;
  used[static_cast<size_t>(role)] = &kernel;
  size_t scratchBytes = 0;
  for (const LoadedKernel *each : used)
    if (each)
      scratchBytes = std::max(scratchBytes, each->workspaceBytes());
  const WorkspaceLayout layout(spec, maxima, scratchBytes, device.isGpu());
  NSA_RETURN_IF_ERROR(layout.check(maxima));
  if (layout.bytes > workspaceBytes) {
    NSA_ASSIGN_OR_RETURN(workspace, DeviceBuffer::allocate(device, layout.bytes));
    workspaceBytes = layout.bytes;
  }
  std::vector<LaunchStep> steps;
  for (Step &step : stepsOf(spec, maxima))
    steps.push_back({used[static_cast<size_t>(step.role)], step.node, std::move(step.arguments)});
  Call call;
  NSA_RETURN_IF_ERROR(prepareCall(rules, bindings(time), call));
  return launches.runAll([&](int32_t *word, void *stream) {
    return PipelineRun{
        rules,   steps, routesOf(spec, maxima), layout, call, static_cast<std::byte *>(workspace.data()), word, stream,
        nullptr, tap}
        .run();
  });
}

// What the kernels before the role leave in the workspace stays there for all timed launches.
Status DecodeTrial::recordTimed() {
  const auto before = static_cast<int32_t>(std::max<int64_t>(std::min(maxima.seqlenK, room) - timedTokens, 0));
  NSA_RETURN_IF_ERROR(setLengths(std::vector(static_cast<size_t>(sequences), before)));
  Recorder recorder(role, timedCall);
  NSA_RETURN_IF_ERROR(runAll(*kernels[static_cast<size_t>(role)], timedTokens, timedWorkspace, timedBytes, &recorder));
  if (!recorder.found)
    return Status::error(ErrorCode::kInternal, "decode does not launch the kernel that is tuned");
  return Status::ok();
}

Result<TuningResult> DecodeTrial::check(const LoadedKernel &kernel) {
  TuningResult result;
  for (size_t i = 0; i < checkedLengths.size(); ++i) {
    for (const ComparedOutput &output : outputs)
      NSA_RETURN_IF_ERROR(output.poison(device));
    if (writesCache)
      NSA_RETURN_IF_ERROR(restore());
    NSA_RETURN_IF_ERROR(setLengths(checkedLengths[i]));
    NSA_RETURN_IF_ERROR(runAll(kernel, checkedTokens, checkedWorkspace, checkedBytes, nullptr));
    for (const ComparedOutput &output : outputs) {
      NSA_ASSIGN_OR_RETURN(TuningResult::Output values, output.read(device));
      values.name += " of run " + std::to_string(i);
      if (values.kind == TuningResult::Kind::kLists)
        for (const int32_t before : checkedLengths[i])
          values.addOwnBlocks(spec, before, checkedTokens);
      result.outputs.push_back(std::move(values));
    }
  }
  return result;
}

Status DecodeTrial::launchTimed(const LoadedKernel &kernel, void *stream) {
  return launches.launch(kernel, timedCall, stream);
}

} // namespace nsa
