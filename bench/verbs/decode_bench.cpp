#include "bench/verbs/decode_bench.h"

#include "bench/measure/timing.h"
#include "tools/reference/decode.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string_view>

namespace nsa::bench {
namespace {

// What stands beside our figures wherever they are shown: they are not of the same thing.
constexpr const char *kNote = "nsa-vibe reports 4250 to 5090 us for these lengths: of a whole module in fp32, with its "
                              "projections, gates and rotation, in PyTorch. Here a step is the attention alone, from "
                              "the new q, k and v to the output, with the cache's update.";

// Kernels of a step: a timed run launches sel and win by themselves, which share a launch else.
int launchesOf(const std::vector<nsa_part_time> &parts) {
  int launches = 0, attending = 0;
  for (const nsa_part_time &part : parts) {
    const std::string_view name = part.name;
    launches += part.launches;
    attending += name == "sel" || name == "win";
  }
  return launches - (attending == 2 ? 1 : 0);
}

// Replaces the keys and values of each branch by one tensor K and one tensor V.
void shareKeys(tools::OperatorInputs &history) {
  for (const auto &[name, both] :
       {std::pair(TensorName::kKSel, TensorName::kK), std::pair(TensorName::kVSel, TensorName::kV)}) {
    auto node = history.tensors.extract(name);
    if (node.empty())
      continue;
    node.key() = both;
    history.tensors.insert(std::move(node));
    for (const TensorName other : {both == TensorName::kK ? TensorName::kKWin : TensorName::kVWin,
                                   both == TensorName::kK ? TensorName::kKCmp : TensorName::kVCmp})
      history.tensors.erase(other);
  }
}

class DecodeBench {
public:
  DecodeBench(BenchDevice &device, const DecodeChoice &choice, PeerProcess *peers)
      : device(device), choice(choice), accelerator(device.accelerator()), peers(peers) {}

  Result<nlohmann::ordered_json> run() {
    nlohmann::ordered_json facts = {
        {"steps", choice.samples}, {"warm_ups", choice.warmUps}, {"tuned", choice.tuned}, {"note", kNote}};
    if (peers)
      facts["peers"] = peers->versions();
    BenchReport::Table table = {"heads",
                                "batch",
                                "S",
                                "step us = us_total",
                                "mean us = us_mean",
                                "worst us = us_worst",
                                "floor us = us_floor",
                                "dense us = us_dense",
                                "dense by = dense_by",
                                "warm L2 us = us_warm",
                                "empty kernels us = us_empty",
                                "cmp us = us_branch_cmp",
                                "sel us = us_branch_sel",
                                "win us = us_branch_win",
                                "rest us = us_rest",
                                "reads = reads_actual",
                                "expected = reads_expected"};
    if (std::ranges::any_of(choice.specs, [](const NamedSpec &named) { return named.spec.batchInvariant; }))
      table.insert(table.begin() + 4, {"invariant us = us_invariant", "invariant / step = cost_invariant"});
    NSA_ASSIGN_OR_RETURN(
        report, BenchReport::create(
                    device.engine(false), choice.results, "decode", std::move(facts), table,
                    {.columns = {"S", "ms_total", "ms_cmp", "ms_sel", "ms_win", "reads_actual", "reads_expected"},
                     .fileField = "csv"}));
    for (const NamedSpec &named : choice.specs)
      for (const int64_t batch : choice.batches)
        for (const int64_t tokens : choice.tokens)
          NSA_RETURN_IF_ERROR(measure(named, batch, tokens));
    return report->content();
  }

private:
  // In microseconds, in the order of the steps.
  Result<std::vector<double>> time(const tools::Recording &recording, bool cold) {
    std::vector<double> samples;
    for (int i = 0; i < choice.samples; ++i) {
      if (cold)
        NSA_RETURN_IF_ERROR(flushCaches(accelerator, device.flush(), i));
      NSA_ASSIGN_OR_RETURN(double milliseconds, accelerator.time([&] { return recording(); }));
      if (i >= choice.warmUps)
        samples.push_back(milliseconds * 1e3);
    }
    return samples;
  }

  // The median step in a plan with batch_invariant. It allocates a workspace of its own, so no step that was recorded
  // before may run afterwards.
  Result<double> timeInvariant(tools::DecodeRun &decode, int64_t tokens) {
    Spec spec = decode.spec();
    spec.batchInvariant = true;
    NSA_ASSIGN_OR_RETURN(tools::PlanHandle plan,
                         tools::createPlan(device.engine(false), spec, decode.maxima(), accelerator.stream()));
    NSA_RETURN_IF_ERROR(decode.allocateWorkspace(plan.get()));
    NSA_RETURN_IF_ERROR(decode.rewind(tokens));
    NSA_RETURN_IF_ERROR(decode.enqueue(plan.get()));
    NSA_ASSIGN_OR_RETURN(tools::Recording step, accelerator.record([&] { return decode.enqueue(plan.get()); }));
    NSA_RETURN_IF_ERROR(decode.rewind(tokens));
    NSA_ASSIGN_OR_RETURN(std::vector<double> steps, time(step, true));
    NSA_RETURN_IF_ERROR(tools::toStatus(nsa_plan_status(plan.get(), accelerator.stream(), nullptr)));
    return median(std::move(steps));
  }

  // The parts of the run whose sum is the median: they add up.
  Result<std::vector<nsa_part_time>> timeParts(const tools::DecodeRun &decode, const nsa_plan *plan) {
    std::vector<std::pair<double, std::vector<nsa_part_time>>> runs;
    for (int i = 0; i < choice.samples; ++i) {
      NSA_RETURN_IF_ERROR(flushCaches(accelerator, device.flush(), i));
      NSA_ASSIGN_OR_RETURN(std::vector<nsa_part_time> parts, decode.runTimed(plan));
      const double sum = std::accumulate(parts.begin(), parts.end(), 0.0,
                                         [](double total, const nsa_part_time &p) { return total + p.milliseconds; });
      if (i >= choice.warmUps)
        runs.emplace_back(sum, std::move(parts));
    }
    assert(!runs.empty() && "each step was a warm-up");
    const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
    std::nth_element(runs.begin(), middle, runs.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    return std::move(middle->second);
  }

  // What every group of every sequence has read in the last step.
  Result<int64_t> readsBehind(const tools::DecodeRun &decode, const Spec &spec, int64_t tokens) const {
    NSA_ASSIGN_OR_RETURN(tools::HostTensor reads, decode.download(TensorName::kReads));
    const auto *counts = reinterpret_cast<const int32_t *>(reads.bytes.data());
    for (int64_t i = 0; i < reads.elements(); ++i) {
      const int64_t behind = choice.newTokens - 1 - i / spec.kvHeads % choice.newTokens; // newer tokens of the step
      if (const int64_t right = readsOf(spec, tokens - behind); counts[i] != right)
        return Status::error(ErrorCode::kInternal, "a step at " + std::to_string(tokens) + " tokens has read " +
                                                       std::to_string(counts[i]) + " of them and blocks, not " +
                                                       std::to_string(right));
    }
    return int64_t{counts[reads.elements() - 1]};
  }

  // Dense decoding over as many keys as the first step has: the fastest implementation, and what each of them took. All
  // new tokens see all keys.
  void addDense(nlohmann::ordered_json &row, int64_t tokens) {
    std::vector<int64_t> queries(static_cast<size_t>(choice.newTokens));
    std::iota(queries.begin(), queries.end(), 0);
    nlohmann::json question = {
        {"op", "dense_decode"}, {"tokens", tokens + choice.newTokens}, {"window", 0}, {"checked_queries", queries}};
    for (const char *field : {"dtype", "query_heads", "kv_heads", "qk_dim", "v_dim", "batch", "new_tokens"})
      question[field] = row[field];
    const Result<PeerProcess::Peers> prepared = peers->prepare(question, device.flush());
    std::vector<PeerProcess::Absent> absent;
    if (prepared) {
      absent = prepared->absent;
      const std::vector<Result<Times>> times = measureInTurns(allOf(prepared->contenders), choice.samples);
      for (size_t i = 0; i < times.size(); ++i) {
        const Contender &contender = *prepared->contenders[i];
        if (!times[i]) {
          absent.push_back({contender.name(), times[i].status().error().message});
          continue;
        }
        nlohmann::ordered_json entry = {{"implementation", contender.name()}, {"us", times[i]->medianMs * 1e3}};
        entry.update(contender.facts());
        if (row["us_dense"].is_null() || entry["us"] < row["us_dense"]) {
          row["us_dense"] = entry["us"];
          row["dense_by"] = contender.name();
        }
        row["dense"].push_back(std::move(entry));
      }
    } else {
      absent.push_back({"peers", prepared.status().error().message});
    }
    for (const PeerProcess::Absent &one : absent)
      row["dense"].push_back({{"implementation", one.name}, {"note", "does not serve: " + one.reason}});
  }

  Status measure(const NamedSpec &named, int64_t batch, int64_t tokens) {
    if (choice.progress)
      choice.progress("decode " + named.name + ", batch " + std::to_string(batch) + ", " + std::to_string(tokens) +
                      " tokens" + (choice.tuned ? ", with tuning" : ""));
    Spec spec = named.spec;
    spec.batchInvariant = false;
    NSA_ASSIGN_OR_RETURN(
        const std::unique_ptr<FilledDecode> filled,
        FilledDecode::make(accelerator, spec, choice.maximaOf(batch, tokens), tokens, {TensorName::kReads}));
    tools::DecodeRun &decode = *filled->run;
    NSA_ASSIGN_OR_RETURN(tools::PlanHandle plan, tools::createPlan(device.engine(choice.tuned), decode.spec(),
                                                                   decode.maxima(), accelerator.stream()));
    NSA_RETURN_IF_ERROR(decode.allocateWorkspace(plan.get()));
    // What is loaded at the first use must not be captured; the cache begins again afterwards.
    NSA_RETURN_IF_ERROR(decode.enqueue(plan.get()));
    NSA_ASSIGN_OR_RETURN(tools::Recording step, accelerator.record([&] { return decode.enqueue(plan.get()); }));
    auto check = [&] { return tools::toStatus(nsa_plan_status(plan.get(), accelerator.stream(), nullptr)); };

    NSA_RETURN_IF_ERROR(decode.rewind(tokens));
    NSA_ASSIGN_OR_RETURN(const std::vector<double> steps, time(step, true));
    const double cold = median(steps);
    const PeriodTimes period = periodTimes(
        steps, spec.compresses() ? spec.cmpStride / std::gcd(int64_t{spec.cmpStride}, choice.newTokens) : 1);
    NSA_RETURN_IF_ERROR(check());
    const int64_t now = tokens + choice.samples * choice.newTokens;
    NSA_ASSIGN_OR_RETURN(int64_t reads, readsBehind(decode, spec, now));
    std::optional<double> warm, empty; // of a GPU: on the CPU nothing is cold, and there are no empty kernels
    if (accelerator.isCuda()) {
      NSA_RETURN_IF_ERROR(decode.rewind(tokens));
      NSA_ASSIGN_OR_RETURN(const std::vector<double> warmSteps, time(step, false));
      warm = median(warmSteps);
    }
    NSA_RETURN_IF_ERROR(decode.rewind(tokens));
    NSA_ASSIGN_OR_RETURN(std::vector<nsa_part_time> parts, timeParts(decode, plan.get()));
    NSA_RETURN_IF_ERROR(check());
    const int launches = launchesOf(parts);
    if (accelerator.isCuda()) {
      NSA_ASSIGN_OR_RETURN(tools::Recording emptyKernels, accelerator.recordEmptyKernels(launches));
      NSA_ASSIGN_OR_RETURN(const std::vector<double> emptySteps, time(emptyKernels, true));
      empty = median(emptySteps);
    }
    const BranchTimes branches = branchTimes(parts);
    const nlohmann::json description = tools::describePlan(plan.get());
    const bool single = choice.specs.size() == 1 && choice.batches.size() == 1;
    nlohmann::ordered_json row = {{"csv", single ? "decode" : "decode_" + named.name + "_b" + std::to_string(batch)},
                                  {"heads", named.name},
                                  {"dtype", dtypeName(spec.dtype)},
                                  {"query_heads", spec.queryHeads},
                                  {"kv_heads", spec.kvHeads},
                                  {"qk_dim", spec.qkDim},
                                  {"v_dim", spec.vDim},
                                  {"batch", batch},
                                  {"new_tokens", choice.newTokens},
                                  {"page_size", spec.pageSize},
                                  {"S", tokens},
                                  {"max_tokens", decode.maxima().seqlenK},
                                  {"ms_total", cold / 1e3},
                                  {"ms_cmp", branches.cmp / 1e3},
                                  {"ms_sel", branches.sel / 1e3},
                                  {"ms_win", branches.win / 1e3},
                                  {"ms_rest", branches.rest / 1e3},
                                  {"ms_timed", (branches.cmp + branches.sel + branches.win + branches.rest) / 1e3},
                                  {"reads_actual", reads},
                                  {"reads_expected", reference::expectedReads(spec, now)},
                                  {"launches", launches},
                                  {"us_total", cold},
                                  {"us_mean", period.mean},
                                  {"us_worst", period.worst},
                                  {"us_floor", nullptr},
                                  {"us_dense", nullptr},
                                  {"dense_by", nullptr},
                                  {"us_warm", nullptr},
                                  {"us_empty", nullptr},
                                  {"us_branch_cmp", branches.cmp},
                                  {"us_branch_sel", branches.sel},
                                  {"us_branch_win", branches.win},
                                  {"us_rest", branches.rest}};
    if (const std::optional<Roof> roof = roofOf(report->deviceText("name"), spec.dtype))
      row["us_floor"] = bytesOf(spec, batch, now) / (roof->terabytesPerSecond * 1e6);
    if (warm)
      row["us_warm"] = *warm;
    if (empty)
      row["us_empty"] = *empty;
    for (const nsa_part_time &part : parts)
      row[std::string("us_part_") + part.name] = part.milliseconds * 1e3;
    for (const nlohmann::json &launch : description["launches"])
      row["kernels"].push_back(
          {{"operator", launch["operator"]}, {"template", launch["template"]}, {"config", launch["config"]}});
    if (named.spec.batchInvariant) {
      NSA_ASSIGN_OR_RETURN(const double invariant, timeInvariant(decode, tokens));
      row["us_invariant"] = invariant;
      row["cost_invariant"] = invariant / cold;
    }
    if (peers)
      addDense(row, tokens);
    return report->add(std::move(row));
  }

  BenchDevice &device;
  const DecodeChoice &choice;
  tools::Accelerator &accelerator;
  PeerProcess *peers;
  std::optional<BenchReport> report;
};

} // namespace

int64_t DecodeChoice::tokensNeeded(int64_t tokens) const { return tokens + std::max(samples, 1) * newTokens; }

Maxima DecodeChoice::maximaOf(int64_t batch, int64_t tokens) const {
  return {.batch = batch,
          .tokensQ = batch * newTokens,
          .seqlenQ = newTokens,
          .seqlenK = std::max(maxTokens, tokensNeeded(tokens))};
}

Result<std::unique_ptr<FilledDecode>> FilledDecode::make(tools::Accelerator &accelerator, const Spec &spec,
                                                         const Maxima &maxima, int64_t cached,
                                                         const std::set<TensorName> &wanted) {
  Spec whole = spec;
  whole.op = withoutCache(spec.op);
  whole.layout = Layout::kDense;
  auto filled = std::make_unique<FilledDecode>();
  filled->counts.assign(static_cast<size_t>(maxima.batch), maxima.seqlenQ);
  filled->history = tools::drawInputs(whole, {filled->counts, filled->counts}, 1);
  shareKeys(filled->history);
  NSA_ASSIGN_OR_RETURN(
      filled->run,
      tools::DecodeRun::open(
          accelerator, filled->history,
          {.room = maxima.seqlenK, .mostNew = maxima.seqlenQ, .pageSize = spec.pageSize, .isShared = true}, wanted));
  NSA_RETURN_IF_ERROR(filled->run->pretend(cached, 1));
  NSA_RETURN_IF_ERROR(filled->run->feed(filled->counts));
  return filled;
}

int64_t readsOf(const Spec &spec, int64_t tokens) {
  const int64_t own = (tokens - 1) / spec.selBlock, others = std::min<int64_t>(spec.selCount - 1, own);
  int64_t reads = 0;
  if (spec.hasBranch(kBranchCmp))
    reads += spec.compressedBlocks(tokens);
  if (spec.hasBranch(kBranchSel))
    reads += others * spec.selBlock + tokens - own * spec.selBlock;
  if (spec.hasBranch(kBranchWin))
    reads += std::min<int64_t>(spec.window, tokens);
  return reads;
}

double bytesOf(const Spec &spec, int64_t batch, int64_t tokens) {
  const double rows = static_cast<double>(batch) * spec.kvHeads * static_cast<double>(readsOf(spec, tokens));
  return rows * (spec.qkDim + spec.vDim) * static_cast<double>(dtypeBytes(spec.dtype));
}

PeriodTimes periodTimes(const std::vector<double> &samples, int64_t period) {
  std::vector<std::vector<double>> places(std::min(samples.size(), static_cast<size_t>(period)));
  for (size_t i = 0; i < samples.size(); ++i)
    places[i % places.size()].push_back(samples[i]);
  PeriodTimes times;
  for (std::vector<double> &place : places) {
    const double own = median(std::move(place));
    times.mean += own / static_cast<double>(places.size());
    times.worst = std::max(times.worst, own);
  }
  return times;
}

BranchTimes branchTimes(const std::vector<nsa_part_time> &parts) {
  BranchTimes times;
  for (const nsa_part_time &part : parts) {
    const std::string_view name = part.name;
    const auto isOneOf = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    double &branch = isOneOf({"compress", "cmp"})                             ? times.cmp
                     : isOneOf({"scores", "rank", "select", "ascend", "sel"}) ? times.sel
                     : name == "win"                                          ? times.win
                                                                              : times.rest;
    branch += part.milliseconds * 1e3;
  }
  return times;
}

Result<nlohmann::ordered_json> benchDecode(BenchDevice &device, const DecodeChoice &choice, PeerProcess *peers) {
  return DecodeBench(device, choice, peers).run();
}

} // namespace nsa::bench
