#include "tools/nsa/files/kv_cache_reader.h"

#include <algorithm>
#include <limits>

namespace nsa::tools {
namespace {

using T = TensorName;

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

int64_t rowTokens(const Spec &spec, T name) { return tensorRule(name).lead == Lead::kCacheBlocks ? spec.cmpStride : 1; }

Status broken(T name, const HostTensor &tensor, std::string rule) {
  return Status::invalid(nameText(name), shapeText(tensor.shape), std::move(rule));
}

} // namespace

Status checkExtent(T name, const HostTensor &tensor, size_t axis, int64_t extent, const std::string &source) {
  if (tensor.shape[axis] == extent)
    return Status::ok();
  return broken(name, tensor,
                "dimension " + std::to_string(axis) + " must be " + std::to_string(extent) + " (" + source + ")");
}

Result<HostTensor> readIntegers(const SafetensorsFile &file, const std::string &name) {
  NSA_ASSIGN_OR_RETURN(HostTensor tensor, file.read(name));
  if (tensor.dtype != DType::kI32)
    return Status::invalid(name, std::string(dtypeName(tensor.dtype)), "must be int32");
  return tensor;
}

KvCacheReader::KvCacheReader(const ConfigFile &config, const SafetensorsFile &file, OperatorInputs &inputs)
    : config(config), file(file), inputs(inputs), isPaged(file.contains(nameText(T::kBlockTable))) {}

std::string KvCacheReader::shapeRule(const TensorRule &rule) const {
  std::string lead = isPaged ? "pages, page_size" : "batch, room";
  if (rule.lead == Lead::kRing)
    lead = "batch, cmp_block";
  if (rule.lead == Lead::kCacheBlocks)
    lead = isPaged ? "pages, page_size / cmp_stride" : "batch, blocks";
  return "must be [" + lead + ", " + std::string(axisSource(rule.axes[0])) + ", " +
         std::string(axisSource(rule.axes[1])) + "]" +
         (rule.lead == Lead::kRing ? ""
          : isPaged                ? ", as block_table is there"
                                   : ", as block_table is not there");
}

Status KvCacheReader::settlePages(Spec &spec) const {
  spec.pageSize = 0;
  if (isPaged)
    for (const auto &[name, tensor] : inputs.tensors)
      if (const Lead lead = tensorRule(name).lead; lead == Lead::kCache || lead == Lead::kCacheBlocks) {
        const int64_t size = tensor.shape[1] * rowTokens(spec, name);
        if (size < 1 || size > kMostTokens)
          return broken(name, tensor, "dimension 1 must be that of a page, at least 1 and of less than 2^31 tokens");
        spec.pageSize = static_cast<int32_t>(size);
        break;
      }
  if (config.has("page_size") && config.spec.pageSize != spec.pageSize)
    return Status::invalid("page_size", std::to_string(config.spec.pageSize),
                           "must agree with the tensors, which say " + std::to_string(spec.pageSize),
                           isPaged ? "" : "a cache in pages has a block_table");
  return Status::ok();
}

Status KvCacheReader::readTable(const std::string &name, size_t rank, const std::string &rule) {
  NSA_ASSIGN_OR_RETURN(HostTensor tensor, readIntegers(file, name));
  if (tensor.shape.size() != rank || tensor.shape[0] != inputs.extents.batch)
    return Status::invalid(name, shapeText(tensor.shape),
                           "must be " + rule + ", batch = " + std::to_string(inputs.extents.batch));
  inputs.tensors[rank == 1 ? T::kCacheSeqlens : T::kBlockTable] = std::move(tensor);
  return Status::ok();
}

Status KvCacheReader::checkLead(const Spec &spec, T name, const HostTensor &tensor) {
  const Lead lead = tensorRule(name).lead;
  CallExtents &extents = inputs.extents;
  if (lead == Lead::kRing || !isPaged)
    NSA_RETURN_IF_ERROR(checkExtent(name, tensor, 0, extents.batch, "batch"));
  if (lead == Lead::kRing)
    return checkExtent(name, tensor, 1, spec.cmpBlock, "cmp_block");
  if (isPaged) {
    if (spec.pageSize % rowTokens(spec, name) != 0)
      return Status::ok(); // page_size breaks a rule of its own
    if (pageSource == T::kBlockTable) {
      pageSource = name;
      extents.pages = tensor.shape[0];
    }
    NSA_RETURN_IF_ERROR(checkExtent(name, tensor, 0, extents.pages, "pages, as in " + nameText(pageSource)));
    return checkExtent(name, tensor, 1, spec.pageSize / rowTokens(spec, name),
                       lead == Lead::kCache ? "page_size" : "page_size / cmp_stride");
  }
  if (lead == Lead::kCache) {
    if (roomSource == T::kCacheSeqlens) {
      roomSource = name;
      extents.room = tensor.shape[1];
    }
    return checkExtent(name, tensor, 1, extents.room, "room, as in " + nameText(roomSource));
  }
  if (const int64_t least = spec.compressedBlocks(extents.room); tensor.shape[1] < least)
    return broken(name, tensor,
                  "dimension 1 must be at least " + std::to_string(least) + ", the compressed blocks of " +
                      std::to_string(extents.room) + " tokens");
  return Status::ok();
}

Status KvCacheReader::settle(const Spec &spec) {
  NSA_RETURN_IF_ERROR(readTable("cache_seqlens", 1, "[batch]"));
  if (isPaged)
    NSA_RETURN_IF_ERROR(readTable("block_table", 2, "[batch, pages of a sequence]"));
  CallExtents &extents = inputs.extents;
  // Of compressed rows alone in no pages nothing but the lengths says it. Wrong lengths are the runtime's to report.
  for (const int32_t length : inputs[T::kCacheSeqlens].integers())
    extents.room = std::max(extents.room, length + inputs.maxima.seqlenQ);
  if (isPaged)
    extents.room = inputs[T::kBlockTable].shape[1] * spec.pageSize;
  extents.room = std::min(extents.room, kMostTokens);
  for (const Lead lead : {Lead::kCache, Lead::kCacheBlocks, Lead::kRing}) // pools of tokens say how much room there is
    for (const auto &[name, tensor] : inputs.tensors)
      if (tensorRule(name).lead == lead)
        NSA_RETURN_IF_ERROR(checkLead(spec, name, tensor));
  inputs.maxima.seqlenK = extents.room;
  return Status::ok();
}

} // namespace nsa::tools
