#include "autotune/workload/tune_crossover.h"

#include "runtime/base/config_text.h"
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/graph/pipeline.h"
#include "runtime/engine/report/stopwatch.h"

#include <algorithm>
#include <map>
#include <set>

namespace nsa {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWonInARow = 2;
// What the two sides of a duel are called in the evidence of a route.
const std::string kForward(std::ranges::find_if(operatorTable(), &OperatorDef::isForward)->name),
    kDenseAttention(std::ranges::find(operatorTable(), MetKeys::kAll, &OperatorDef::keys)->name);

// Whether one of the operators that the workload is limited to takes part. If none does, the run measures nothing anew,
// and the answer cannot change.
bool isConcerned(const Workload &workload, const Spec &spec, int64_t batch) {
  return std::ranges::any_of(workload.prefill->lengths, [&](int64_t length) {
    return std::ranges::any_of(stepsOf(spec, {batch, batch * length, length, length}),
                               [&](const Step &step) { return workload.wants(step.spec.op); });
  });
}

bool isWon(const Duel &duel) { return duel.ours < duel.theirs; }

// The lengths from the last lost one on: where it was won once and lost again, it was not won there.
std::vector<Duel> fromLastLost(const std::vector<Duel> &duels) {
  const auto lost = std::find_if_not(duels.rbegin(), duels.rend(), isWon);
  return {lost == duels.rend() ? duels.begin() : lost.base() - 1, duels.end()};
}

std::vector<Duel> duelsOf(const StoredRoute &route) {
  std::map<int64_t, Duel> bySize;
  for (const RouteMeasurement &entry : route.evidence)
    if (entry.milliseconds > 0) {
      Duel &duel = bySize[entry.size];
      duel.tokens = entry.size;
      (entry.variant == kForward ? duel.ours : duel.theirs) = entry.milliseconds;
    }
  std::vector<Duel> duels;
  for (const auto &[size, duel] : bySize)
    duels.push_back(duel);
  return duels;
}

} // namespace

std::string CrossoverJob::text() const {
  const std::string many = std::to_string(batch) + "x";
  return head + " " + std::string(dtypeName(spec.dtype)) + " " + many + std::to_string(lengths.front()) +
         (lengths.size() > 1 ? " to " + many + std::to_string(lengths.back()) : "");
}

std::string crossoverFamily(const Spec &spec, int64_t batch) {
  Spec dense = spec; // the layout is the crossover's own
  dense.layout = Layout::kDense;
  return std::string(operatorName(spec.op)) + fieldText(ProblemField::kBatch, batch) + " " + configText(dense);
}

std::vector<CrossoverJob> crossoverJobs(const std::vector<Workload> &workloads) {
  std::vector<CrossoverJob> jobs;
  for (const Workload &workload : workloads) {
    if (!workload.prefill || !workload.prefill->crossover || workload.direction == TuneDirection::kBackward)
      continue;
    for (const Workload::Head &head : workload.heads)
      for (const DType dtype : workload.dtypes) {
        Spec spec = head.spec;
        spec.op = withoutCache(spec.op);
        spec.dtype = dtype;
        spec.layout = Layout::kDense;
        spec.clearUnread();
        const int64_t batch = workload.prefill->batch.front();
        if (!isConcerned(workload, spec, batch))
          continue;
        const std::string family = crossoverFamily(spec, batch);
        auto job = std::ranges::find(jobs, family, &CrossoverJob::family);
        if (job == jobs.end()) {
          jobs.push_back({head.name, spec, batch, {}, family});
          job = jobs.end() - 1;
        }
        job->lengths.insert(job->lengths.end(), workload.prefill->lengths.begin(), workload.prefill->lengths.end());
        std::ranges::sort(job->lengths);
        const auto [first, last] = std::ranges::unique(job->lengths);
        job->lengths.erase(first, last);
      }
  }
  return jobs;
}

bool answers(const StoredRoute &route, const CrossoverJob &job, const std::string &revision) {
  if (route.provenance != provenanceOf(revision) || route.evidence.empty())
    return false;
  std::set<int64_t> sizes;
  for (const RouteMeasurement &entry : route.evidence)
    sizes.insert(entry.size);
  const bool isEnded = route.threshold != StoredRoute::kNever || route.evidence.back().milliseconds == 0;
  return std::ranges::all_of(
      job.lengths, [&](int64_t length) { return sizes.contains(length) || (isEnded && length > *sizes.rbegin()); });
}

double secondsAt(int64_t tokens, int64_t before, double secondsBefore) {
  const double longer = static_cast<double>(tokens) / static_cast<double>(before);
  return secondsBefore * longer * longer;
}

Result<std::optional<StoredRoute>> measureCrossover(const CrossoverJob &job, const CrossoverPlace &place) {
  StoredRoute route;
  route.family = job.family;
  route.device = place.key;
  route.name = kCrossoverRoute;
  route.provenance = provenanceOf(place.revision);
  std::vector<Duel> duels;
  double seconds = 0; // of the length before
  for (const int64_t tokens : job.lengths) {
    if (place.isOver(duels.empty() ? 0 : secondsAt(tokens, duels.back().tokens, seconds)))
      return std::optional<StoredRoute>();
    const Stopwatch watch;
    Result<Duel> duel = place.measure(job, tokens);
    seconds = watch.milliseconds() * 1e-3;
    if (!duel) {
      if (duel.status().code() != ErrorCode::kOutOfMemory || duels.empty())
        return duel.status();
      route.evidence.push_back({tokens, kForward, 0, 0, duel.status().toString()});
      break;
    }
    route.evidence.push_back({tokens, kForward, duel->ours, duel->ours / duel->theirs, ""});
    route.evidence.push_back({tokens, kDenseAttention, duel->theirs, duel->theirs / duel->ours, ""});
    duels.push_back(*duel);
    if (duels.size() >= kWonInARow && std::all_of(duels.end() - kWonInARow, duels.end(), isWon))
      break;
  }
  const std::optional<Crossover> crossover = crossoverOf(fromLastLost(duels));
  route.threshold = crossover ? crossover->measured : StoredRoute::kNever;
  return std::optional(std::move(route));
}

Json crossoverRecord(const CrossoverJob &job, const StoredRoute *route) {
  Json record = {{"heads", job.head},      {"dtype", dtypeName(job.spec.dtype)},
                 {"batch", job.batch},     {"family", job.family},
                 {"from", nullptr},        {"interpolated", nullptr},
                 {"text", "not measured"}, {"times", Json::array()}};
  if (!route)
    return record;
  const std::vector<Duel> duels = duelsOf(*route);
  for (const Duel &duel : duels)
    record["times"].push_back({{"tokens", duel.tokens}, {"nsa_ms", duel.ours}, {"dense_ms", duel.theirs}});
  if (route->threshold == StoredRoute::kNever) {
    record["text"] = "never within the lengths measured, up to " + std::to_string(duels.back().tokens) + " tokens";
  } else {
    record["from"] = route->threshold;
    const std::optional<Crossover> crossover = crossoverOf(fromLastLost(duels));
    if (crossover && crossover->interpolated)
      record["interpolated"] = *crossover->interpolated;
    record["text"] = crossover ? crossover->toString() : "from " + std::to_string(route->threshold) + " tokens on";
  }
  if (const RouteMeasurement &last = route->evidence.back(); last.milliseconds == 0)
    record["ended"] = std::to_string(last.size) + " tokens: " + last.detail;
  record["provenance"] = route->provenance;
  return record;
}

} // namespace nsa
