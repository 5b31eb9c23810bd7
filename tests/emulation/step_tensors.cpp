#include "step_tensors.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <sys/mman.h>

namespace emulation {

namespace {
constexpr size_t kPage = 4096;
}

Memory::Memory(size_t bytes, size_t shift, unsigned char fill) : bytes(bytes) {
  const size_t whole = (bytes + 16 + kPage - 1) / kPage * kPage;
  regionBytes = whole + 2 * kPage;
  void *mapped = mmap(nullptr, regionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::runtime_error("no memory for a tensor");
  region = static_cast<unsigned char *>(mapped);
  mprotect(region + kPage, whole, PROT_READ | PROT_WRITE);
  // The tensor ends where memory does, except for what its alignment needs.
  begin = region + kPage + (whole - bytes - (shift != 0 ? 16 : 0)) / 16 * 16 + shift;
  std::memset(region + kPage, fill, whole);
}

Memory::~Memory() { munmap(region, regionBytes); }

void StepTensors::place(Owned &tensor, std::vector<int64_t> shape, int columns, int elementBytes, bool shifted,
                        int gap) {
  const int64_t pitch = columns + gap + (shifted ? test.padding : 0);
  int64_t size = pitch;
  for (size_t i = shape.size(); i-- > 0;) {
    tensor.view.strides[i] = size;
    size *= shape[i];
  }
  tensor.view.elementBytes = elementBytes;
  tensor.isBf16 = p.isBf16;
  tensor.memory = std::make_unique<Memory>(static_cast<size_t>(size * elementBytes),
                                           shifted ? static_cast<size_t>(test.shift) : 0, 0xff);
  tensor.view.data = tensor.memory->data();
  all.push_back(&tensor);
}

void StepTensors::fill(const Owned &tensor, uint16_t *at, int columns, float scale) {
  std::uniform_real_distribution<float> number(-scale, scale);
  for (int i = 0; i < columns; ++i)
    at[i] = tensor.bits(number(random));
}

uint16_t *StepTensors::poolRow(const Owned &pool, int s, int row, int rowsOfPage, int head) const {
  if (p.pageSize == 0)
    return pool.row(s, row, head);
  return pool.row(table.at<int32_t>(s)[row / rowsOfPage], row % rowsOfPage, head);
}

uint16_t *StepTensors::compressed(const Owned &pool, int s, int row, int head) const {
  return poolRow(pool, s, row, p.pageSize / p.cmpStride, head);
}

// Of a level, weights are 0, and the last bias is the row.
void StepTensors::makeWeights(Weights &weights, int columns, bool isLevel, float level) {
  const int inputs = p.cmpBlock * columns;
  const auto matrix = [&](Owned &tensor, int tokens, int rows, int ofRow, int summands, float value) {
    place(tensor, {tokens, rows + (tokens > 1 ? test.weightGap : 0)}, ofRow, 2, true, test.weightPadding);
    for (int number = 0; number < tokens * rows; ++number) {
      uint16_t *at = tensor.row(number / rows, number % rows, 0);
      if (isLevel)
        std::fill_n(at, ofRow, tensor.bits(value));
      else
        fill(tensor, at, ofRow, 2 / std::sqrt(static_cast<float>(summands)));
    }
  };
  // Views of rows have one coordinate.
  const auto rowsAlone = [&](Owned &tensor, int rows, int ofRow, int summands, float value) {
    matrix(tensor, 1, rows, ofRow, summands, value);
    tensor.view.strides[0] = tensor.view.strides[1];
  };
  const bool addsBias = test.addsBias || isLevel;
  if (p.compression == Compression::kMean)
    return;
  if (test.addsPe)
    rowsAlone(weights.pe, p.cmpBlock, columns, 4, 0);
  if (p.compression == Compression::kLinear) {
    matrix(weights.w, p.cmpBlock, columns, columns, inputs, 0);
    if (addsBias)
      rowsAlone(weights.b, 1, columns, 1, level);
    return;
  }
  matrix(weights.w1, p.cmpBlock, columns, p.mlpHidden, inputs, 0);
  rowsAlone(weights.w2, p.mlpHidden, columns, p.mlpHidden, 0);
  if (addsBias) {
    rowsAlone(weights.b1, 1, p.mlpHidden, 1, 0);
    rowsAlone(weights.b2, 1, columns, 1, level);
  }
}

void StepTensors::make() {
  const int heads = test.kvHeads;
  const int pagesOfSequence = p.pageSize > 0 ? capacity / p.pageSize : 0;
  pages = pagesOfSequence * batch + 2;
  if (p.pageSize > 0) {
    place(table, {batch, pagesOfSequence}, 1, 4, false);
    std::vector<int> numbers(static_cast<size_t>(pages));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), random);
    for (int s = 0; s < batch; ++s)
      for (int i = 0; i < pagesOfSequence; ++i) // entries behind the end of a sequence hold anything
        table.at<int32_t>(s)[i] = i * p.pageSize < length(s) + newTokens(s)
                                      ? numbers[static_cast<size_t>(s * pagesOfSequence + i)]
                                      : -1234567;
  }
  const auto pool = [&](Owned &tensor, int columns, int rowsOfSequence, int rowsOfPage) {
    if (p.pageSize > 0)
      place(tensor, {pages, rowsOfPage, heads}, columns, 2, true);
    else
      place(tensor, {batch, rowsOfSequence, heads}, columns, 2, true);
    tensor.view.table = p.pageSize > 0 ? table.at<int32_t>(0) : nullptr;
    tensor.view.tableStride = pagesOfSequence;
  };
  const int rowEntries = packed ? 1 : batch;
  const int rows = packed ? std::accumulate(added.begin(), added.end(), 0) : test.tokens;
  const auto newRows = [&](Owned &tensor, int columns, int ofHeads, float scale) {
    place(tensor, {rowEntries, std::max(rows, 1), ofHeads}, columns, 2, true);
    for (int entry = 0; entry < rowEntries; ++entry)
      for (int time = 0; time < rows; ++time)
        for (int head = 0; head < ofHeads; ++head)
          fill(tensor, tensor.row(entry, time, head), columns, scale);
  };
  // With queries of ones, keys of one number have all the same score.
  const float keyOfLevel = test.level / std::sqrt(static_cast<float>(p.qkDim)) / 1.4426950408889634F;
  const auto level = [&](const Owned &tensor, uint16_t *row, float value) {
    if (test.level != 0)
      std::fill_n(row, p.qkDim, tensor.bits(value));
  };
  const auto levelRows = [&](const Owned &tensor, int ofHeads, float value) {
    for (int entry = 0; entry < rowEntries; ++entry)
      for (int time = 0; time < rows; ++time)
        for (int head = 0; head < ofHeads; ++head)
          level(tensor, tensor.row(entry, time, head), value);
  };
  newRows(q, p.qkDim, heads * p.group, test.sharpness);
  levelRows(q, heads * p.group, 1);
  if (test.ownQCmp) {
    newRows(qCmp, p.qkDim, heads * p.group, test.sharpness);
    levelRows(qCmp, heads * p.group, 1);
  } else {
    qCmp.isBf16 = q.isBf16;
    qCmp.view = q.view;
    qCmp.view.strides[2] = test.oneQCmp ? 0 : q.view.strides[2];
  }
  const auto branch = [&](Owned &kPool, Owned &vPool, Owned &k, Owned &v) {
    pool(kPool, p.qkDim, capacity, p.pageSize);
    pool(vPool, p.vDim, capacity, p.pageSize);
    newRows(k, p.qkDim, heads, 1);
    newRows(v, p.vDim, heads, 1);
    for (int s = 0; s < batch; ++s)
      for (int t = 0; t < std::min(length(s), capacity); ++t)
        for (int head = 0; head < heads; ++head) {
          fill(kPool, token(kPool, s, t, head), p.qkDim, 1);
          fill(vPool, token(vPool, s, t, head), p.vDim, 1);
        }
  };
  if (p.hasSel)
    branch(kSelCache, vSelCache, kSel, vSel);
  if (p.hasWin && !(test.onePool && p.hasSel))
    branch(kWinCache, vWinCache, kWin, vWin);
  if (compresses()) {
    pool(kComp, p.qkDim, std::max(visible(capacity), 1), p.pageSize / p.cmpStride);
    pool(vComp, p.vDim, std::max(visible(capacity), 1), p.pageSize / p.cmpStride);
    for (int s = 0; s < batch; ++s)
      for (int c = 0; c < visible(length(s)); ++c)
        for (int head = 0; head < heads; ++head) {
          if (test.equalKeys)
            std::fill_n(compressed(kComp, s, c, head), p.qkDim, kComp.bits(0.3F));
          else
            fill(kComp, compressed(kComp, s, c, head), p.qkDim, 1);
          level(kComp, compressed(kComp, s, c, head), keyOfLevel);
          fill(vComp, compressed(vComp, s, c, head), p.vDim, 1);
          if (c == test.oddKey)
            compressed(kComp, s, c, head)[1] = kComp.bits(test.oddValue);
        }
    newRows(kCmp, p.qkDim, heads, 1);
    levelRows(kCmp, heads, keyOfLevel);
    newRows(vCmp, p.vDim, heads, 1);
    place(kRaw, {batch, p.cmpBlock, heads}, p.qkDim, 2, true);
    place(vRaw, {batch, p.cmpBlock, heads}, p.vDim, 2, true);
    for (int s = 0; s < batch; ++s)
      for (int t = std::max(length(s) - p.cmpBlock, 0); t < length(s); ++t)
        for (int head = 0; head < heads; ++head) {
          fill(kRaw, kRaw.row(s, t % p.cmpBlock, head), p.qkDim, 1);
          level(kRaw, kRaw.row(s, t % p.cmpBlock, head), keyOfLevel);
          fill(vRaw, vRaw.row(s, t % p.cmpBlock, head), p.vDim, 1);
        }
    makeWeights(ofK, p.qkDim, test.level != 0, keyOfLevel);
    makeWeights(ofV, p.vDim, false, 0);
  }
  const int gateHeads = p.gatePerGroup ? heads : heads * p.group;
  place(gates, {rowEntries, std::max(rows, 1), gateHeads, 3}, 1, 2, false);
  for (size_t i = 0; i < gates.memory->size() / 2; ++i)
    fill(gates, gates.at<uint16_t>(0) + i, 1, 2);
  const int queries = std::max(rows, 1);
  place(out, {rowEntries, queries, heads * p.group}, p.vDim, 2, true);
  if (test.outputs) {
    place(reads, {rowEntries, queries, heads}, 1, 4, false);
    const auto single = [&](bool has, Owned &o, Owned &lse) {
      if (!has)
        return;
      place(o, {rowEntries, queries, heads * p.group}, p.vDim, 2, true);
      place(lse, {rowEntries, queries, heads * p.group}, 1, 4, false);
    };
    single(p.hasCmp, oCmp, lseCmp);
    single(p.hasSel, oSel, lseSel);
    single(p.hasWin, oWin, lseWin);
    if (p.hasSel)
      place(blockList, {rowEntries, queries, heads, p.selCount}, 1, 4, false);
  }
  place(lengths, {batch}, 1, 4, false);
  for (int s = 0; s < batch; ++s)
    lengths.at<int32_t>(s)[0] = length(s);
  if (packed) {
    place(offsets, {batch + 1}, 1, 4, false);
    for (int s = 0; s <= batch; ++s)
      offsets.at<int32_t>(s)[0] = std::accumulate(added.begin(), added.begin() + s, 0);
  }
  constexpr int kMostTokens = 8; // kStepTokens
  place(arrivals, {batch, heads}, 2 * kMostTokens, 4, false);
  for (size_t i = 0; i < arrivals.memory->size(); ++i)
    arrivals.memory->data()[i] = static_cast<unsigned char>(random());
  place(status, {2}, 1, 4, false);
  std::fill_n(status.at<int32_t>(0), 2, 0);
  makeFaults();
  arguments.q = q.view;
  arguments.q_cmp = qCmp.view;
  const bool shares = test.onePool && p.hasSel && p.hasWin;
  arguments.k_sel_cache = kSelCache.view;
  arguments.v_sel_cache = vSelCache.view;
  arguments.k_win_cache = shares ? kSelCache.view : kWinCache.view;
  arguments.v_win_cache = shares ? vSelCache.view : vWinCache.view;
  arguments.k_sel = kSel.view;
  arguments.v_sel = vSel.view;
  arguments.k_win = shares ? kSel.view : kWin.view;
  arguments.v_win = shares ? vSel.view : vWin.view;
  arguments.k_comp = kComp.view;
  arguments.v_comp = vComp.view;
  arguments.k_cmp = kCmp.view;
  arguments.v_cmp = vCmp.view;
  arguments.k_raw = kRaw.view;
  arguments.v_raw = vRaw.view;
  arguments.gates = gates.view;
  arguments.out = out.view;
  arguments.reads = reads.view;
  arguments.o_cmp = oCmp.view;
  arguments.o_sel = oSel.view;
  arguments.o_win = oWin.view;
  arguments.lse_cmp = lseCmp.view;
  arguments.lse_sel = lseSel.view;
  arguments.lse_win = lseWin.view;
  arguments.block_list = blockList.view;
  arguments.cu_seqlens_q = offsets.view;
  arguments.cache_seqlens = lengths.view;
  arguments.block_table = table.view;
  arguments.arrivals = arrivals.view;
  arguments.status = status.view;
  arguments.pe_k = ofK.pe.view;
  arguments.pe_v = ofV.pe.view;
  arguments.w_k = ofK.w.view;
  arguments.w_v = ofV.w.view;
  arguments.b_k = ofK.b.view;
  arguments.b_v = ofV.b.view;
  arguments.w1_k = ofK.w1.view;
  arguments.w1_v = ofV.w1.view;
  arguments.b1_k = ofK.b1.view;
  arguments.b1_v = ofV.b1.view;
  arguments.w2_k = ofK.w2.view;
  arguments.w2_v = ofV.w2.view;
  arguments.b2_k = ofK.b2.view;
  arguments.b2_v = ofV.b2.view;
  arguments.kv_heads = heads;
  arguments.window = p.hasWin ? test.window : std::numeric_limits<int32_t>::max();
  arguments.init_blocks = test.initBlocks;
  arguments.local_blocks = test.localBlocks;
  scale = 1 / std::sqrt(static_cast<double>(p.qkDim));
  arguments.scale_log2 = static_cast<float>(scale * 1.4426950408889634);
  arguments.capacity = capacity;
  arguments.pages = pages;
  arguments.max_seqlen_k = test.maxSeqlenK != 0 ? test.maxSeqlenK : p.room;
  arguments.total_q = rows;
  arguments.seqlen_q = arguments.max_seqlen_q = test.tokens;
}

void StepTensors::makeFaults() {
  if (test.faultySequence < 0)
    return;
  if (test.faultyLength != 0)
    lengths.at<int32_t>(test.faultySequence)[0] = test.faultyLength;
  if (test.faultyPage)
    table.at<int32_t>(test.faultySequence)[length(test.faultySequence) / 2 / p.pageSize] = pages;
  if (test.faultyOffset)
    offsets.at<int32_t>(test.faultySequence + 1)[0] = -7;
}

} // namespace emulation
