#include "runtime/engine/choices/fallback_ladder.h"

#include "runtime/base/cpu_features.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/model/targets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

namespace nsa {

namespace {

constexpr std::string_view kStepNames[] = {"exact", "nearest", "model", "architecture", "compiled", "cpu"};
constexpr std::string_view kCpuDevice = "cpu ";

std::string_view templatesOf(std::string_view device) {
  const size_t at = device.find(kTemplatesOfDevice);
  return at == std::string_view::npos ? std::string_view() : device.substr(at);
}
std::string_view modelOf(std::string_view device) { return device.substr(0, device.find(kTemplatesOfDevice)); }

// How much older the architecture of a choice is, where this device runs its code; 0 is the same. Nothing: it does not.
std::optional<int> ageOf(const LadderRequest &request, const ChoiceSummary &choice) {
  const std::string_view own = modelOf(request.device), other = modelOf(choice.device);
  if (own.starts_with(kCpuDevice)) {
    // All CPU code is of one target; the features it uses are in the device's name.
    if (choice.target != request.target || !other.starts_with(kCpuDevice))
      return std::nullopt;
    Result<int> ownLanes = cpuVectorLanes(std::string(own.substr(kCpuDevice.size())));
    Result<int> lanes = cpuVectorLanes(std::string(other.substr(kCpuDevice.size())));
    if (!ownLanes || !lanes || *lanes > *ownLanes)
      return std::nullopt;
    return *ownLanes - *lanes;
  }
  return ageOfCode(choice.target, request.target);
}

// Of a problem and device in several layers the choice that a lookup finds: a measured one of any layer, else the first
// layer's.
std::vector<const ChoiceSummary *> visibleOf(const std::vector<ChoiceSummary> &choices) {
  std::map<std::pair<std::string_view, std::string_view>, const ChoiceSummary *> found;
  for (const ChoiceSummary &choice : choices) {
    const ChoiceSummary *&seen = found[{choice.problem, choice.device}];
    if (!seen || (choice.tuned && !seen->tuned))
      seen = &choice;
  }
  std::vector<const ChoiceSummary *> visible;
  for (const auto &[key, choice] : found)
    visible.push_back(choice);
  return visible;
}

} // namespace

std::string_view fallbackStepName(FallbackStep step) { return kStepNames[static_cast<int>(step)]; }

Result<FallbackSteps> FallbackSteps::parse(std::string_view field, std::string_view text) {
  if (text == "all")
    return all();
  if (text == "none")
    return of({});
  uint32_t bits = 0;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    auto found = std::find(std::begin(kStepNames), std::end(kStepNames), name);
    if (found == std::end(kStepNames))
      return Status::invalid(
          std::string(field), "'" + std::string(text) + "'",
          "must be all, exact, none, or a comma list of nearest, model, architecture, compiled and cpu");
    bits |= 1u << (found - std::begin(kStepNames));
    if (comma == std::string_view::npos)
      return FallbackSteps(bits);
    rest.remove_prefix(comma + 1);
  }
}

std::string FallbackSteps::toString() const {
  if (*this == all())
    return "all";
  std::string text;
  for (int step = 1; step < kFallbackSteps; ++step)
    if (allows(static_cast<FallbackStep>(step)))
      text.append(text.empty() ? "" : ",").append(kStepNames[step]);
  return text.empty() ? std::string(kStepNames[0]) : text;
}

std::vector<Rung> rankFallbacks(const LadderRequest &request, const std::vector<ChoiceSummary> &choices) {
  struct Ranked {
    Rung rung;
    int age, size;
  };
  std::vector<Ranked> ranked;
  for (const ChoiceSummary *visible : visibleOf(choices)) {
    const ChoiceSummary &choice = *visible;
    const std::optional<ProblemKey> other = ProblemKey::parse(choice.problem);
    if (!other || !other->hasKernelOf(request.problem) || templatesOf(choice.device) != templatesOf(request.device) ||
        (*other == request.problem && choice.device == request.device) ||
        (!request.forcedTemplate.empty() && choice.templateName != request.forcedTemplate))
      continue;
    const std::optional<int> age = ageOf(request, choice);
    const std::optional<ProblemKey::Distance> distance = request.problem.distanceTo(*other);
    if (!age || !distance)
      continue;
    const FallbackStep step = *age != 0                         ? FallbackStep::kArchitecture
                              : choice.device == request.device ? FallbackStep::kNearest
                                                                : FallbackStep::kModel;
    ranked.push_back({{step, choice, distance->powers}, *age, distance->size});
  }
  auto order = [](const Ranked &each) {
    const ChoiceSummary &choice = each.rung.choice;
    return std::make_tuple(each.rung.step, each.age, !choice.tuned, each.rung.distance, -each.size,
                           std::string_view(choice.device), std::string_view(choice.problem));
  };
  std::sort(ranked.begin(), ranked.end(), [&](const Ranked &a, const Ranked &b) { return order(a) < order(b); });
  std::vector<Rung> rungs;
  for (Ranked &each : ranked)
    rungs.push_back(std::move(each.rung));
  return rungs;
}

const ChoiceSummary *findNearest(const LadderRequest &request, const std::vector<ChoiceSummary> &choices) {
  // Which of two is nearer: by what is compiled in, then by the device, then by lengths.
  using Order = std::tuple<size_t, bool, int, std::string_view, std::string_view>;
  std::optional<Order> best;
  const ChoiceSummary *nearest = nullptr;
  for (const ChoiceSummary &choice : choices) {
    const std::optional<ProblemKey> other = ProblemKey::parse(choice.problem);
    const std::optional<ProblemKey::Distance> distance = other ? request.problem.distanceTo(*other) : std::nullopt;
    if (!distance || other->op != request.problem.op)
      continue;
    const Order order(request.problem.fixedDifferences(*other), choice.device != request.device, distance->powers,
                      choice.device, choice.problem);
    if (!best || order < *best) {
      best = order;
      nearest = &choice;
    }
  }
  return nearest;
}

std::string differenceText(const LadderRequest &request, const ChoiceSummary &choice) {
  const std::optional<ProblemKey> other = ProblemKey::parse(choice.problem);
  std::string text = other ? request.problem.differenceText(*other) : "";
  if (choice.device != request.device)
    text.append(text.empty() ? "" : ", ").append("on '" + choice.device + "'");
  return text;
}

} // namespace nsa
