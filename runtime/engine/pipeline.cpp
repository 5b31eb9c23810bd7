#include "runtime/engine/pipeline.h"

#include "runtime/base/signature.h"

#include <algorithm>

namespace nsa {

namespace {

using T = TensorName;

// Branch outputs and lists of one chunk of queries. Large enough that a GPU is full many times over.
constexpr int64_t kGpuChunkBytes = int64_t{512} << 20;
constexpr int64_t kCpuChunkBytes = int64_t{32} << 20;
constexpr int64_t kChunkGranule = 64; // queries

enum Route : uint8_t { kSelIsDense = 1, kWinIsDense = 2 };

bool isComposite(Operator op) { return op == Operator::kNsa; }

Spec withOperator(Spec spec, Operator op) {
  spec.op = op;
  return spec;
}

size_t aligned(size_t bytes) { return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment; }

// Rows of compressed keys that all sequences have at most.
int64_t mostCompressedRows(const Spec &spec, const Maxima &maxima) {
  return maxima.batch * spec.compressedBlocks(maxima.seqlenK);
}

} // namespace

std::string_view roleName(Role role, Operator op) {
  constexpr std::string_view kNames[] = {"sequences", "compress", "cmp", "select", "sel", "win", "combine"};
  return role == Role::kMain ? operatorName(op) : kNames[static_cast<size_t>(role)];
}

uint8_t routesOf(const Spec &spec, const Maxima &maxima) {
  if (!isComposite(spec.op))
    return 0;
  uint8_t routes = 0;
  // b + 1 <= n for every query (spec.md 5.6).
  if (spec.hasBranch(kBranchSel) && maxima.seqlenK <= int64_t{spec.selCount} * spec.selBlock)
    routes |= kSelIsDense;
  if (spec.hasBranch(kBranchWin) && maxima.seqlenK <= spec.window)
    routes |= kWinIsDense;
  return routes;
}

std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima) {
  std::vector<Step> steps;
  auto add = [&](Role role, Spec stepSpec) { steps.push_back({role, stepSpec, maxima}); };
  if (spec.layout == Layout::kPacked && readsLengths(spec.op)) {
    Spec lengths = withOperator(spec, Operator::kSequences);
    // Where nothing is compressed, one kernel serves whatever these fields hold.
    const bool compresses = !isComposite(spec.op) || spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel);
    if (!(fieldsOf(spec.op) & kCmpGeometry) || !compresses)
      lengths.cmpBlock = lengths.cmpStride = 1;
    add(Role::kSequences, lengths);
  }
  if (!isComposite(spec.op)) {
    if (spec.op == Operator::kSelect) {
      // For callers without the log-sum-exp: the compressed branch over its keys as values.
      Spec cmp = withOperator(spec, Operator::kCmp);
      cmp.vDim = spec.qkDim;
      add(Role::kCmp, cmp);
    }
    add(Role::kMain, spec);
    return steps;
  }
  const uint8_t routes = routesOf(spec, maxima);
  if (spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel)) {
    add(Role::kCompress, withOperator(spec, Operator::kCompress));
    add(Role::kCmp, withOperator(spec, Operator::kCmp));
  }
  if (spec.hasBranch(kBranchSel)) {
    add(Role::kSelect, withOperator(spec, Operator::kSelect));
    add(Role::kSel, withOperator(spec, routes & kSelIsDense ? Operator::kDense : Operator::kSel));
  }
  if (spec.hasBranch(kBranchWin))
    add(Role::kWin, withOperator(spec, routes & kWinIsDense ? Operator::kDense : Operator::kWindow));
  add(Role::kCombine, withOperator(spec, Operator::kCombine));
  return steps;
}

WorkspaceLayout::WorkspaceLayout(const Spec &spec, const Maxima &maxima, const RoleKernels &kernels, bool isGpu) {
  for (const LoadedKernel *kernel : kernels)
    if (kernel)
      bytes = std::max(bytes, kernel->workspaceBytes());
  auto place = [&](size_t &offset, int64_t size) {
    offset = aligned(bytes);
    bytes = offset + static_cast<size_t>(size);
  };
  if (kernels[static_cast<size_t>(Role::kSequences)])
    place(sequences, maxima.batch * kSequenceFields * int64_t{sizeof(int32_t)});

  const bool packed = spec.layout == Layout::kPacked;
  const int64_t time = packed ? maxima.tokensQ : maxima.seqlenQ;
  const int64_t entries = packed ? 1 : maxima.batch;
  const int64_t element = dtypeBytes(spec.dtype);
  const int64_t lseBytes = spec.queryHeads * int64_t{sizeof(float)};
  chunk = std::max<int64_t>(time, 1);
  if (spec.op == Operator::kSelect) {
    place(lse, entries * chunk * lseBytes);
    place(out[0], entries * chunk * spec.queryHeads * spec.qkDim * element);
  }
  if (!isComposite(spec.op))
    return;

  const int64_t outBytes = spec.queryHeads * spec.vDim * element;
  const int64_t listBytes = spec.kvHeads * spec.selCount * int64_t{sizeof(int32_t)};
  const int64_t readsBytes = spec.kvHeads * int64_t{sizeof(int32_t)};
  const int64_t perQuery = entries * (3 * (outBytes + readsBytes) + lseBytes + listBytes);
  const int64_t most = (isGpu ? kGpuChunkBytes : kCpuChunkBytes) / perQuery / kChunkGranule * kChunkGranule;
  chunk = std::min(chunk, std::max(most, kChunkGranule));
  if (kernels[static_cast<size_t>(Role::kCompress)]) {
    const int64_t rows = mostCompressedRows(spec, maxima) * spec.kvHeads;
    place(kComp, rows * spec.qkDim * element);
    place(vComp, rows * spec.vDim * element);
    place(lse, entries * chunk * lseBytes);
    place(blockList, entries * chunk * listBytes);
  }
  for (size_t branch = 0; branch < out.size(); ++branch) {
    if (!spec.hasBranch(1 << branch) && !(branch == 0 && spec.hasBranch(kBranchSel)))
      continue;
    place(out[branch], entries * chunk * outBytes);
    place(reads[branch], entries * chunk * readsBytes);
  }
}

Status PipelineRun::launch(Role role, const KernelCall &kernelCall) const {
  NSA_RETURN_IF_ERROR(kernels[static_cast<size_t>(role)]->launch(kernelCall, statusWord, workspace, stream));
  if (!trace)
    return Status::ok();
  trace->launched.push_back(role);
  return trace->clock.mark(stream);
}

ViewSlots PipelineRun::table() const {
  if (!kernels[static_cast<size_t>(Role::kSequences)])
    return {};
  return ViewSlots::make(workspace + layout.sequences, DType::kI32, {kSequenceFields, 1});
}

KernelCall PipelineRun::fresh() const {
  KernelCall result;
  result.scalars = call.scalars;
  result.grid = call.sizes;
  result[View::kSequences] = table();
  return result;
}

Status PipelineRun::launchSequences() const {
  if (!kernels[static_cast<size_t>(Role::kSequences)])
    return Status::ok();
  KernelCall lengths = fresh();
  lengths[View::kCuSeqlensQ] = call[T::kCuSeqlensQ];
  lengths[View::kCuSeqlensK] = call[T::kCuSeqlensK];
  return launch(Role::kSequences, lengths);
}

// A tensor of the workspace with a row per query of a chunk and head, addressed by the call's own times.
ViewSlots PipelineRun::perQuery(size_t offset, DType dtype, int64_t heads, int64_t columns, int64_t begin,
                                int64_t columnStride) const {
  const int64_t row = heads * columns;
  const bool packed = rules.spec.layout == Layout::kPacked;
  auto address =
      reinterpret_cast<uintptr_t>(workspace + offset) - static_cast<uintptr_t>(begin * row * dtypeBytes(dtype));
  return ViewSlots::make(reinterpret_cast<const void *>(address), dtype,
                         {packed ? 0 : layout.chunk * row, row, columns, columnStride});
}

Status PipelineRun::run() const {
  if (trace)
    NSA_RETURN_IF_ERROR(trace->clock.mark(stream));
  NSA_RETURN_IF_ERROR(launchSequences());
  if (isComposite(rules.spec.op))
    return runNsa();
  if (rules.spec.op == Operator::kSelect)
    return runSelect();
  return runSingle();
}

KernelCall singleCall(Operator op, const Call &call, const ViewSlots &table) {
  KernelCall result;
  result.scalars = call.scalars;
  result.grid = call.sizes;
  result[View::kSequences] = table;
  for (const Operand &operand : operandsOf(op))
    result[operand.view] = call[operand.name];
  return result;
}

Status PipelineRun::runSingle() const { return launch(Role::kMain, singleCall(rules.spec.op, call, table())); }

Status PipelineRun::runSelect() const {
  KernelCall select = singleCall(Operator::kSelect, call, table());
  if (!select[View::kLse].data) {
    const Spec &spec = rules.spec;
    select[View::kLse] = perQuery(layout.lse, DType::kF32, spec.queryHeads, 1, 0);
    KernelCall cmp = fresh();
    cmp[View::kQ] = select[View::kQ];
    cmp[View::kK] = cmp[View::kV] = select[View::kK];
    cmp[View::kOut] = perQuery(layout.out[0], spec.dtype, spec.queryHeads, spec.qkDim, 0);
    cmp[View::kLse] = select[View::kLse];
    NSA_RETURN_IF_ERROR(launch(Role::kCmp, cmp));
  }
  return launch(Role::kMain, select);
}

Status PipelineRun::runNsa() const {
  const Spec &spec = rules.spec;
  std::array<ViewSlots, 2> compressed;
  if (kernels[static_cast<size_t>(Role::kCompress)]) {
    // Sequences of a packed batch follow each other; those of a dense one are apart by what the call's lengths give.
    const bool packed = spec.layout == Layout::kPacked;
    auto rows = [&](T name, size_t offset, int64_t dim) {
      if (call[name].data)
        return call[name];
      const int64_t row = spec.kvHeads * dim;
      return ViewSlots::make(workspace + offset, spec.dtype, {packed ? 0 : call.sizes.maxBlocksC * row, row, dim});
    };
    compressed = {rows(T::kKComp, layout.kComp, spec.qkDim), rows(T::kVComp, layout.vComp, spec.vDim)};
    KernelCall compress = singleCall(Operator::kCompress, call, table());
    compress[View::kKComp] = compressed[0];
    compress[View::kVComp] = compressed[1];
    NSA_RETURN_IF_ERROR(launch(Role::kCompress, compress));
  }
  for (int64_t first = 0; first < call.timeQ; first += layout.chunk)
    NSA_RETURN_IF_ERROR(runChunk(first, std::min(first + layout.chunk, call.timeQ), compressed));
  return Status::ok();
}

Status PipelineRun::runChunk(int64_t first, int64_t past, const std::array<ViewSlots, 2> &compressed) const {
  const Spec &spec = rules.spec;
  KernelCall base = fresh();
  setScalar(base.scalars, Scalar::kQueryBegin, first);
  setScalar(base.scalars, Scalar::kQueryEnd, past);
  base.grid.maxSeqlenQ = std::min(base.grid.maxSeqlenQ, past - first);
  base.grid.maxTokensQ = (spec.layout == Layout::kPacked ? 1 : base.grid.batch) * (past - first);
  const bool wantsReads = call[T::kReads].data != nullptr;

  // The caller's tensor where he wants to see it, else the chunk's.
  auto output = [&](T name, size_t branch) {
    return call[name].data ? call[name] : perQuery(layout.out[branch], spec.dtype, spec.queryHeads, spec.vDim, first);
  };
  KernelCall combine = base;
  combine[View::kGates] = call[T::kGates];
  combine[View::kOut] = call[T::kOut];
  combine[View::kReads] = call[T::kReads];
  auto attend = [&](Role role, size_t branch, KernelCall kernelCall, T out, View partOut, View partReads) {
    kernelCall[View::kOut] = output(out, branch);
    if (wantsReads)
      kernelCall[View::kReads] = perQuery(layout.reads[branch], DType::kI32, spec.kvHeads, 1, first);
    if (spec.hasBranch(1 << branch)) {
      combine[partOut] = kernelCall[View::kOut];
      combine[partReads] = kernelCall[View::kReads];
    }
    return launch(role, kernelCall);
  };

  if (kernels[static_cast<size_t>(Role::kCmp)]) {
    KernelCall cmp = base;
    cmp[View::kQ] = call[T::kQCmp];
    cmp[View::kK] = compressed[0];
    cmp[View::kV] = compressed[1];
    cmp[View::kLse] =
        call[T::kLseCmp].data ? call[T::kLseCmp] : perQuery(layout.lse, DType::kF32, spec.queryHeads, 1, first);
    NSA_RETURN_IF_ERROR(attend(Role::kCmp, 0, cmp, T::kOCmp, View::kOCmp, View::kReadsCmp));
    // Lists of a dense route are made for callers only.
    const bool routed = (routesOf(spec, rules.maxima) & kSelIsDense) != 0;
    if (spec.hasBranch(kBranchSel)) {
      KernelCall select = base;
      select[View::kQ] = cmp[View::kQ];
      select[View::kK] = compressed[0];
      select[View::kLse] = cmp[View::kLse];
      select[View::kBlockList] = call[T::kBlockList].data
                                     ? call[T::kBlockList]
                                     : perQuery(layout.blockList, DType::kI32, spec.kvHeads, spec.selCount, first, 1);
      if (!routed || call[T::kBlockList].data)
        NSA_RETURN_IF_ERROR(launch(Role::kSelect, select));
      KernelCall sel = base;
      sel[View::kQ] = call[T::kQ];
      sel[View::kK] = call[T::kKSel];
      sel[View::kV] = call[T::kVSel];
      sel[View::kBlockList] = select[View::kBlockList];
      sel[View::kLse] = call[T::kLseSel];
      NSA_RETURN_IF_ERROR(attend(Role::kSel, 1, sel, T::kOSel, View::kOSel, View::kReadsSel));
    }
  }
  if (spec.hasBranch(kBranchWin)) {
    KernelCall win = base;
    win[View::kQ] = call[T::kQ];
    win[View::kK] = call[T::kKWin];
    win[View::kV] = call[T::kVWin];
    win[View::kLse] = call[T::kLseWin];
    NSA_RETURN_IF_ERROR(attend(Role::kWin, 2, win, T::kOWin, View::kOWin, View::kReadsWin));
  }
  return launch(Role::kCombine, combine);
}

} // namespace nsa
