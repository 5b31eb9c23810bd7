#include "runtime/engine/tune/tuning_inputs.h"

#include "runtime/base/sequence_fields.h"
#include "runtime/engine/call/call.h"
#include "runtime/engine/tune/drawn_values.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

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

// Keys that a query of `keys` tokens meets, and elements that a query and a token move.
double keysOf(const Spec &spec, double keys) {
  switch (spec.op) {
  case Operator::kWindow:
    return std::min(keys, static_cast<double>(spec.window));
  case Operator::kCmp:
  case Operator::kSelect:
    return keys / spec.cmpStride;
  case Operator::kSel:
    return std::min(keys, static_cast<double>(spec.selCount) * spec.selBlock);
  case Operator::kCompress:
  case Operator::kCombine:
  case Operator::kRotate:
  case Operator::kRotateBwd:
    return 1;
  default:
    return keys;
  }
}

bool cutsKeys(const Budget &budget, const Spec &spec) { return budget.promptFlops > 0 && hasVariants(spec.op); }

bool exceeds(const Budget &budget, const Spec &spec, const Sizes &sizes) {
  // The last query meets all keys, one in the middle half of the queries fewer.
  const double unseen = cutsKeys(budget, spec) ? static_cast<double>(sizes.seqlenQ) / 2 : 0;
  const double keys = keysOf(spec, static_cast<double>(sizes.seqlenK) - unseen);
  const double queryHeads = std::max(spec.queryHeads, 1);
  double rowsQ = static_cast<double>(sizes.batch) * static_cast<double>(sizes.seqlenQ) * queryHeads;
  double rowsK = static_cast<double>(sizes.batch) * static_cast<double>(sizes.seqlenK) * spec.kvHeads;
  double dims = static_cast<double>(spec.qkDim) + spec.vDim;
  double bytes = (rowsQ + rowsK) * dims * dtypeBytes(spec.dtype);
  double flops = 2 * rowsQ * keys * dims;
  if (spec.op == Operator::kCombine)
    bytes *= 2;
  if (spec.op == Operator::kCompress && spec.cmpKind != CmpKind::kMean) {
    const double hidden = spec.cmpKind == CmpKind::kMlp ? spec.mlpHidden : std::max(spec.qkDim, spec.vDim);
    flops = 2 * rowsK / spec.cmpStride * spec.cmpBlock * dims * hidden;
    bytes += 2 * spec.cmpBlock * dims * hidden * dtypeBytes(spec.dtype);
  }
  return flops > (cutsKeys(budget, spec) ? budget.promptFlops : budget.flops) || bytes > budget.bytes;
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
  const int64_t leastKeys = std::max<int64_t>(kLeastKeys, spec.op == Operator::kWindow ? 2 * spec.window : 0);
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

} // namespace

TimedShape timedShape(bool isGpu, const Spec &spec, const Maxima &maxima) {
  const Sizes sizes = fit(isGpu ? kGpuBudget : kCpuBudget, spec, maxima);
  return {sizes.batch, sizes.seqlenQ, sizes.seqlenK};
}

Result<TuningInputs> TuningInputs::make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed,
                                        double mostBytes) {
  TuningInputs inputs(device, spec, maxima, seed);
  Budget budget = device.isGpu() ? kGpuBudget : kCpuBudget;
  budget.bytes = std::min(budget.bytes, mostBytes);
  Sizes sizes = fit(budget, spec, maxima);
  Lengths &timed = inputs.timedLengths;
  timed = {std::vector(static_cast<size_t>(sizes.batch), sizes.seqlenQ),
           std::vector(static_cast<size_t>(sizes.batch), sizes.seqlenK)};

  // Uneven lengths for the comparison: no multiple of a tile, prefixes of other sizes, in a packed batch an empty one.
  auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(inputs.draw);
  };
  const bool packed = spec.layout == Layout::kPacked;
  Maxima checkMaxima = maxima;
  checkMaxima.batch = sizes.batch;
  checkMaxima.seqlenQ = std::min(sizes.seqlenQ, kMostCheckedQueries);
  checkMaxima.seqlenK = std::min(sizes.seqlenK, kMostCheckedKeys);
  const Sizes checkSizes = fit(kCheckBudget, spec, checkMaxima);
  for (int64_t i = 0; i < checkSizes.batch; ++i) {
    Lengths &checked = inputs.checkedLengths;
    bool drawn = packed || i == 0; // in the dense layout all sequences are equally long
    int64_t lengthQ = drawn ? between((checkSizes.seqlenQ + 1) / 2, checkSizes.seqlenQ) : checked.q[0];
    int64_t lengthK = drawn ? between(lengthQ, checkSizes.seqlenK) : checked.k[0];
    if (packed && i == 1)
      lengthQ = lengthK = 0;
    checked.q.push_back(lengthQ);
    checked.k.push_back(lengthK);
  }

  inputs.timedCall = inputs.begin(inputs.timedLengths);
  inputs.checkedCall = inputs.begin(inputs.checkedLengths);
  if (packed) {
    NSA_RETURN_IF_ERROR(inputs.addTable(inputs.timedCall, inputs.timedLengths));
    NSA_RETURN_IF_ERROR(inputs.addTable(inputs.checkedCall, inputs.checkedLengths));
  }
  NSA_RETURN_IF_ERROR(inputs.fillOperator());
  inputs.shape = {sizes.batch, sizes.seqlenQ, sizes.seqlenK};
  return inputs;
}

// The tensors of each operator, by the views of docs/operators.md.
Status TuningInputs::fillOperator() {
  using enum Rows;
  using enum View;
  const int64_t heads = spec.queryHeads, kvHeads = spec.kvHeads, qk = spec.qkDim, v = spec.vDim;
  auto in = [&](View view, Rows rows, const std::vector<int64_t> &extents) { return fill(view, rows, extents, false); };
  auto out = [&](View view, Rows rows, const std::vector<int64_t> &extents) { return fill(view, rows, extents, true); };
  switch (spec.op) {
  case Operator::kDense:
  case Operator::kWindow:
  case Operator::kCmp:
  case Operator::kSel: {
    const Rows keys = spec.op == Operator::kCmp ? kBlocks : kKeys;
    NSA_RETURN_IF_ERROR(in(kQ, kQueries, {heads, qk}));
    NSA_RETURN_IF_ERROR(in(kK, keys, {kvHeads, qk}));
    NSA_RETURN_IF_ERROR(in(kV, keys, {kvHeads, v}));
    if (spec.op == Operator::kSel)
      NSA_RETURN_IF_ERROR(in(kBlockList, kQueries, {kvHeads, spec.selCount}));
    NSA_RETURN_IF_ERROR(out(kOut, kQueries, {heads, v}));
    return out(kLse, kQueries, {heads});
  }
  case Operator::kSelect:
    NSA_RETURN_IF_ERROR(in(kQ, kQueries, {heads, qk}));
    NSA_RETURN_IF_ERROR(in(kK, kBlocks, {kvHeads, qk}));
    NSA_RETURN_IF_ERROR(in(kLse, kQueries, {heads}));
    return out(kBlockList, kQueries, {kvHeads, spec.selCount});
  case Operator::kCombine:
    for (View view : {kOCmp, kOSel, kOWin})
      NSA_RETURN_IF_ERROR(in(view, kQueries, {heads, v}));
    NSA_RETURN_IF_ERROR(in(kGates, kQueries, {spec.gatePerGroup ? kvHeads : heads, 3}));
    return out(kOut, kQueries, {heads, v});
  case Operator::kRotate:
  case Operator::kRotateBwd:
    NSA_RETURN_IF_ERROR(in(kX, kQueries, {kvHeads, qk}));
    return out(kRotated, kQueries, {kvHeads, qk});
  case Operator::kCompress:
    NSA_RETURN_IF_ERROR(in(kK, kKeys, {kvHeads, qk}));
    NSA_RETURN_IF_ERROR(in(kV, kKeys, {kvHeads, v}));
    for (const auto &[dim, pe, w, b, w1, b1, w2, b2] : {std::tuple(qk, kPeK, kWK, kBK, kW1K, kB1K, kW2K, kB2K),
                                                        std::tuple(v, kPeV, kWV, kBV, kW1V, kB1V, kW2V, kB2V)}) {
      if (spec.cmpKind != CmpKind::kMean)
        NSA_RETURN_IF_ERROR(in(pe, kNone, {spec.cmpBlock, dim}));
      if (spec.cmpKind == CmpKind::kLinear) {
        NSA_RETURN_IF_ERROR(in(w, kNone, {spec.cmpBlock, dim, dim}));
        NSA_RETURN_IF_ERROR(in(b, kNone, {1, dim}));
      } else if (spec.cmpKind == CmpKind::kMlp) {
        NSA_RETURN_IF_ERROR(in(w1, kNone, {spec.cmpBlock, dim, spec.mlpHidden}));
        NSA_RETURN_IF_ERROR(in(b1, kNone, {1, spec.mlpHidden}));
        NSA_RETURN_IF_ERROR(in(w2, kNone, {spec.mlpHidden, dim}));
        NSA_RETURN_IF_ERROR(in(b2, kNone, {1, dim}));
      }
    }
    NSA_RETURN_IF_ERROR(out(kKComp, kBlocks, {kvHeads, qk}));
    return out(kVComp, kBlocks, {kvHeads, v});
  case Operator::kNsa:
  case Operator::kDecode:
  case Operator::kSequences:
  case Operator::kCacheSequences:
  case Operator::kAppend:
  case Operator::kSplitCmp:
  case Operator::kSplitSelWin:
  case Operator::kScores:
  case Operator::kRank:
  case Operator::kChoose:
  case Operator::kAscend:
  case Operator::kMerge:
    break;
  }
  return Status::error(ErrorCode::kInternal,
                       "operator " + std::string(operatorName(spec.op)) + " is not tuned as one kernel");
}

int64_t TuningInputs::rowsOf(Rows rows, const Lengths &lengths) const {
  if (rows == Rows::kNone)
    return 1;
  const std::vector<int64_t> &tokens = rows == Rows::kQueries ? lengths.q : lengths.k;
  if (rows != Rows::kBlocks)
    return std::reduce(tokens.begin(), tokens.end());
  int64_t count = 0;
  for (int64_t length : tokens)
    count += spec.compressedBlocks(length);
  return count;
}

// Row-major, with [entry, time] before the extents where rows are counted.
void TuningInputs::bind(KernelCall &call, View view, void *data, Rows rows, const Lengths &lengths,
                        const std::vector<int64_t> &extents) const {
  const ViewRule &rule = viewRule(view);
  const bool counted = rows != Rows::kNone;
  std::array<int64_t, kMaxCoordinates> strides = {};
  int64_t row = std::reduce(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  size_t next = 0;
  int64_t times = 0;
  if (counted) {
    const bool packed = spec.layout == Layout::kPacked;
    times = rowsOf(rows, lengths) / (packed ? 1 : static_cast<int64_t>(lengths.q.size()));
    strides[next++] = packed ? 0 : times * row;
    strides[next++] = row;
  }
  for (size_t axis = 0; next < static_cast<size_t>(rule.rank); ++axis) {
    row /= extents[axis];
    strides[next++] = row;
  }
  call[view] = ViewSlots::make(data, spec.types().of(rule.role), strides, times);
}

Status TuningInputs::fill(View view, Rows rows, const std::vector<int64_t> &extents, bool isOutput) {
  const DType dtype = spec.types().of(viewRule(view).role);
  const int64_t row = std::reduce(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  const int64_t checkedElements = rowsOf(rows, checkedLengths) * row;
  const int64_t elements = std::max(rowsOf(rows, timedLengths) * row, checkedElements);
  const bool isList = view == View::kBlockList && !isOutput;
  // Lists say where they lead, so each call has its own.
  for (bool isTimed : {true, false}) {
    KernelCall &call = isTimed ? timedCall : checkedCall;
    const Lengths &lengths = isTimed ? timedLengths : checkedLengths;
    if (isTimed || isList) {
      NSA_ASSIGN_OR_RETURN(
          DeviceBuffer buffer,
          DeviceBuffer::allocate(*device, static_cast<size_t>(std::max<int64_t>(elements, 1) * dtypeBytes(dtype)),
                                 drawSkipped(draw)));
      buffers.push_back(std::move(buffer));
      if (isList)
        NSA_RETURN_IF_ERROR(fillLists(buffers.back(), lengths));
      else if (!isOutput)
        NSA_RETURN_IF_ERROR(
            fillDrawn(*device, buffers.back().data(), dtype, elements, view == View::kLse ? kTypicalLse : 0, draw));
    }
    bind(call, view, buffers.back().data(), rows, lengths, extents);
  }
  if (isOutput) {
    using enum TuningResult::Kind;
    const auto kind = view == View::kLse ? kLse : view == View::kBlockList ? kLists : kRows;
    outputs.push_back(
        {std::string(viewRule(view).name), kind, extents.back(), checkedElements, buffers.back().data(), dtype});
  }
  return Status::ok();
}

// A quarter each of what is met: lists as local as a trained model's (neighbours draw from one small set), drawn anew
// for each query, one set for all of a cluster, and the nearest blocks. One kind alone would tune for the wrong
// problem. The first and the own block are always among them.
Status TuningInputs::fillLists(const DeviceBuffer &buffer, const Lengths &lengths) {
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
  return host.empty() ? Status::ok() : device->upload(buffer.data(), host.data(), host.size() * sizeof(int32_t));
}

KernelCall TuningInputs::begin(const Lengths &lengths) const {
  const bool packed = spec.layout == Layout::kPacked;
  KernelCall call;
  call.scalars = CallRules(spec, maxima).scalars;
  const int64_t longestQ = *std::max_element(lengths.q.begin(), lengths.q.end());
  const int64_t longestK = *std::max_element(lengths.k.begin(), lengths.k.end());
  setScalar(call.scalars, Scalar::kSeqlenQ, packed ? 0 : longestQ);
  setScalar(call.scalars, Scalar::kSeqlenK, packed ? 0 : longestK);
  setScalar(call.scalars, Scalar::kTotalQ, packed ? rowsOf(Rows::kQueries, lengths) : longestQ);
  setScalar(call.scalars, Scalar::kTotalK, packed ? rowsOf(Rows::kKeys, lengths) : longestK);
  setScalar(call.scalars, Scalar::kTotalC, rowsOf(Rows::kBlocks, lengths));
  setScalar(call.scalars, Scalar::kBatch, static_cast<int64_t>(lengths.q.size()));
  Maxima sizes;
  sizes.batch = static_cast<int64_t>(lengths.q.size());
  sizes.tokensQ = rowsOf(Rows::kQueries, lengths);
  sizes.seqlenQ = longestQ;
  sizes.seqlenK = longestK;
  call.grid = GridSizes::ofMaxima(spec, sizes);
  return call;
}

// What the kernel `sequences` would have written.
Status TuningInputs::addTable(KernelCall &call, const Lengths &lengths) {
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
  NSA_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::allocate(*device, bytes));
  NSA_RETURN_IF_ERROR(device->upload(buffer.data(), host.data(), bytes));
  call[View::kSequences] = ViewSlots::make(buffer.data(), DType::kI32, {kSequenceFields, 1});
  buffers.push_back(std::move(buffer));
  return Status::ok();
}

Status TuningInputs::poisonOutputs() {
  for (const ComparedOutput &output : outputs)
    NSA_RETURN_IF_ERROR(output.poison(*device));
  return Status::ok();
}

Result<TuningResult> TuningInputs::readChecked() {
  TuningResult result;
  for (const ComparedOutput &output : outputs) {
    NSA_ASSIGN_OR_RETURN(TuningResult::Output values, output.read(*device));
    if (values.kind == TuningResult::Kind::kLists)
      for (size_t i = 0; i < checkedLengths.q.size(); ++i)
        values.addOwnBlocks(spec, checkedLengths.k[i] - checkedLengths.q[i], checkedLengths.q[i]);
    result.outputs.push_back(std::move(values));
  }
  return result;
}

} // namespace nsa
