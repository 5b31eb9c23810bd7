#include "tools/support/decode_run.h"

#include "runtime/base/signature.h"

#include "tools/support/kv_cache.h"
#include "tools/support/standard_normal.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

namespace nsa::tools {
namespace {

using T = TensorName;

bool countsNewTokens(T name) {
  const Lead lead = tensorRule(name).lead;
  return lead == Lead::kQueries || lead == Lead::kKeys;
}

int64_t rowBytes(const HostTensor &tensor, Layout layout) {
  const std::vector<int64_t> row(tensor.shape.begin() + (layout == Layout::kPacked ? 1 : 2), tensor.shape.end());
  return elementsOf(row) * dtypeBytes(tensor.dtype);
}

} // namespace

Result<DecodeRun> DecodeRun::open(Accelerator &accelerator, const OperatorInputs &history, const CacheShape &shape,
                                  const std::set<TensorName> &wanted) {
  assert(definitionOf(history.spec.op).isForward());
  DecodeRun run;
  run.accelerator = &accelerator;
  run.history = &history;
  run.decodeSpec = history.spec;
  run.decodeSpec.op = withCache(history.spec.op);
  run.decodeSpec.layout = shape.layout;
  run.decodeSpec.pageSize = shape.pageSize;
  run.batch = history.extents.batch;
  run.mostNew = shape.mostNew;
  run.lengths.assign(static_cast<size_t>(run.batch), 0);
  run.fed = run.lengths;
  const bool packed = history.spec.layout == Layout::kPacked;
  const int32_t *offsets = packed ? history[T::kCuSeqlensK].integers().data() : nullptr;
  for (int64_t s = 0; s < run.batch; ++s)
    run.firstRows.push_back(packed ? offsets[s] : s * history.extents.timeK);

  for (const auto &[name, tensor] : history.tensors) {
    if (name == T::kCuSeqlensK || name == T::kCuSeqlensQ)
      continue;
    const bool isNew = countsNewTokens(name);
    if (isNew)
      run.inputNames.insert(name);
    NSA_RETURN_IF_ERROR(run.add(name, tensor.dtype, isNew ? run.stepShape(name, shape.mostNew) : tensor.shape,
                                isNew ? nullptr : &tensor));
  }
  if (shape.layout == Layout::kPacked)
    NSA_RETURN_IF_ERROR(run.add(T::kCuSeqlensQ, DType::kI32, {run.batch + 1}, nullptr));
  run.outputNames = outputsOf(run.decodeSpec, history.tensors, wanted);
  for (const T name : run.outputNames) {
    NSA_RETURN_IF_ERROR(run.add(name, dtypeOf(run.decodeSpec, name), run.stepShape(name, shape.mostNew), nullptr));
    const DType dtype = dtypeOf(history.spec, name);
    run.outputs[name] =
        HostTensor::make(dtype, shapeOf(history.spec, name, history.extents), std::byte{poisonOf(dtype)});
  }
  NSA_RETURN_IF_ERROR(run.addCache(shape));
  return run;
}

Maxima DecodeRun::maxima() const { return {batch, batch * mostNew, mostNew, roomTokens}; }

std::vector<int64_t> DecodeRun::stepShape(T name, int64_t time) const {
  const bool packed = decodeSpec.layout == Layout::kPacked;
  return shapeOf(decodeSpec, name,
                 {.batch = batch, .timeQ = packed ? batch * time : time, .timeK = packed ? batch * time : time});
}

Status DecodeRun::addCache(const CacheShape &shape) {
  const Spec &spec = decodeSpec;
  const int64_t page = shape.pageSize;
  pagesPerSequence = page ? (shape.room + page - 1) / page : 0;
  roomTokens = page ? pagesPerSequence * page : shape.room;
  const int64_t pages = page ? batch * pagesPerSequence + kSparePages : 0;
  auto pool = [&](T name) {
    return add(name, spec.dtype, shapeOf(spec, name, {.batch = batch, .room = roomTokens, .pages = pages}), nullptr);
  };
  if (shape.isShared) {
    NSA_RETURN_IF_ERROR(pool(T::kKCache));
    NSA_RETURN_IF_ERROR(pool(T::kVCache));
  }
  for (const Operand &operand : operandsOf(decodeSpec.op)) {
    const bool standsAlone = tensorRule(operand.name).lead != Lead::kCache || !shape.isShared;
    if (operand.role == Operand::Role::kInOut && takes(spec, operand.name) && standsAlone)
      NSA_RETURN_IF_ERROR(pool(operand.name));
  }
  const HostTensor none = HostTensor::make(DType::kI32, {batch});
  NSA_RETURN_IF_ERROR(add(T::kCacheSeqlens, DType::kI32, {batch}, &none));
  return page ? addBlockTable(pagesPerSequence, pages, shape.seed) : Status::ok();
}

Status DecodeRun::addBlockTable(int64_t used, int64_t pages, uint64_t seed) {
  blockTable = drawPages(pages, seed);
  blockTable.resize(static_cast<size_t>(batch * used));
  // A page's number is written when its tokens come. The number that is here before must not be read.
  HostTensor table = HostTensor::make(DType::kI32, {batch, used});
  std::ranges::fill(table.integers(), std::numeric_limits<int32_t>::max());
  return add(T::kBlockTable, DType::kI32, {batch, used}, &table);
}

Status DecodeRun::pretend(int64_t tokens, uint64_t seed) {
  std::mt19937_64 random(seed);
  StandardNormal normal;
  for (auto &[name, entry] : entries) {
    if (!isOfCache(tensorRule(name).lead))
      continue;
    const HostTensor drawn = drawTensor(decodeSpec.dtype, {int64_t{1} << 20}, [&] { return normal(random); });
    auto *target = static_cast<std::byte *>(entry.buffer.data());
    for (size_t done = 0; done < entry.buffer.size(); done += drawn.bytes.size())
      NSA_RETURN_IF_ERROR(accelerator->upload(target + done, drawn.bytes.data(),
                                              std::min(drawn.bytes.size(), entry.buffer.size() - done)));
  }
  pretended = tokens;
  NSA_RETURN_IF_ERROR(rewind(tokens));
  if (!decodeSpec.pageSize)
    return Status::ok();
  return accelerator->upload(entries.at(T::kBlockTable).buffer.data(), blockTable.data(),
                             blockTable.size() * sizeof(int32_t));
}

Status DecodeRun::rewind(int64_t tokens) {
  lengths.assign(lengths.size(), tokens);
  const std::vector<int32_t> length(lengths.size(), static_cast<int32_t>(tokens));
  return accelerator->upload(entries.at(T::kCacheSeqlens).buffer.data(), length.data(),
                             length.size() * sizeof(int32_t));
}

int64_t DecodeRun::historyRow(size_t sequence, int64_t token) const { return firstRows[sequence] + token - pretended; }

int64_t DecodeRun::stepRow(size_t sequence) const {
  if (decodeSpec.layout == Layout::kDense)
    return static_cast<int64_t>(sequence) * (fed.empty() ? 0 : fed[0]);
  return std::reduce(fed.begin(), fed.begin() + static_cast<std::ptrdiff_t>(sequence), int64_t{0});
}

Status DecodeRun::feed(const std::vector<int64_t> &counts) {
  assert(counts.size() == static_cast<size_t>(batch));
  const bool packed = decodeSpec.layout == Layout::kPacked;
  fed = counts;
  const int64_t total = std::reduce(counts.begin(), counts.end());
  const int64_t time = packed ? total : counts[0];
  std::vector<std::byte> rows;
  for (T name : inputNames) {
    const HostTensor &source = (*history)[name];
    const int64_t bytes = rowBytes(source, history->spec.layout);
    rows.clear();
    for (size_t s = 0; s < counts.size(); ++s) {
      const std::byte *first = source.bytes.data() + historyRow(s, lengths[s]) * bytes;
      rows.insert(rows.end(), first, first + counts[s] * bytes);
    }
    Entry &entry = entries.at(name);
    NSA_RETURN_IF_ERROR(accelerator->upload(entry.buffer.data(), rows.data(), rows.size()));
  }
  // Shapes follow the step: outputs of fewer tokens stand together as well.
  for (const std::set<T> &names : {inputNames, outputNames})
    for (T name : names) {
      Entry &entry = entries.at(name);
      std::vector<int64_t> shape = stepShape(name, 1);
      shape[packed ? 0 : 1] = time;
      entry.tensor = contiguousTensor(entry.buffer.data(), static_cast<DType>(entry.tensor.dtype), shape);
    }
  NSA_RETURN_IF_ERROR(poisonOutputs());
  if (packed) {
    std::vector<int32_t> offsets(1, 0);
    for (int64_t count : counts)
      offsets.push_back(offsets.back() + static_cast<int32_t>(count));
    NSA_RETURN_IF_ERROR(accelerator->upload(entries.at(T::kCuSeqlensQ).buffer.data(), offsets.data(),
                                            offsets.size() * sizeof(int32_t)));
  }
  for (size_t s = 0; s < counts.size(); ++s) {
    for (int64_t page = 0; decodeSpec.pageSize && page * decodeSpec.pageSize < lengths[s] + counts[s]; ++page) {
      if ((page + 1) * decodeSpec.pageSize <= lengths[s])
        continue;
      const int64_t at = static_cast<int64_t>(s) * pagesPerSequence + page;
      auto *table = static_cast<int32_t *>(entries.at(T::kBlockTable).buffer.data());
      NSA_RETURN_IF_ERROR(accelerator->upload(table + at, &blockTable[static_cast<size_t>(at)], sizeof(int32_t)));
    }
    lengths[s] += counts[s];
  }
  return Status::ok();
}

Status DecodeRun::collect() {
  NSA_RETURN_IF_ERROR(accelerator->synchronize());
  NSA_RETURN_IF_ERROR(checkGuards());
  for (T name : outputNames) {
    HostTensor &all = outputs.at(name);
    const int64_t bytes = rowBytes(all, history->spec.layout);
    std::vector<std::byte> rows(static_cast<size_t>(std::reduce(fed.begin(), fed.end()) * bytes));
    NSA_RETURN_IF_ERROR(accelerator->download(rows.data(), entries.at(name).buffer.data(), rows.size()));
    for (size_t s = 0; s < fed.size(); ++s)
      std::memcpy(all.bytes.data() + historyRow(s, lengths[s] - fed[s]) * bytes, rows.data() + stepRow(s) * bytes,
                  static_cast<size_t>(fed[s] * bytes));
  }
  return Status::ok();
}

Status DecodeRun::step(nsa_plan *plan, const std::vector<int64_t> &counts) {
  NSA_RETURN_IF_ERROR(feed(counts));
  NSA_RETURN_IF_ERROR(enqueue(plan));
  NSA_RETURN_IF_ERROR(toStatus(nsa_plan_status(plan, accelerator->stream(), nullptr)));
  return collect();
}

Result<NamedTensors> DecodeRun::collected() const {
  NamedTensors result = outputs;
  for (const auto &[name, cacheName] : {std::pair(T::kKComp, T::kKCompCache), std::pair(T::kVComp, T::kVCompCache)}) {
    if (!takes(decodeSpec, cacheName))
      continue;
    NSA_ASSIGN_OR_RETURN(HostTensor pool, download(cacheName));
    HostTensor rows = HostTensor::make(decodeSpec.dtype, shapeOf(history->spec, name, history->extents), kNanByte);
    const int64_t bytes = rowBytes(rows, history->spec.layout), poolRows = pool.shape[1];
    int64_t next = 0; // row of the packed result
    for (size_t s = 0; s < lengths.size(); ++s) {
      const bool packed = history->spec.layout == Layout::kPacked;
      const int64_t first = packed ? next : static_cast<int64_t>(s) * history->extents.blocks;
      const int64_t count = decodeSpec.compressedBlocks(lengths[s]);
      for (int64_t c = 0; c < count; ++c) {
        const int64_t entry =
            decodeSpec.pageSize
                ? blockTable[s * static_cast<size_t>(pagesPerSequence) + static_cast<size_t>(c / poolRows)]
                : static_cast<int64_t>(s);
        const int64_t slot = decodeSpec.pageSize ? c % poolRows : c;
        std::memcpy(rows.bytes.data() + (first + c) * bytes, pool.bytes.data() + (entry * poolRows + slot) * bytes,
                    static_cast<size_t>(bytes));
      }
      next += count;
    }
    result.emplace(name, std::move(rows));
  }
  return result;
}

} // namespace nsa::tools
