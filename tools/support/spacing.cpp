#include "tools/support/spacing.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace nsa::tools {

SpacedLayout::SpacedLayout(DType dtype, std::vector<int64_t> given, const Spacing &spacing, size_t headAxis)
    : dtype(dtype), shape(std::move(given)), steps(shape.size()), base(spacing.base) {
  std::vector<size_t> order(shape.size()); // innermost first
  std::iota(order.rbegin(), order.rend(), size_t{0});
  if (spacing.headMajor && headAxis > 0)
    std::swap(*std::find(order.begin(), order.end(), headAxis), *std::find(order.begin(), order.end(), headAxis - 1));
  int64_t step = 1;
  for (const size_t axis : order) {
    steps[axis] = step;
    step = std::max<int64_t>(1, shape[axis]) * step + spacing.gap;
  }
  total = base + step;
}

template <typename Visit> void SpacedLayout::forEachElement(Visit visit) const {
  const int64_t count = elementsOf(shape);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t place = base;
  for (int64_t element = 0; element < count; ++element) {
    visit(element, place);
    for (size_t axis = shape.size(); axis-- > 0;) {
      place += steps[axis];
      if (++index[axis] < shape[axis])
        break;
      place -= shape[axis] * steps[axis];
      index[axis] = 0;
    }
  }
}

std::vector<std::byte> SpacedLayout::scatter(const std::vector<std::byte> &contiguous) const {
  std::vector<std::byte> image(static_cast<size_t>(bytes()), std::byte{poisonOf(dtype)});
  const int64_t size = dtypeBytes(dtype);
  forEachElement([&](int64_t element, int64_t place) {
    std::memcpy(image.data() + place * size, contiguous.data() + element * size, static_cast<size_t>(size));
  });
  return image;
}

std::vector<std::byte> SpacedLayout::gather(const std::vector<std::byte> &image) const {
  const int64_t size = dtypeBytes(dtype);
  const int64_t count = elementsOf(shape);
  std::vector<std::byte> contiguous(static_cast<size_t>(count * size));
  forEachElement([&](int64_t element, int64_t place) {
    std::memcpy(contiguous.data() + element * size, image.data() + place * size, static_cast<size_t>(size));
  });
  return contiguous;
}

int64_t SpacedLayout::strayBytes(const std::vector<std::byte> &image) const {
  const int64_t size = dtypeBytes(dtype);
  std::vector<bool> isElement(image.size(), false);
  forEachElement([&](int64_t, int64_t place) { std::fill_n(isElement.begin() + place * size, size, true); });
  int64_t stray = 0;
  for (size_t i = 0; i < image.size(); ++i)
    stray += !isElement[i] && image[i] != std::byte{poisonOf(dtype)};
  return stray;
}

} // namespace nsa::tools
