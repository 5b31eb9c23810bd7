#include "runtime/cuda/tensor_map_cache.h"

#include "runtime/base/manifest.h"

#include <cassert>
#include <iterator>

namespace nsa::cuda {
namespace {

constexpr unsigned kRank = 4; // column, head, time, entry

TensorMapType typeOf(DType dtype) {
  switch (dtype) {
  case DType::kBf16:
    return TensorMapType::kBfloat16;
  case DType::kF16:
    return TensorMapType::kFloat16;
  case DType::kF32:
    return TensorMapType::kFloat32;
  case DType::kI32:
    return TensorMapType::kInt32;
  case DType::kFp8E4M3:
  case DType::kFp8E5M2:
    return TensorMapType::kUint8; // a map only moves bytes
  }
  assert(false && "a dtype of no known kind");
  return TensorMapType::kUint8;
}

// The driver wants a current context, though the map is of none.
Status encode(const PrimaryContext &context, const TensorMapShape &shape, TensorMap &map) {
  ContextScope scope(context);
  NSA_RETURN_IF_ERROR(scope.status());
  const auto bytes = static_cast<uint64_t>(dtypeBytes(shape.dtype));
  const uint64_t sizes[kRank] = {static_cast<uint64_t>(shape.columns), static_cast<uint64_t>(shape.heads),
                                 static_cast<uint64_t>(shape.rows), static_cast<uint64_t>(shape.entries)};
  const uint64_t strides[kRank - 1] = {static_cast<uint64_t>(shape.headStride) * bytes,
                                       static_cast<uint64_t>(shape.rowStride) * bytes,
                                       static_cast<uint64_t>(shape.entryStride) * bytes};
  const unsigned box[kRank] = {static_cast<unsigned>(ManifestParam::kMapBoxBytes / static_cast<int64_t>(bytes)),
                               static_cast<unsigned>(shape.boxHeads), static_cast<unsigned>(shape.boxRows), 1};
  const unsigned steps[kRank] = {1, 1, 1, 1};
  const DriverResult result = context.driver.tensorMapEncodeTiled(
      &map, typeOf(shape.dtype), kRank, const_cast<void *>(shape.data), sizes, strides, box, steps,
      TensorMapInterleave::kNone, TensorMapSwizzle::k128, TensorMapPromotion::k256, TensorMapFill::kZeros);
  // A rule of the driver's that tensorMapShape does not know: without a map the kernel loads by other means.
  if (result == kErrorInvalidValue) {
    map = {};
    return Status::ok();
  }
  return context.driver.check(result, "tensorMapEncodeTiled");
}

} // namespace

size_t TensorMapCache::setOf(const TensorMapShape &shape) {
  // Queries, keys and values of a call differ in their address or in their box.
  uint64_t hash = reinterpret_cast<uintptr_t>(shape.data) >> 4;
  hash = (hash ^ static_cast<uint64_t>(shape.boxRows * 31 + shape.boxHeads)) * 0x9e3779b97f4a7c15;
  return hash >> 32 & (kSets - 1);
}

Status writeTensorMap(const PrimaryContext &context, const TensorMapShape &shape, uint64_t *slots) {
  static_assert(sizeof(TensorMap) == ManifestParam::kMapSlots * sizeof(uint64_t));
  thread_local TensorMapCache cache;
  const Result<const TensorMap *> map =
      cache.find(shape, [&](const TensorMapShape &wanted, TensorMap &made) { return encode(context, wanted, made); });
  if (!map)
    return map.status();
  std::copy(std::begin((*map)->opaque), std::end((*map)->opaque), slots);
  return Status::ok();
}

} // namespace nsa::cuda
