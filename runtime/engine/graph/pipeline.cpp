#include "runtime/engine/graph/pipeline.h"

#include "runtime/base/sequence_fields.h"
#include "runtime/base/signature.h"
#include "runtime/engine/graph/comparison.h"

#include <algorithm>
#include <limits>

namespace nsa {

namespace {

using T = TensorName;

// Bytes of the branch outputs and lists of one chunk of queries. It is enough to fill a GPU many times.
constexpr int64_t kGpuChunkBytes = int64_t{512} << 20;
constexpr int64_t kCpuChunkBytes = int64_t{32} << 20;
constexpr int64_t kChunkGranule = 64; // queries

Spec withOperator(Spec spec, Operator op) {
  spec.op = op;
  return spec;
}

// The most rows of compressed keys that all sequences have together.
Saturated mostCompressedRows(const Spec &spec, const Maxima &maxima) {
  return Saturated(maxima.batch) * spec.compressedBlocks(maxima.seqlenK);
}

// The most tokens that decode's new compressed blocks need: all new tokens, and for each sequence the tokens of an
// unfinished block.
Saturated mostStagedRows(const Spec &spec, const Maxima &maxima) {
  const Saturated batch = maxima.batch;
  const Saturated tokens = spec.layout == Layout::kPacked ? maxima.tokensQ : batch * maxima.seqlenQ;
  return tokens + batch * (spec.cmpBlock - 1);
}

} // namespace

std::string_view roleName(Role role, Operator op) {
  constexpr std::string_view kNames[] = {"sequences", "append", "compress", "cmp", "scores", "rank",
                                         "select",    "ascend", "sel",      "win", "combine"};
  return role == Role::kMain ? operatorName(op) : kNames[static_cast<size_t>(role)];
}

uint8_t routesOf(const Spec &spec, const Maxima &maxima) {
  if (!isWhole(spec.op))
    return 0;
  uint8_t routes = 0;
  // b + 1 <= n for every query (docs/specification.md 5.6).
  if (spec.hasBranch(kBranchSel) && maxima.seqlenK <= int64_t{spec.selCount} * spec.selBlock)
    routes |= kSelIsDense;
  if (spec.hasBranch(kBranchWin) && maxima.seqlenK <= spec.window)
    routes |= kWinIsDense;
  return routes;
}

std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima) {
  return stepsOf(spec, maxima, routesOf(spec, maxima));
}

std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima, uint8_t routes) {
  std::vector<Step> steps;
  auto add = [&](Role role, Spec stepSpec) { steps.push_back({role, stepSpec, maxima}); };
  // Kernels of decode find their lengths in a table, whatever the layout of the new tokens is. `combine` only adds up
  // rows.
  Spec branch = spec;
  if (spec.op == Operator::kDecode) {
    const bool compresses = spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel);
    if (!compresses)
      branch.cmpBlock = branch.cmpStride = 1;
    branch.layout = Layout::kPacked;
    add(Role::kSequences, withOperator(branch, Operator::kCacheSequences));
    add(Role::kAppend, withOperator(branch, Operator::kAppend));
  } else if (spec.layout == Layout::kPacked && readsLengths(spec.op)) {
    Spec lengths = withOperator(spec, Operator::kSequences);
    // Where nothing is compressed, one kernel serves whatever these fields hold.
    const bool compresses = !isWhole(spec.op) || spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel);
    if (!(fieldsOf(spec.op) & kCmpGeometry) || !compresses)
      lengths.cmpBlock = lengths.cmpStride = 1;
    add(Role::kSequences, lengths);
  }
  if (!isWhole(spec.op)) {
    if (spec.op == Operator::kSelect) {
      // For callers without the log-sum-exp: the compressed branch over its keys as values.
      Spec cmp = withOperator(spec, Operator::kCmp);
      cmp.vDim = spec.qkDim;
      add(Role::kCmp, cmp);
    }
    add(Role::kMain, spec);
    return steps;
  }
  if (sharesKeys(spec, maxima)) {
    if (spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel)) {
      add(Role::kCompress, withOperator(branch, Operator::kCompress));
      add(Role::kCmp, withOperator(branch, Operator::kSplitCmp));
    }
    if (spec.hasBranch(kBranchSel)) {
      // The lists of a dense route may be asked for.
      add(Role::kScores, withOperator(branch, Operator::kScores));
      if (rankSegment(spec, maxima))
        add(Role::kRank, withOperator(branch, Operator::kRank));
      add(Role::kSelect, withOperator(branch, Operator::kChoose));
      add(Role::kAscend, withOperator(branch, Operator::kAscend));
    }
    // One kernel serves both branches, so that they do not wait for each other. The fields of a branch that is off have
    // their defaults.
    if (!spec.hasBranch(kBranchSel)) {
      branch.selBlock = Spec().selBlock;
      branch.selCount = Spec().selCount;
    }
    if (!spec.hasBranch(kBranchWin))
      branch.window = std::numeric_limits<int32_t>::max();
    if (spec.hasBranch(kBranchSel) || spec.hasBranch(kBranchWin))
      add(spec.hasBranch(kBranchSel) ? Role::kSel : Role::kWin, withOperator(branch, Operator::kSplitSelWin));
    add(Role::kCombine, withOperator(spec, Operator::kMerge));
    return steps;
  }
  if (spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel)) {
    add(Role::kCompress, withOperator(branch, Operator::kCompress));
    add(Role::kCmp, withOperator(branch, Operator::kCmp));
  }
  if (spec.hasBranch(kBranchSel)) {
    add(Role::kSelect, withOperator(branch, Operator::kSelect));
    add(Role::kSel, withOperator(branch, routes & kSelIsDense ? Operator::kDense : Operator::kSel));
  }
  if (spec.hasBranch(kBranchWin))
    add(Role::kWin, withOperator(branch, routes & kWinIsDense ? Operator::kDense : Operator::kWindow));
  add(Role::kCombine, withOperator(spec, Operator::kCombine));
  return steps;
}

WorkspaceLayout::WorkspaceLayout(const Spec &spec, const Maxima &maxima, const RoleKernels &kernels, bool isGpu) {
  for (const LoadedKernel *kernel : kernels)
    if (kernel)
      bytes = std::max(bytes, kernel->workspaceBytes());
  auto place = [&](size_t &offset, Saturated size) {
    offset = std::min(workspaceAligned(bytes), kMostBytes);
    bytes = offset + std::min(static_cast<size_t>(size.value()), kMostBytes - offset);
  };
  const bool decodes = spec.op == Operator::kDecode;
  if (kernels[static_cast<size_t>(Role::kSequences)])
    place(sequences, Saturated(maxima.batch) * (decodes ? 2 : 1) * kSequenceFields * int64_t{sizeof(int32_t)});

  const bool packed = spec.layout == Layout::kPacked;
  const int64_t time = packed ? maxima.tokensQ : maxima.seqlenQ;
  const Saturated entries = packed ? 1 : maxima.batch;
  const Saturated element = dtypeBytes(spec.dtype);
  const Saturated lseBytes = Saturated(spec.queryHeads) * int64_t{sizeof(float)};
  chunk = std::max<int64_t>(time, 1);
  if (spec.op == Operator::kSelect) {
    place(lse, entries * chunk * lseBytes);
    place(out[0], entries * chunk * spec.queryHeads * spec.qkDim * element);
  }
  if (!isWhole(spec.op))
    return;

  const Saturated outBytes = element * spec.queryHeads * spec.vDim;
  const Saturated readsBytes = Saturated(spec.kvHeads) * int64_t{sizeof(int32_t)};
  const Saturated listBytes = readsBytes * spec.selCount;
  const Saturated perQuery = entries * (Saturated(3) * (outBytes + readsBytes) + lseBytes + listBytes);
  const int64_t most = (isGpu ? kGpuChunkBytes : kCpuChunkBytes) / perQuery.value() / kChunkGranule * kChunkGranule;
  chunk = std::min(chunk, std::max(most, kChunkGranule));
  if (kernels[static_cast<size_t>(Role::kCompress)]) {
    const Saturated most = decodes ? mostStagedRows(spec, maxima) : mostCompressedRows(spec, maxima);
    const Saturated rows = most * spec.kvHeads;
    compRows = most.value();
    place(decodes ? kStaged : kComp, rows * spec.qkDim * element);
    place(decodes ? vStaged : vComp, rows * spec.vDim * element);
  }
  if (sharesKeys(spec, maxima)) {
    shares = KeyShares(spec, maxima);
    shares.placeIn(place);
    return;
  }
  if (kernels[static_cast<size_t>(Role::kCompress)]) {
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

Status WorkspaceLayout::check(const Maxima &maxima) const {
  if (bytes < kMostBytes)
    return Status::ok();
  return Status::invalid(
      "maxima",
      "max_batch=" + std::to_string(maxima.batch) + " max_tokens_q=" + std::to_string(maxima.tokensQ) +
          " max_seqlen_q=" + std::to_string(maxima.seqlenQ) + " max_seqlen_k=" + std::to_string(maxima.seqlenK),
      "the workspace, with the spec's heads and dimensions, must be below 2^62 bytes",
      "split the batch into several calls");
}

Status PipelineRun::launch(Role role, const KernelCall &kernelCall, Role part) const {
  if (tap)
    tap->launching(role, kernelCall);
  NSA_RETURN_IF_ERROR(kernels[static_cast<size_t>(role)]->launch(kernelCall, statusWord, workspace, stream));
  if (comparison)
    NSA_RETURN_IF_ERROR(comparison->add(role, *kernels[static_cast<size_t>(role)], kernelCall, statusWord, stream));
  if (!trace)
    return Status::ok();
  trace->launched.push_back(part);
  return trace->clock.mark(stream);
}

ViewSlots PipelineRun::table() const {
  if (!kernels[static_cast<size_t>(Role::kSequences)])
    return {};
  return ViewSlots::make(workspace + layout.sequences, DType::kI32, {kSequenceFields, 1});
}

ViewSlots PipelineRun::compressTable() const {
  const int64_t row = kSequenceFields * int64_t{sizeof(int32_t)};
  return ViewSlots::make(workspace + layout.sequences + call.sizes.batch * row, DType::kI32, {kSequenceFields, 1});
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
  lengths[View::kCacheSeqlens] = call[T::kCacheSeqlens];
  lengths[View::kBlockTable] = call[T::kBlockTable];
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
  if (rules.spec.op == Operator::kNsa)
    return runNsa();
  if (rules.spec.op == Operator::kDecode)
    return runDecode();
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
  BranchKeys keys = {{}, {call[T::kKSel], call[T::kVSel]}, {call[T::kKWin], call[T::kVWin]}};
  if (kernels[static_cast<size_t>(Role::kCompress)]) {
    // Sequences of a packed batch follow each other. In the dense layout their distance follows from the call's
    // lengths.
    const bool packed = spec.layout == Layout::kPacked;
    auto rows = [&](T name, size_t offset, int64_t dim) {
      if (call[name].data)
        return call[name];
      const int64_t row = spec.kvHeads * dim;
      const int64_t blocks = call.sizes.maxBlocksC;
      return ViewSlots::make(workspace + offset, spec.dtype, {packed ? 0 : blocks * row, row, dim},
                             packed ? layout.compRows : blocks);
    };
    keys.cmp = {rows(T::kKComp, layout.kComp, spec.qkDim), rows(T::kVComp, layout.vComp, spec.vDim)};
    KernelCall compress = singleCall(Operator::kCompress, call, table());
    compress[View::kKComp] = keys.cmp[0];
    compress[View::kVComp] = keys.cmp[1];
    NSA_RETURN_IF_ERROR(launch(Role::kCompress, compress));
  }
  return runBranches(keys);
}

// New tokens go into the cache, the blocks that become whole with them too; from there on it is the forward over it.
Status PipelineRun::runDecode() const {
  const Spec &spec = rules.spec;
  const BranchKeys keys = {{call[T::kKCompCache], call[T::kVCompCache]},
                           {call[T::kKSelCache], call[T::kVSelCache]},
                           {call[T::kKWinCache], call[T::kVWinCache]}};
  KernelCall append = fresh();
  for (const auto &[name, view] :
       {std::pair(T::kKSel, View::kKSel), std::pair(T::kVSel, View::kVSel), std::pair(T::kKWin, View::kKWin),
        std::pair(T::kVWin, View::kVWin), std::pair(T::kKCmp, View::kKCmp), std::pair(T::kVCmp, View::kVCmp),
        std::pair(T::kKSelCache, View::kKSelCache), std::pair(T::kVSelCache, View::kVSelCache),
        std::pair(T::kKRaw, View::kKRaw), std::pair(T::kVRaw, View::kVRaw)})
    append[view] = call[name];
  // One pool for both branches is written once.
  if (keys.win[0].data != keys.sel[0].data)
    append[View::kKWinCache] = keys.win[0];
  if (keys.win[1].data != keys.sel[1].data)
    append[View::kVWinCache] = keys.win[1];
  const bool compresses = kernels[static_cast<size_t>(Role::kCompress)];
  if (compresses) {
    auto staged = [&](size_t offset, int64_t dim) {
      return ViewSlots::make(workspace + offset, spec.dtype, {0, spec.kvHeads * dim, dim});
    };
    append[View::kKStaged] = staged(layout.kStaged, spec.qkDim);
    append[View::kVStaged] = staged(layout.vStaged, spec.vDim);
  }
  NSA_RETURN_IF_ERROR(launch(Role::kAppend, append));
  if (compresses) {
    // The second half of the table says which blocks are new. So many new tokens complete at most so many.
    KernelCall compress = singleCall(Operator::kCompress, call, compressTable());
    compress[View::kK] = append[View::kKStaged];
    compress[View::kV] = append[View::kVStaged];
    compress[View::kKComp] = keys.cmp[0];
    compress[View::kVComp] = keys.cmp[1];
    compress.grid.maxBlocksC = (call.sizes.maxSeqlenQ + spec.cmpStride - 1) / spec.cmpStride;
    NSA_RETURN_IF_ERROR(launch(Role::kCompress, compress));
  }
  return sharesKeys(rules.spec, rules.maxima) ? runShared(keys) : runBranches(keys);
}

// Programs share the keys of each query, and what they found is added up at the end.
Status PipelineRun::runShared(const BranchKeys &keys) const {
  const Spec &spec = rules.spec;
  const bool routed = (routesOf(spec, rules.maxima) & kSelIsDense) != 0;
  const KeyShares &shares = layout.shares;
  const bool lists = call[T::kBlockList].data != nullptr;
  if (kernels[static_cast<size_t>(Role::kCmp)] && (spec.hasBranch(kBranchCmp) || !routed || lists)) {
    KernelCall cmp = fresh();
    cmp[View::kQ] = call[T::kQCmp];
    cmp[View::kK] = keys.cmp[0];
    cmp[View::kV] = keys.cmp[1];
    shares.bindCmp(cmp, workspace);
    NSA_RETURN_IF_ERROR(launch(Role::kCmp, cmp));
  }
  const bool sel = spec.hasBranch(kBranchSel), win = spec.hasBranch(kBranchWin);
  if (sel && (!routed || lists)) {
    KernelCall select = fresh();
    select[View::kQ] = call[T::kQCmp];
    select[View::kK] = keys.cmp[0];
    select[View::kBlockList] = call[T::kBlockList];
    shares.bindScores(select, workspace);
    NSA_RETURN_IF_ERROR(launch(Role::kScores, select));
    if (kernels[static_cast<size_t>(Role::kRank)]) {
      shares.bindRank(select, workspace);
      NSA_RETURN_IF_ERROR(launch(Role::kRank, select));
    }
    shares.bindChoice(select, workspace);
    NSA_RETURN_IF_ERROR(launch(Role::kSelect, select));
    if (lists)
      NSA_RETURN_IF_ERROR(launch(Role::kAscend, select));
  }
  const Role role = sel ? Role::kSel : Role::kWin;
  auto attend = [&](Role part, bool withSel, bool withWin) {
    KernelCall share = fresh();
    share[View::kQ] = call[T::kQ];
    share[View::kK] = keys.sel[0];
    share[View::kV] = keys.sel[1];
    share[View::kKWin] = keys.win[0];
    share[View::kVWin] = keys.win[1];
    setScalar(share.scalars, Scalar::kLists, !routed);
    shares.bindSelWin(share, workspace, withSel, withWin);
    return launch(role, share, part);
  };
  if (sel && win && trace) { // each by itself, so that each has a time
    NSA_RETURN_IF_ERROR(attend(Role::kSel, true, false));
    NSA_RETURN_IF_ERROR(attend(Role::kWin, false, true));
  } else if (sel || win) {
    NSA_RETURN_IF_ERROR(attend(role, sel, win));
  }
  KernelCall merge = fresh();
  shares.bindSlots(merge, workspace);
  for (const auto &[name, view] :
       {std::pair(T::kGates, View::kGates), std::pair(T::kOut, View::kOut), std::pair(T::kReads, View::kReads),
        std::pair(T::kOCmp, View::kOCmp), std::pair(T::kOSel, View::kOSel), std::pair(T::kOWin, View::kOWin),
        std::pair(T::kLseCmp, View::kLseCmp), std::pair(T::kLseSel, View::kLseSel),
        std::pair(T::kLseWin, View::kLseWin)})
    merge[view] = call[name];
  return launch(Role::kCombine, merge);
}

Status PipelineRun::runBranches(const BranchKeys &keys) const {
  for (int64_t first = 0; first < call.timeQ; first += layout.chunk)
    NSA_RETURN_IF_ERROR(runChunk(first, std::min(first + layout.chunk, call.timeQ), keys));
  return Status::ok();
}

Status PipelineRun::runChunk(int64_t first, int64_t past, const BranchKeys &keys) const {
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
    cmp[View::kK] = keys.cmp[0];
    cmp[View::kV] = keys.cmp[1];
    cmp[View::kLse] =
        call[T::kLseCmp].data ? call[T::kLseCmp] : perQuery(layout.lse, DType::kF32, spec.queryHeads, 1, first);
    NSA_RETURN_IF_ERROR(attend(Role::kCmp, 0, cmp, T::kOCmp, View::kOCmp, View::kReadsCmp));
    // Lists of a dense route are made for callers only.
    const bool routed = (routes & kSelIsDense) != 0;
    if (spec.hasBranch(kBranchSel)) {
      KernelCall select = base;
      select[View::kQ] = cmp[View::kQ];
      select[View::kK] = keys.cmp[0];
      select[View::kLse] = cmp[View::kLse];
      select[View::kBlockList] = call[T::kBlockList].data
                                     ? call[T::kBlockList]
                                     : perQuery(layout.blockList, DType::kI32, spec.kvHeads, spec.selCount, first, 1);
      if (!routed || call[T::kBlockList].data)
        NSA_RETURN_IF_ERROR(launch(Role::kSelect, select));
      KernelCall sel = base;
      sel[View::kQ] = call[T::kQ];
      sel[View::kK] = keys.sel[0];
      sel[View::kV] = keys.sel[1];
      sel[View::kBlockList] = select[View::kBlockList];
      sel[View::kLse] = call[T::kLseSel];
      NSA_RETURN_IF_ERROR(attend(Role::kSel, 1, sel, T::kOSel, View::kOSel, View::kReadsSel));
    }
  }
  if (spec.hasBranch(kBranchWin)) {
    KernelCall win = base;
    win[View::kQ] = call[T::kQ];
    win[View::kK] = keys.win[0];
    win[View::kV] = keys.win[1];
    win[View::kLse] = call[T::kLseWin];
    NSA_RETURN_IF_ERROR(attend(Role::kWin, 2, win, T::kOWin, View::kOWin, View::kReadsWin));
  }
  return launch(Role::kCombine, combine);
}

} // namespace nsa
