#include "runtime/engine/tune/kernel_trial.h"

#include "runtime/base/key_splits.h"
#include "runtime/base/sequence_fields.h"
#include "runtime/base/signature.h"
#include "runtime/engine/call/call.h"
#include "runtime/engine/graph/gradient_graphs.h"
#include "runtime/engine/tune/drawn_values.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

namespace nsa {

namespace {

// One timed run shall stay in the order of 10 ms, and all tensors take no more than that needs.
struct Budget {
  double flops; // as if every query met every key
  double bytes;
  // Of attention that loses keys as it loses queries, exactly; 0: it keeps them. A few hundred queries by all keys of a
  // long prompt are equally long tiles, and how evenly these divide among a GPU's multiprocessors would decide; in the
  // prompt itself thousands of tiles of all lengths do so whatever their size. On a CPU what matters is which cache the
  // keys fill.
  double promptFlops;
};
constexpr Budget kCpuBudget = {4e9, 256e6, 0};
constexpr Budget kGpuBudget = {2e12, 2e9, 6e12};
// The compared run is read back and looked at by the host, once per candidate: as small as still shows every kind of
// tile, which a thousand queries do.
constexpr Budget kCheckBudget = {4e9, 32e6, 0};
constexpr int64_t kMostCheckedQueries = 1024;
constexpr int64_t kMostCheckedKeys = 2048;
// A log-sum-exp that makes weights of random queries and keys small, as real ones are.
constexpr float kTypicalLse = 8;

// Sizes below which a tensor is not cut further: the shape would no longer be the problem's.
constexpr int64_t kLeastQueries = 64;
constexpr int64_t kLeastKeys = 256;

struct Sizes {
  int64_t batch, seqlenQ, seqlenK;
};

// The extents after the first dimensions. A kernel addresses the elements of a block of tokens by two coordinates.
std::vector<int64_t> extentsOf(const TensorRule &rule, const Spec &spec) {
  std::vector<int64_t> extents;
  for (size_t axis = 0; axis < rule.axisCount; ++axis) {
    int64_t extent = axisExtent(rule.axes[axis], spec);
    if (rule.axes[axis] == Axis::kBlockQk || rule.axes[axis] == Axis::kBlockV) {
      extents.push_back(spec.cmpBlock);
      extent /= spec.cmpBlock;
    }
    extents.push_back(extent);
  }
  return extents;
}

int64_t elementsOfRow(const std::vector<int64_t> &extents) {
  return std::reduce(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

bool cutsKeys(const Budget &budget, const Spec &spec) { return budget.promptFlops > 0 && hasVariants(spec.op); }

// Bytes of the tensors that a call must have.
double bytesOf(const Spec &spec, const Sizes &sizes) {
  double bytes = 0;
  for (const Operand &operand : operandsOf(spec.op)) {
    if (operand.role == Operand::Role::kOptionalOut || !takes(spec, operand.name))
      continue;
    const TensorRule &rule = tensorRule(operand.name);
    const int64_t rows = rule.lead == Lead::kQueries  ? sizes.seqlenQ
                         : rule.lead == Lead::kKeys   ? sizes.seqlenK
                         : rule.lead == Lead::kBlocks ? spec.compressedBlocks(sizes.seqlenK)
                                                      : 1;
    const int64_t rowBytes = elementsOfRow(extentsOf(rule, spec)) * dtypeBytes(spec.types().of(rule.role));
    bytes += static_cast<double>(rule.lead == Lead::kNone ? 1 : rows * sizes.batch) * static_cast<double>(rowBytes);
  }
  if (definitionOf(spec.op).mayTake(View::kDqSlots))
    bytes += static_cast<double>(4 + dtypeBytes(spec.dtype)) * static_cast<double>(sizes.batch * sizes.seqlenQ) *
             spec.queryHeads * spec.selCount * spec.qkDim;
  return bytes;
}

bool exceeds(const Budget &budget, const Spec &spec, const Sizes &sizes) {
  // The last query meets all keys, one in the middle half of the queries fewer.
  const int64_t unseen = cutsKeys(budget, spec) ? sizes.seqlenQ / 2 : 0;
  const auto keys = static_cast<double>(spec.keysMet(sizes.seqlenK - unseen));
  const auto batch = static_cast<double>(sizes.batch);
  double flops = 2 * batch * static_cast<double>(sizes.seqlenQ) * spec.queryHeads * keys *
                 (static_cast<double>(spec.qkDim) + spec.vDim);
  if (fieldsOf(spec.op) & kPhi)
    flops = 2 * batch * static_cast<double>(spec.compressedBlocks(sizes.seqlenK)) * spec.kvHeads * spec.phiProducts();
  return flops > (cutsKeys(budget, spec) ? budget.promptFlops : budget.flops) || bytesOf(spec, sizes) > budget.bytes;
}

// Fewer sequences first, then fewer queries (and keys), then fewer keys.
Sizes fit(const Budget &budget, const Spec &spec, const Maxima &maxima) {
  Sizes sizes = {std::max<int64_t>(maxima.batch, 1), std::max<int64_t>(maxima.seqlenQ, 1),
                 std::max<int64_t>(maxima.seqlenK, 1)};
  sizes.seqlenQ = std::min({sizes.seqlenQ, sizes.seqlenK, std::max<int64_t>(maxima.tokensQ, 1)});
  if (!definitionOf(spec.op).hasQueries())
    sizes.seqlenQ = 1;
  sizes.batch = std::min(sizes.batch, std::max<int64_t>(maxima.tokensQ / sizes.seqlenQ, 1));
  // A window that holds all keys is none.
  const int64_t leastKeys =
      std::max<int64_t>(kLeastKeys, definitionOf(spec.op).keys == MetKeys::kWindow ? 2 * spec.window : 0);
  while (exceeds(budget, spec, sizes)) {
    if (sizes.batch > 1)
      sizes.batch /= 2;
    else if (sizes.seqlenQ > kLeastQueries) {
      sizes.seqlenQ /= 2;
      if (cutsKeys(budget, spec) && sizes.seqlenK > leastKeys)
        sizes.seqlenK = std::max(sizes.seqlenK / 2, leastKeys);
    } else if (sizes.seqlenK > kLeastKeys)
      sizes.seqlenK /= 2;
    else
      break;
  }
  sizes.seqlenQ = std::min(sizes.seqlenQ, sizes.seqlenK);
  return sizes;
}

// Leaves out the rows that no kernel writes.
void keepRows(TuningResult::Output &output, const std::vector<bool> &written) {
  std::vector<float> kept;
  for (size_t row = 0; row < written.size(); ++row)
    if (written[row])
      kept.insert(kept.end(), output.values.begin() + static_cast<int64_t>(row) * output.rowElements,
                  output.values.begin() + static_cast<int64_t>(row + 1) * output.rowElements);
  output.values = std::move(kept);
}

} // namespace

TimedShape timedShape(bool isGpu, const Spec &spec, const Maxima &maxima) {
  const Sizes sizes = fit(isGpu ? kGpuBudget : kCpuBudget, spec, maxima);
  return {sizes.batch, sizes.seqlenQ, sizes.seqlenK};
}

Result<std::unique_ptr<Trial>> KernelTrial::make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed,
                                                 double mostBytes) {
  NSA_ASSIGN_OR_RETURN(TrialLaunches launches, TrialLaunches::make(device));
  std::unique_ptr<KernelTrial> trial(new KernelTrial(device, spec, maxima, seed, std::move(launches)));
  NSA_RETURN_IF_ERROR(trial->prepare(mostBytes));
  return std::unique_ptr<Trial>(std::move(trial));
}

Status KernelTrial::prepare(double mostBytes) {
  Budget budget = device.isGpu() ? kGpuBudget : kCpuBudget;
  budget.bytes = std::min(budget.bytes, mostBytes);
  Sizes sizes = fit(budget, spec, maxima);
  timedLengths = {std::vector(static_cast<size_t>(sizes.batch), sizes.seqlenQ),
                  std::vector(static_cast<size_t>(sizes.batch), sizes.seqlenK)};

  // Uneven lengths for the comparison: no multiple of a tile, prefixes of other sizes, in a packed batch an empty one.
  auto between = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(draw); };
  const bool packed = spec.layout == Layout::kPacked;
  Maxima checkMaxima = maxima;
  checkMaxima.batch = sizes.batch;
  checkMaxima.seqlenQ = std::min(sizes.seqlenQ, kMostCheckedQueries);
  checkMaxima.seqlenK = std::min(sizes.seqlenK, kMostCheckedKeys);
  const Sizes checkSizes = fit(kCheckBudget, spec, checkMaxima);
  for (int64_t i = 0; i < checkSizes.batch; ++i) {
    bool drawn = packed || i == 0; // in the dense layout all sequences are equally long
    int64_t lengthQ = drawn ? between((checkSizes.seqlenQ + 1) / 2, checkSizes.seqlenQ) : checkedLengths.q[0];
    int64_t lengthK = drawn ? between(lengthQ, checkSizes.seqlenK) : checkedLengths.k[0];
    if (packed && i == 1)
      lengthQ = lengthK = 0;
    checkedLengths.q.push_back(lengthQ);
    checkedLengths.k.push_back(lengthK);
  }

  timedCall = begin(timedLengths);
  checkedCall = begin(checkedLengths);
  if (packed) {
    NSA_RETURN_IF_ERROR(addTable(timedCall, timedLengths));
    NSA_RETURN_IF_ERROR(addTable(checkedCall, checkedLengths));
  }
  shape = {sizes.batch, sizes.seqlenQ, sizes.seqlenK};
  NSA_RETURN_IF_ERROR(fillOperands());
  return addParts();
}

// In a plan several programs share the queries that see a tile of few keys. Each of them stores a part of the
// gradients. With one program for each tile, the fastest kernel would be the one with the smallest tiles.
Status KernelTrial::addParts() {
  const OperatorDef &def = definitionOf(spec.op);
  if (!def.mayTake(View::kDkParts) || !def.mayTake(View::kDK))
    return Status::ok();
  Maxima sizes;
  sizes.batch = shape.batch;
  sizes.seqlenQ = shape.seqlenQ;
  sizes.seqlenK = shape.seqlenK;
  const int64_t parts = GradientParts::ofKeys(spec, sizes, spec.compressedBlocks(bucketOf(sizes.seqlenK)));
  if (parts == 1)
    return Status::ok();
  timedCall.grid.splits = parts;
  setScalar(timedCall.scalars, Scalar::kSplits, parts);
  const int64_t rows = rowsOf(Lead::kBlocks, timedLengths);
  for (const auto &[view, whole, columns] :
       {std::tuple(View::kDkParts, View::kDK, spec.qkDim), {View::kDvParts, View::kDV, spec.vDim}}) {
    const int64_t row = spec.kvHeads * columns;
    NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                         DeviceBuffer::allocate(device, static_cast<size_t>(parts * rows * row * 4)));
    timedCall[view] = ViewSlots::make(buffer.data(), DType::kF32, {rows * row, row, columns});
    timedCall[whole] = {};
    buffers.push_back(std::move(buffer));
  }
  return Status::ok();
}

Status KernelTrial::fillOperands() {
  const OperatorDef &def = definitionOf(spec.op);
  if (def.tuning != OperatorDef::Tuning::kAlone)
    return Status::error(ErrorCode::kInternal, "operator " + std::string(def.name) + " is not tuned as one kernel");
  Spec whole = spec; // the most work that the kernel may have
  whole.branches = kAllBranches;
  for (const Operand &operand : def.operands) {
    // `reads` is for tests, without tables a kernel computes its angles, and most keys begin at position 0.
    const Lead lead = tensorRule(operand.name).lead;
    if (takes(whole, operand.name) && operand.name != TensorName::kReads && lead != Lead::kPositions &&
        lead != Lead::kSequences)
      NSA_RETURN_IF_ERROR(fill(operand));
  }
  return Status::ok();
}

int64_t KernelTrial::rowsOf(Lead lead, const Lengths &lengths) const {
  if (lead == Lead::kNone)
    return 1;
  const std::vector<int64_t> &tokens = lead == Lead::kQueries ? lengths.q : lengths.k;
  if (lead != Lead::kBlocks)
    return std::reduce(tokens.begin(), tokens.end());
  int64_t count = 0;
  for (int64_t length : tokens)
    count += spec.compressedBlocks(length);
  return count;
}

// Row-major, with [entry, time] before the axes where rows are counted.
ViewSlots KernelTrial::viewOf(const Operand &operand, void *data, const Lengths &lengths) const {
  const TensorRule &rule = tensorRule(operand.name);
  std::array<int64_t, kMaxCoordinates> strides = {};
  const std::vector<int64_t> extents = extentsOf(rule, spec);
  int64_t row = elementsOfRow(extents);
  size_t next = 0;
  int64_t times = 0;
  if (rule.lead != Lead::kNone) {
    const bool packed = spec.layout == Layout::kPacked;
    times = rowsOf(rule.lead, lengths) / (packed ? 1 : static_cast<int64_t>(lengths.q.size()));
    strides[next++] = packed ? 0 : times * row;
    strides[next++] = row;
  }
  // A row alone is no coordinate.
  const size_t rank = rule.contiguous && extents.size() == 1 ? next : static_cast<size_t>(viewRule(operand.view).rank);
  for (size_t axis = 0; next < rank; ++axis)
    strides[next++] = row /= extents[axis];
  return ViewSlots::make(data, spec.types().of(rule.role), strides, times);
}

Status KernelTrial::fill(const Operand &operand) {
  const TensorRule &rule = tensorRule(operand.name);
  const DType dtype = spec.types().of(rule.role);
  const std::vector<int64_t> extents = extentsOf(rule, spec);
  const int64_t row = elementsOfRow(extents);
  const int64_t checkedElements = rowsOf(rule.lead, checkedLengths) * row;
  const int64_t elements = std::max(rowsOf(rule.lead, timedLengths) * row, checkedElements);
  const bool isOutput = operand.isWritten();
  const bool isList = rule.role == TensorRole::kIndex && !isOutput;
  // Lists say where they lead, so each call has its own.
  for (bool isTimed : {true, false}) {
    KernelCall &call = isTimed ? timedCall : checkedCall;
    const Lengths &lengths = isTimed ? timedLengths : checkedLengths;
    if (isTimed || isList) {
      NSA_ASSIGN_OR_RETURN(
          DeviceBuffer buffer,
          DeviceBuffer::allocate(device, static_cast<size_t>(std::max<int64_t>(elements, 1) * dtypeBytes(dtype)),
                                 drawSkipped(draw)));
      buffers.push_back(std::move(buffer));
      if (isList) {
        const std::vector<int32_t> lists = drawLists(lengths);
        NSA_RETURN_IF_ERROR(device.upload(buffers.back().data(), lists.data(), lists.size() * sizeof(int32_t)));
        call[operand.view] = viewOf(operand, buffers.back().data(), lengths);
        NSA_RETURN_IF_ERROR(addIndex(call, lengths, lists));
        continue;
      }
      if (!isOutput)
        NSA_RETURN_IF_ERROR(fillDrawn(device, buffers.back().data(), dtype, elements,
                                      rule.role == TensorRole::kStatistics ? kTypicalLse : 0, draw));
    }
    call[operand.view] = viewOf(operand, buffers.back().data(), lengths);
  }
  if (isOutput) {
    using enum TuningResult::Kind;
    const auto kind = rule.role == TensorRole::kStatistics ? kLse : rule.role == TensorRole::kIndex ? kLists : kRows;
    outputs.push_back({std::string(viewRule(operand.view).name), kind, extents.back(), checkedElements,
                       buffers.back().data(), dtype});
  }
  return Status::ok();
}

// A quarter each of what is met: lists as local as a trained model's (neighbours draw from one small set), drawn anew
// for each query, one set for all of a cluster, and the nearest blocks. One kind alone would tune for the wrong
// problem. The first and the own block are always among them.
std::vector<int32_t> KernelTrial::drawLists(const Lengths &lengths) {
  enum Kind { kTrained, kRandom, kClustered, kRecent, kKinds };
  constexpr int64_t kSameKind = 256;                      // queries
  constexpr int64_t kNeighbours[kKinds] = {32, 1, 64, 1}; // queries that share a set
  const auto count = static_cast<size_t>(spec.selCount);
  const size_t setSizes[kKinds] = {2 * count, 2 * count, count, 0};
  std::vector<int32_t> host;
  for (size_t sequence = 0; sequence < lengths.q.size(); ++sequence) {
    std::vector<std::vector<int32_t>> sets(static_cast<size_t>(spec.kvHeads));
    for (int64_t query = 0; query < lengths.q[sequence]; ++query) {
      const auto kind = static_cast<Kind>(query / kSameKind % kKinds);
      const int64_t own = (lengths.k[sequence] - lengths.q[sequence] + query) / spec.selBlock;
      for (std::vector<int32_t> &set : sets) {
        if (query % kNeighbours[kind] == 0) {
          set.resize(setSizes[kind]);
          for (int32_t &block : set)
            block = static_cast<int32_t>(std::uniform_int_distribution<int64_t>(0, own)(draw));
        }
        std::vector<int32_t> list = {0, static_cast<int32_t>(own)};
        if (kind == kRecent)
          for (int64_t block = own - 1; block > 0 && list.size() < count; --block)
            list.push_back(static_cast<int32_t>(block));
        else if (kind == kTrained)
          for (size_t tries = 0; tries < 2 * count; ++tries)
            list.push_back(set[draw() % set.size()]);
        else
          list.insert(list.end(), set.begin(), set.end());
        // The two forced ones first, then as many of the others as there is room for.
        std::vector<int32_t> chosen;
        for (int32_t block : list)
          if (chosen.size() < count && std::find(chosen.begin(), chosen.end(), block) == chosen.end())
            chosen.push_back(block);
        std::sort(chosen.begin(), chosen.end());
        chosen.resize(count, -1);
        host.insert(host.end(), chosen.begin(), chosen.end());
      }
    }
  }
  return host;
}

Result<DeviceBuffer *> KernelTrial::addBuffer(const std::vector<int32_t> &values) {
  NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                       DeviceBuffer::allocate(device, std::max<size_t>(values.size(), 1) * sizeof(int32_t)));
  NSA_RETURN_IF_ERROR(device.upload(buffer.data(), values.data(), values.size() * sizeof(int32_t)));
  return &buffers.emplace_back(std::move(buffer));
}

Status KernelTrial::addIndex(KernelCall &call, const Lengths &lengths, std::span<const int32_t> lists) {
  const OperatorDef &def = definitionOf(spec.op);
  const auto mayTake = [&](View view) { return def.mayTake(view); };
  if (std::ranges::none_of(std::array{View::kListLengths, View::kDkPieces, View::kDqSlots}, mayTake))
    return Status::ok();
  const int64_t heads = spec.kvHeads;
  const DrawnIndex drawn(spec, {lengths.q, lengths.k}, lists, itemQueriesOf(call));
  const bool packed = spec.layout == Layout::kPacked;
  NSA_ASSIGN_OR_RETURN(const DeviceBuffer *listLengths, addBuffer(drawn.listLengths));
  call[View::kListLengths] =
      ViewSlots::make(listLengths->data(), DType::kI32, {packed ? 0 : lengths.q[0] * heads, heads, 1});
  NSA_ASSIGN_OR_RETURN(const DeviceBuffer *index, addBuffer(drawn.index));
  call[View::kBlockIndex] =
      ViewSlots::make(index->data(), DType::kI32, {packed ? 0 : heads * drawn.places, drawn.places, 1});
  if (def.mayTake(View::kDqSlots))
    return addSlots(call, lengths, drawn);
  if (!def.mayTake(View::kDkPieces))
    return Status::ok();
  setPieces(call, spec);
  const bool isChecked = &call == &checkedCall;
  for (const auto &[view, columns] : {std::pair(View::kDkPieces, spec.qkDim), std::pair(View::kDvPieces, spec.vDim)}) {
    const int64_t elements = static_cast<int64_t>(drawn.written.size()) * columns;
    NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::allocate(device, static_cast<size_t>(elements * 4)));
    call[view] = ViewSlots::make(buffer.data(), DType::kF32, {heads * columns, columns});
    if (isChecked)
      outputs.push_back(
          {std::string(viewRule(view).name), TuningResult::Kind::kRows, columns, elements, buffer.data(), DType::kF32});
    buffers.push_back(std::move(buffer));
  }
  if (isChecked)
    writtenRows = drawn.written;
  return Status::ok();
}

Status KernelTrial::addSlots(KernelCall &call, const Lengths &lengths, const DrawnIndex &drawn) {
  const int64_t heads = spec.kvHeads, count = spec.selCount;
  const auto batch = static_cast<int64_t>(lengths.q.size());
  const bool packed = spec.layout == Layout::kPacked;
  setSlotItems(call, spec);
  NSA_ASSIGN_OR_RETURN(const DeviceBuffer *entrySlots, addBuffer(drawn.entrySlots));
  call[View::kEntrySlots] =
      ViewSlots::make(entrySlots->data(), DType::kI32, {packed ? 0 : heads * drawn.places, drawn.places, 1});
  NSA_ASSIGN_OR_RETURN(const DeviceBuffer *ranges, addBuffer(drawn.ranges));
  const int64_t row = heads * drawn.mostBlocks;
  call[View::kIndexRanges] = ViewSlots::make(ranges->data(), DType::kI32, {batch * row, row, drawn.mostBlocks, 1});

  const bool isChecked = &call == &checkedCall;
  for (const auto &[view, dtype, columns] : {std::tuple(View::kDqSlots, DType::kF32, int64_t{spec.qkDim}),
                                             {View::kKeySlots, spec.dtype, int64_t{spec.qkDim}},
                                             {View::kRestSlots, DType::kF32, int64_t{1}}}) {
    const int64_t query = spec.queryHeads * count * columns, elements = rowsOf(Lead::kQueries, lengths) * query;
    const auto bytes = static_cast<size_t>(elements * dtypeBytes(dtype));
    NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::allocate(device, bytes));
    call[view] =
        ViewSlots::make(buffer.data(), dtype, {packed ? 0 : lengths.q[0] * query, query, query / heads, columns});
    if (isChecked)
      outputs.push_back(
          {std::string(viewRule(view).name), TuningResult::Kind::kRows, columns, elements, buffer.data(), dtype});
    buffers.push_back(std::move(buffer));
  }
  if (isChecked) {
    writtenRows.clear();
    // The heads of a group have one list. They stand beside each other in each of its slots.
    for (const int32_t length : drawn.listLengths)
      for (int64_t part = 0; part < count * spec.group(); ++part)
        writtenRows.push_back(part / spec.group() < length);
  }
  return Status::ok();
}

KernelCall KernelTrial::begin(const Lengths &lengths) const {
  const bool packed = spec.layout == Layout::kPacked;
  KernelCall call;
  call.scalars = CallRules(spec, maxima).scalars;
  const int64_t longestQ = *std::max_element(lengths.q.begin(), lengths.q.end());
  const int64_t longestK = *std::max_element(lengths.k.begin(), lengths.k.end());
  setScalar(call.scalars, Scalar::kSeqlenQ, packed ? 0 : longestQ);
  setScalar(call.scalars, Scalar::kSeqlenK, packed ? 0 : longestK);
  setScalar(call.scalars, Scalar::kTotalQ, packed ? rowsOf(Lead::kQueries, lengths) : longestQ);
  setScalar(call.scalars, Scalar::kTotalK, packed ? rowsOf(Lead::kKeys, lengths) : longestK);
  setScalar(call.scalars, Scalar::kTotalC, rowsOf(Lead::kBlocks, lengths));
  setScalar(call.scalars, Scalar::kSplits, 1);
  setScalar(call.scalars, Scalar::kBatch, static_cast<int64_t>(lengths.q.size()));
  Maxima sizes;
  sizes.batch = static_cast<int64_t>(lengths.q.size());
  sizes.tokensQ = rowsOf(Lead::kQueries, lengths);
  sizes.seqlenQ = longestQ;
  sizes.seqlenK = longestK;
  call.grid = GridSizes::ofMaxima(spec, sizes);
  return call;
}

// What the kernel `sequences` would have written.
Status KernelTrial::addTable(KernelCall &call, const Lengths &lengths) {
  std::vector<SequenceRecord> host(lengths.q.size());
  SequenceRecord next;
  for (size_t i = 0; i < host.size(); ++i) {
    next[SequenceField::kQLength] = static_cast<int32_t>(lengths.q[i]);
    next[SequenceField::kKLength] = static_cast<int32_t>(lengths.k[i]);
    next[SequenceField::kCLength] = static_cast<int32_t>(spec.compressedBlocks(lengths.k[i]));
    host[i] = next;
    next[SequenceField::kQBegin] += next[SequenceField::kQLength];
    next[SequenceField::kKBegin] += next[SequenceField::kKLength];
    next[SequenceField::kCBegin] += next[SequenceField::kCLength];
  }
  const size_t bytes = host.size() * sizeof(SequenceRecord);
  NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::allocate(device, bytes));
  NSA_RETURN_IF_ERROR(device.upload(buffer.data(), host.data(), bytes));
  call[View::kSequences] = ViewSlots::make(buffer.data(), DType::kI32, {kSequenceFields, 1});
  buffers.push_back(std::move(buffer));
  return Status::ok();
}

Result<TuningResult> KernelTrial::check(const LoadedKernel &kernel) {
  for (const ComparedOutput &output : outputs)
    NSA_RETURN_IF_ERROR(output.poison(device));
  NSA_RETURN_IF_ERROR(launches.run(kernel, checkedCall));
  TuningResult result;
  for (const ComparedOutput &output : outputs) {
    NSA_ASSIGN_OR_RETURN(TuningResult::Output values, output.read(device));
    if (values.kind == TuningResult::Kind::kLists)
      for (size_t i = 0; i < checkedLengths.q.size(); ++i)
        values.addOwnBlocks(spec, checkedLengths.k[i] - checkedLengths.q[i], checkedLengths.q[i]);
    if (!writtenRows.empty())
      keepRows(values, writtenRows);
    result.outputs.push_back(std::move(values));
  }
  return result;
}

} // namespace nsa
