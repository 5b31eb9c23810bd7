#include "tools/nsa/tune/tune_crossover.h"

#include "bench/measure/plan_contender.h"
#include "bench/verbs/crossover.h"
#include "runtime/base/manifest.h"
#include "runtime/engine/graph/pipeline.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSamples = 5, kWarmUps = 2;
constexpr size_t kWonInARow = 2;
constexpr const char *kForward = "nsa", *kDenseAttention = "dense";

// An operator's plan with the tensors that it runs on.
struct Side {
  OperatorInputs inputs;
  std::optional<DeviceOperator> job;
  std::unique_ptr<bench::PlanContender> contender;
};

Result<std::unique_ptr<Side>> makeSide(const CrossoverJob &job, Operator op, int64_t tokens, nsa_engine *engine,
                                       Accelerator &accelerator, Buffer &flush) {
  auto side = std::make_unique<Side>();
  Spec spec = job.spec;
  spec.op = op;
  const std::vector<int64_t> lengths(static_cast<size_t>(job.batch), tokens);
  side->inputs = drawInputs(spec, {lengths, lengths}, 1);
  // What the check of sampled rows needs beside the result.
  const std::set<TensorName> checked = {TensorName::kBlockList, TensorName::kKComp, TensorName::kVComp};
  Result<DeviceOperator> uploaded =
      DeviceOperator::upload(accelerator, side->inputs, op == Operator::kNsa ? checked : std::set<TensorName>());
  if (!uploaded)
    return uploaded.status();
  side->job = std::move(*uploaded);
  Result<std::unique_ptr<bench::PlanContender>> contender =
      bench::PlanContender::make(op == Operator::kNsa ? kForward : kDenseAttention, engine,
                                 {accelerator, side->inputs, *side->job, flush, kWarmUps});
  if (!contender)
    return contender.status();
  side->contender = std::move(*contender);
  return side;
}

Result<bench::Duel> duelAt(const CrossoverJob &job, int64_t tokens, nsa_engine *engine, Accelerator &accelerator,
                           Buffer &flush) {
  std::vector<std::unique_ptr<Side>> sides;
  for (const Operator op : {Operator::kNsa, Operator::kDense}) {
    Result<std::unique_ptr<Side>> side = makeSide(job, op, tokens, engine, accelerator, flush);
    if (!side)
      return side.status();
    sides.push_back(std::move(*side));
  }
  const std::vector<Result<bench::Times>> times =
      bench::measureInTurns({sides[0]->contender.get(), sides[1]->contender.get()}, kSamples);
  for (const Result<bench::Times> &one : times)
    if (!one)
      return one.status();
  return bench::Duel{tokens, times[0]->medianMs, times[1]->medianMs};
}

// Whether one of the operators that the workload is limited to takes part. If none does, the run measures nothing anew,
// and the answer cannot change.
bool isConcerned(const Workload &workload, const Spec &spec, int64_t batch) {
  return std::ranges::any_of(workload.prefill->lengths, [&](int64_t length) {
    return std::ranges::any_of(stepsOf(spec, {batch, batch * length, length, length}),
                               [&](const Step &step) { return workload.wants(step.spec.op); });
  });
}

bool isWon(const bench::Duel &duel) { return duel.ours < duel.theirs; }

// The lengths from the last lost one on: where it was won once and lost again, it was not won there.
std::vector<bench::Duel> fromLastLost(const std::vector<bench::Duel> &duels) {
  const auto lost = std::find_if_not(duels.rbegin(), duels.rend(), isWon);
  return {lost == duels.rend() ? duels.begin() : lost.base() - 1, duels.end()};
}

std::vector<bench::Duel> duelsOf(const StoredRoute &route) {
  std::map<int64_t, bench::Duel> bySize;
  for (const RouteMeasurement &entry : route.evidence)
    if (entry.milliseconds > 0) {
      bench::Duel &duel = bySize[entry.size];
      duel.tokens = entry.size;
      (entry.variant == kForward ? duel.ours : duel.theirs) = entry.milliseconds;
    }
  std::vector<bench::Duel> duels;
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
  std::map<std::string, std::string> fields;
  const auto add = [&](const char *name, int64_t value) { fields[name] = std::to_string(value); };
  fields["dtype"] = dtypeName(spec.dtype);
  fields["cmp_kind"] = cmpKindName(spec.cmpKind);
  add("batch", batch);
  add("branches", spec.branches);
  add("cmp_block", spec.cmpBlock);
  add("cmp_stride", spec.cmpStride);
  add("kv_heads", spec.kvHeads);
  add("qk_dim", spec.qkDim);
  add("query_heads", spec.queryHeads);
  add("sel_block", spec.selBlock);
  add("sel_count", spec.selCount);
  add("v_dim", spec.vDim);
  add("window", spec.window);
  return "nsa " + formatValues(fields);
}

std::vector<CrossoverJob> crossoverJobs(const std::vector<Workload> &workloads) {
  std::vector<CrossoverJob> jobs;
  for (const Workload &workload : workloads) {
    if (!workload.prefill || !workload.prefill->crossover)
      continue;
    for (const Workload::Head &head : workload.heads)
      for (const DType dtype : workload.dtypes) {
        Spec spec = head.spec;
        spec.op = Operator::kNsa;
        spec.dtype = dtype;
        spec.layout = Layout::kDense;
        spec.pageSize = 0;
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
  if (route.provenance != "compiler=" + revision || route.evidence.empty())
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
  Result<std::unique_ptr<Accelerator>> accelerator = Accelerator::open(place.device);
  if (!accelerator)
    return accelerator.status();
  Result<Buffer> flush = bench::flushBuffer(**accelerator);
  if (!flush)
    return flush.status();
  StoredRoute route;
  route.family = job.family;
  route.device = place.key;
  route.name = kCrossoverRoute;
  route.provenance = "compiler=" + place.revision;
  std::vector<bench::Duel> duels;
  double seconds = 0; // of the length before
  for (const int64_t tokens : job.lengths) {
    if (place.isOver(duels.empty() ? 0 : secondsAt(tokens, duels.back().tokens, seconds)))
      return std::optional<StoredRoute>();
    const auto begin = std::chrono::steady_clock::now();
    Result<bench::Duel> duel = duelAt(job, tokens, place.engine, **accelerator, *flush);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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
  const std::optional<bench::Crossover> crossover = bench::crossoverOf(fromLastLost(duels));
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
  const std::vector<bench::Duel> duels = duelsOf(*route);
  for (const bench::Duel &duel : duels)
    record["times"].push_back({{"tokens", duel.tokens}, {"nsa_ms", duel.ours}, {"dense_ms", duel.theirs}});
  if (route->threshold == StoredRoute::kNever) {
    record["text"] = "never within the lengths measured, up to " + std::to_string(duels.back().tokens) + " tokens";
  } else {
    record["from"] = route->threshold;
    const std::optional<bench::Crossover> crossover = bench::crossoverOf(fromLastLost(duels));
    if (crossover && crossover->interpolated)
      record["interpolated"] = *crossover->interpolated;
    record["text"] = crossover ? crossover->toString() : "from " + std::to_string(route->threshold) + " tokens on";
  }
  if (const RouteMeasurement &last = route->evidence.back(); last.milliseconds == 0)
    record["ended"] = std::to_string(last.size) + " tokens: " + last.detail;
  record["provenance"] = route->provenance;
  return record;
}

} // namespace nsa::tools
