#include "runtime/model/tensors.h"

#include <algorithm>
#include <ranges>

namespace nsa {

namespace {

using enum Axis;

constexpr TensorRule kTensorRules[] = {
#define NSA_TENSOR(name, apiName, text, number, role, part, lead, last, ...)                                           \
  {text, TensorRole::role, TensorPart::part, Lead::lead, LastDimension::last, {__VA_ARGS__}},
#include "runtime/model/tensors.def"
};
constexpr int kNumbers[] = {
#define NSA_TENSOR(name, apiName, text, number, ...) number,
#include "runtime/model/tensors.def"
};
static_assert(std::ranges::equal(kNumbers, std::views::iota(0, kTensorNames)), "a number is an index of kTensorRules");

// The gradient of the tensor `x` is called `d_x`.
constexpr auto kGradientOf = [] {
  std::array<std::optional<TensorName>, kTensorNames> result{};
  for (int gradient = 0; gradient < kTensorNames; ++gradient)
    for (int of = 0; of < kTensorNames; ++of)
      if (kTensorRules[gradient].name.starts_with("d_") &&
          kTensorRules[gradient].name.substr(2) == kTensorRules[of].name)
        result[static_cast<size_t>(gradient)] = static_cast<TensorName>(of);
  return result;
}();

constexpr std::string_view kAxisSources[] = {
#define NSA_AXIS(axis, source, extent) source,
#include "runtime/model/tensors.def"
};

constexpr ViewRule kViewRules[] = {
#define NSA_VIEW(view, name, rank, elements) {name, rank, ViewElements::elements},
#include "runtime/model/kernel_arguments.def"
};

constexpr ScalarRule kScalarRules[] = {
#define NSA_SCALAR(scalar, name, type, ...) {name, ScalarType::type},
#include "runtime/model/kernel_arguments.def"
};

} // namespace

const TensorRule &tensorRule(TensorName name) { return kTensorRules[static_cast<size_t>(name)]; }
std::optional<TensorName> gradientOf(TensorName name) { return kGradientOf[static_cast<size_t>(name)]; }
std::string_view axisSource(Axis axis) { return kAxisSources[static_cast<size_t>(axis)]; }
const ViewRule &viewRule(View view) { return kViewRules[static_cast<size_t>(view)]; }
const ScalarRule &scalarRule(Scalar scalar) { return kScalarRules[static_cast<size_t>(scalar)]; }

} // namespace nsa
