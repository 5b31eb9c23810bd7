#include "autotune/workload/tune_queue.h"

#include <algorithm>

namespace nsa {
namespace {

// Shares of the budget. The first kernel of a family compiles the candidates, which the others may find made; a kernel
// without choices is compiled once.
constexpr double kTuned = 1, kFirst = 4, kMade = 0.2;
// Less than that, of which inputs take a part, would store choices from next to no measurements.
constexpr double kLeastSeconds = 1;

} // namespace

TuneQueue::TuneQueue(const std::vector<TuneJob> &jobs, std::vector<size_t> wanted, Limits limits)
    : jobs(jobs), limits(std::move(limits)), begin(this->limits.now()), waiting(std::move(wanted)),
      total(waiting.size()) {}

double TuneQueue::weightOf(size_t job) const {
  if (!jobs[job].isTuned)
    return kMade;
  return opened.contains(jobs[job].family) ? kTuned : kFirst;
}

double TuneQueue::weightOfWaiting() const {
  double weights = 0;
  std::set<std::string> first;
  for (size_t each : waiting)
    weights += weightOf(each) == kFirst && !first.insert(jobs[each].family).second ? kTuned : weightOf(each);
  return weights;
}

// Chooses a job of the worker's own family first, then one of a family that no worker has begun, then any other.
std::optional<size_t> TuneQueue::choose(const std::string &family) const {
  for (const auto &fits : {std::function<bool(size_t)>([&](size_t job) { return jobs[job].family == family; }),
                           std::function<bool(size_t)>([&](size_t job) { return !opened.contains(jobs[job].family); }),
                           std::function<bool(size_t)>([](size_t) { return true; })})
    if (const auto found = std::ranges::find_if(waiting, fits); found != waiting.end())
      return *found;
  return std::nullopt;
}

double TuneQueue::usualBeyondSeconds() const {
  std::array<double, 8> sorted = beyondSeconds;
  std::ranges::sort(sorted, std::greater());
  return std::max(sorted[1], 0.0);
}

std::optional<TuneQueue::Ticket> TuneQueue::take(const std::string &family) {
  const std::lock_guard lock(mutex);
  const std::optional<size_t> job = stopped ? std::nullopt : choose(family);
  if (!job)
    return std::nullopt;
  double seconds = limits.kernelSeconds;
  const double weight = weightOf(*job);
  if (limits.totalSeconds > 0) {
    // What it does beyond its share must fit as well.
    const double left = begin + limits.totalSeconds - limits.now() - usualBeyondSeconds();
    if (left <= 0)
      return std::nullopt;
    double weights = weightOfWaiting();
    for (const auto &[each, held] : inHand)
      weights += held.weight;
    const double share = std::min(left, std::max(kLeastSeconds, left * limits.workers * weight / weights));
    seconds = seconds > 0 ? std::min(seconds, share) : share;
  }
  std::erase(waiting, *job);
  opened.insert(jobs[*job].family);
  inHand[*job] = {weight, limits.now(), seconds};
  return Ticket{*job, seconds};
}

void TuneQueue::finish(size_t job) {
  const std::lock_guard lock(mutex);
  const Held held = inHand.at(job);
  doneWeight += held.weight;
  if (held.seconds > 0)
    beyondSeconds[measuredJobs++ % beyondSeconds.size()] = limits.now() - held.begin - held.seconds;
  inHand.erase(job);
  ++doneJobs;
}

void TuneQueue::stop() {
  const std::lock_guard lock(mutex);
  stopped = true;
}

std::vector<size_t> TuneQueue::left() const {
  const std::lock_guard lock(mutex);
  return waiting;
}

TuneQueue::State TuneQueue::state() const {
  const std::lock_guard lock(mutex);
  State state{doneJobs, total, inHand.size(), std::nullopt};
  if (doneWeight <= 0)
    return state;
  const double spent = limits.now() - begin;
  double weights = weightOfWaiting();
  for (const auto &[each, held] : inHand)
    weights += held.weight / 2; // half done, on average
  state.secondsLeft = spent / doneWeight * weights;
  if (limits.totalSeconds > 0)
    state.secondsLeft = std::min(*state.secondsLeft, std::max(limits.totalSeconds - spent, 0.0));
  return state;
}

} // namespace nsa
