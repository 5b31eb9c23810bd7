// nsa_bench_decode: one decoding step, captured once and replayed (on the CPU: called again), from a cache that holds a
// given number of tokens. On a GPU each step begins with a cold L2, and its time stands beside that of as many kernels
// that do nothing. Sequences grow by what is measured: what was captured serves all lengths.
#include "bench/bench_program.h"
#include "bench/bench_report.h"
#include "bench/machine_facts.h"
#include "bench/median.h"
#include "tools/support/decode_run.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace nsa::bench {
namespace {

// More than any L2; written before each step.
constexpr size_t kFlushBytes = size_t{192} << 20;
constexpr int kWarmUps = 8;

struct Flags : CommonFlags {
  std::vector<std::string> heads;
  std::vector<int64_t> tokens, batches;
  int samples = 40;
  int newTokens = 1;
  int32_t pageSize = 0;
  bool tune = false;
  double tuneBudget = 20;
};

struct Geometry {
  const char *name;
  int32_t queryHeads, kvHeads, qkDim, vDim;
  std::vector<int64_t> batches, tokens;
};

std::vector<Geometry> geometries(bool cuda, bool quick) {
  if (quick)
    return {{"small", 8, 1, 64, 64, {1}, {512}}};
  if (!cuda)
    return {{"small", 8, 1, 64, 64, {1}, {4096}}, {"seed", 8, 2, 32, 32, {1}, {512, 4096}}};
  return {{"nsa128", 64, 4, 128, 128, {1, 64}, {4096, 16384, 65536}},
          {"nsa192", 64, 4, 192, 128, {1, 64}, {4096, 65536}},
          {"gqa4", 32, 8, 128, 128, {1, 64}, {4096, 65536}},
          {"mha1", 16, 16, 128, 128, {1}, {4096, 65536}},
          {"seed", 8, 2, 32, 32, {1}, {512, 1024, 2048, 4096}}};
}

class DecodeBench {
public:
  explicit DecodeBench(const Flags &flags) : flags(flags) {}

  Status run() {
    NSA_RETURN_IF_ERROR(open());
    bool any = false;
    for (const Geometry &geometry : geometries(accelerator->isCuda(), flags.quick)) {
      if (!flags.heads.empty() && std::find(flags.heads.begin(), flags.heads.end(), geometry.name) == flags.heads.end())
        continue;
      for (int64_t batch : flags.batches.empty() ? geometry.batches : flags.batches)
        for (int64_t tokens : flags.tokens.empty() ? geometry.tokens : flags.tokens) {
          any = true;
          NSA_RETURN_IF_ERROR(measure(geometry, batch, tokens));
        }
    }
    return any ? Status::ok() : Status::invalid("--heads", "", "leaves no shape of this device");
  }

private:
  Status open() {
    Result<std::unique_ptr<tools::Accelerator>> opened = tools::Accelerator::open(flags.device);
    if (!opened)
      return opened.status();
    accelerator = std::move(*opened);
    tools::EngineSettings settings = flags.engineSettings(flags.tune ? NSA_MISS_TUNE : NSA_MISS_DEFAULT, ":memory:");
    settings.tuneBudgetSeconds = flags.tuneBudget;
    Result<tools::EngineHandle> created = tools::createEngine(settings);
    if (!created)
      return created.status();
    engine = std::move(*created);
    if (accelerator->isCuda()) {
      Result<tools::Buffer> buffer = accelerator->allocate(kFlushBytes);
      if (!buffer)
        return buffer.status();
      flush = std::move(*buffer);
    }
    Result<nlohmann::json> machine = machineFacts(engine.get());
    if (!machine)
      return machine.status();
    Result<BenchReport> made = BenchReport::create(
        flags.results, "decode", {{"machine", *machine}, {"samples", flags.samples}, {"tuned", flags.tune}},
        {{"heads", "heads"},
         {"batch", "batch"},
         {"tokens", "tokens"},
         {"step us", "median_us"},
         {"empty kernels us", "empty_us"},
         {"warm L2 us", "warm_us"},
         {"append", "us_append"},
         {"compress", "us_compress"},
         {"cmp", "us_cmp"},
         {"select", "us_select"},
         {"sel", "us_sel"},
         {"win", "us_win"},
         {"combine", "us_combine"}});
    if (!made)
      return made.status();
    report.emplace(std::move(*made));
    return Status::ok();
  }

  // Medians, in microseconds, of replaying.
  Result<double> time(const tools::Recording &recording, bool cold) {
    std::vector<double> samples;
    for (int i = 0; i < kWarmUps + flags.samples; ++i) {
      if (cold && flush.size())
        NSA_RETURN_IF_ERROR(accelerator->fill(flush.data(), static_cast<unsigned char>(i), flush.size()));
      Result<double> milliseconds = accelerator->time([&] { return recording.replay(); });
      if (!milliseconds)
        return milliseconds.status();
      if (i >= kWarmUps)
        samples.push_back(*milliseconds * 1e3);
    }
    return median(std::move(samples));
  }

  Status measure(const Geometry &geometry, int64_t batch, int64_t tokens) {
    Spec spec;
    spec.op = Operator::kNsa;
    spec.queryHeads = geometry.queryHeads;
    spec.kvHeads = geometry.kvHeads;
    spec.qkDim = geometry.qkDim;
    spec.vDim = geometry.vDim;
    const std::vector<int64_t> lengths(static_cast<size_t>(batch), flags.newTokens);
    tools::OperatorInputs history = tools::drawInputs(spec, {lengths, lengths}, 1);
    // One K and V for all branches: the least memory.
    for (const auto &[name, both] :
         {std::pair(TensorName::kKSel, TensorName::kK), std::pair(TensorName::kVSel, TensorName::kV)}) {
      auto node = history.tensors.extract(name);
      node.key() = both;
      history.tensors.insert(std::move(node));
    }
    for (const TensorName name : {TensorName::kKWin, TensorName::kVWin, TensorName::kKCmp, TensorName::kVCmp})
      history.tensors.erase(name);
    const int64_t steps = 3 * (kWarmUps + flags.samples) + 8;
    Result<tools::DecodeRun> decode = tools::DecodeRun::open(*accelerator, history,
                                                             {.room = tokens + steps * flags.newTokens,
                                                              .mostNew = flags.newTokens,
                                                              .pageSize = flags.pageSize,
                                                              .isShared = true},
                                                             {TensorName::kReads});
    if (!decode)
      return decode.status();
    NSA_RETURN_IF_ERROR(decode->pretend(tokens, 1));
    Result<tools::PlanHandle> plan =
        tools::createPlan(engine.get(), decode->spec(), decode->maxima(), accelerator->stream());
    if (!plan)
      return plan.status();
    NSA_RETURN_IF_ERROR(decode->allocateWorkspace(plan->get()));
    NSA_RETURN_IF_ERROR(decode->feed(lengths));
    NSA_RETURN_IF_ERROR(decode->enqueue(plan->get()));
    nsa_error error{};
    NSA_RETURN_IF_ERROR(tools::toStatus(nsa_plan_status(plan->get(), accelerator->stream(), &error), error));

    Result<std::unique_ptr<tools::Recording>> step = accelerator->record([&] { return decode->enqueue(plan->get()); });
    if (!step)
      return step.status();
    Result<double> cold = time(**step, true);
    Result<double> warm = cold ? time(**step, false) : cold;
    if (!warm)
      return warm.status();
    const nlohmann::json description = tools::describePlan(plan->get());
    const auto launches = static_cast<int>(description["launches"].size());
    Result<std::unique_ptr<tools::Recording>> empty = accelerator->recordEmptyKernels(launches);
    if (!empty)
      return empty.status();
    Result<double> floor = time(**empty, true);
    if (!floor)
      return floor.status();
    nlohmann::ordered_json row = {{"heads", geometry.name},
                                  {"query_heads", spec.queryHeads},
                                  {"kv_heads", spec.kvHeads},
                                  {"qk_dim", spec.qkDim},
                                  {"v_dim", spec.vDim},
                                  {"batch", batch},
                                  {"tokens", tokens},
                                  {"new_tokens", flags.newTokens},
                                  {"page_size", flags.pageSize},
                                  {"launches", launches},
                                  {"median_us", *cold},
                                  {"warm_us", *warm},
                                  {"empty_us", *floor}};
    // Parts one by one, each from a cold L2 or behind the one before.
    std::vector<nsa_part_time> parts;
    for (int i = 0; i < 3; ++i) {
      if (flush.size())
        NSA_RETURN_IF_ERROR(accelerator->fill(flush.data(), static_cast<unsigned char>(i), flush.size()));
      Result<std::vector<nsa_part_time>> timed = decode->runTimed(plan->get());
      if (!timed)
        return timed.status();
      parts = std::move(*timed);
    }
    std::string text;
    for (const nsa_part_time &part : parts) {
      row[std::string("us_") + part.name] = part.milliseconds * 1e3;
      char figure[64];
      std::snprintf(figure, sizeof figure, " %s %.1f", part.name, part.milliseconds * 1e3);
      text += figure;
    }
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const nlohmann::json &launch : description["launches"])
      kernels.push_back(
          {{"operator", launch["operator"]}, {"template", launch["template"]}, {"config", launch["config"]}});
    row["kernels"] = std::move(kernels);
    NSA_RETURN_IF_ERROR(tools::toStatus(nsa_plan_status(plan->get(), accelerator->stream(), &error), error));
    std::printf("%-7s B=%-3lld S=%-6lld %8.1f us (warm %.1f, %d empty kernels %.1f)%s\n", geometry.name,
                static_cast<long long>(batch), static_cast<long long>(tokens), *cold, *warm, launches, *floor,
                text.c_str());
    std::fflush(stdout);
    return report->add(std::move(row));
  }

  const Flags &flags;
  std::unique_ptr<tools::Accelerator> accelerator;
  tools::EngineHandle engine;
  tools::Buffer flush;
  std::optional<BenchReport> report;
};

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  nsa::bench::BenchProgram program("decode", "Measures decoding steps on one device.", flags, "One small shape");
  program.addDevice();
  program.addCount("--samples", flags.samples, "Steps of each shape", 1, 10000);
  program.addCount("--new-tokens", flags.newTokens, "Tokens of a step", 1, 64);
  program.addTuneBudget(flags.tuneBudget);
  CLI::App &options = program.options();
  options.add_option("--heads", flags.heads, "Only these: nsa128, nsa192, gqa4, mha1, seed")
      ->delimiter(',')
      ->type_name("LIST");
  options.add_option("--tokens", flags.tokens, "Only these lengths")->delimiter(',')->type_name("LIST");
  options.add_option("--batch", flags.batches, "Only these numbers of sequences")->delimiter(',')->type_name("LIST");
  options.add_option("--page-size", flags.pageSize, "Tokens of a page; 0: no pages")->type_name("N");
  options.add_flag("--tune", flags.tune, "Tune the kernels first");
  return program.run(argc, argv, [&] { return nsa::bench::DecodeBench(flags).run(); });
}
