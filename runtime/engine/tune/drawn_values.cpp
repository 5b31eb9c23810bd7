#include "runtime/engine/tune/drawn_values.h"

#include "runtime/base/half.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace nsa {

namespace {

// Numbers are drawn for so many elements and then repeated: drawing a gigabyte takes longer than tuning.
constexpr int64_t kDrawnElements = int64_t{1} << 22;

// The sum of four uniform 16-bit draws (Irwin-Hall), one multiplication per element.
class NormalDraw {
public:
  explicit NormalDraw(uint64_t seed) : generator(seed) {}
  float operator()() {
    uint64_t bits = generator();
    auto sum = static_cast<float>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return (sum - 2.0f * 65535.0f) * (1.7320508f / 65535.0f);
  }

private:
  std::mt19937_64 generator;
};

} // namespace

Status fillDrawn(Device &device, void *data, DType dtype, int64_t elements, float shift, std::mt19937_64 &generator) {
  NormalDraw normal(generator());
  const int64_t elementBytes = dtypeBytes(dtype);
  const int64_t drawn = std::min(elements, kDrawnElements);
  std::vector<std::byte> host(static_cast<size_t>(drawn * elementBytes));
  for (int64_t i = 0; i < drawn; ++i) {
    const float value = normal() + shift;
    const uint16_t narrow = dtype == DType::kBf16 ? floatToBf16(value) : floatToFp16(value);
    const void *source = dtype == DType::kF32 ? static_cast<const void *>(&value) : &narrow;
    std::memcpy(host.data() + i * elementBytes, source, static_cast<size_t>(elementBytes));
  }
  auto *target = static_cast<std::byte *>(data);
  for (int64_t begin = 0; begin < elements; begin += drawn) {
    const int64_t count = std::min(drawn, elements - begin);
    NSA_RETURN_IF_ERROR(
        device.upload(target + begin * elementBytes, host.data(), static_cast<size_t>(count * elementBytes)));
  }
  return Status::ok();
}

size_t drawSkipped(std::mt19937_64 &generator) {
  constexpr size_t kPage = 4096;
  return generator() % (kPage / kWorkspaceAlignment) * kWorkspaceAlignment;
}

} // namespace nsa
