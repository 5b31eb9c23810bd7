// nsa_bench_forward: the whole forward pass of Native Sparse Attention on one device, default and tuned, with the time
// of each of its parts, beside dense attention of the same heads: ours and what torch carries when python3 has it.
#include "bench/bench_case.h"
#include "bench/bench_program.h"
#include "bench/bench_report.h"
#include "bench/machine_facts.h"
#include "bench/peer_process.h"
#include "bench/plan_contender.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace nsa::bench {
namespace {

// More than any L2; written before each sample.
constexpr size_t kFlushBytes = size_t{192} << 20;

struct Flags : CommonFlags {
  std::vector<std::string> heads;
  std::vector<int64_t> tokens;
  std::string dtype = "bf16";
  int samples = 7;
  double tuneBudget = 20;
  bool noTune = false, noPeers = false;
};

struct Geometry {
  const char *name;
  int32_t queryHeads, kvHeads, qkDim, vDim;
};
constexpr Geometry kGeometries[] = {
    {"nsa128", 64, 4, 128, 128}, {"nsa192", 64, 4, 192, 128}, {"gqa4", 32, 8, 128, 128}, {"mha1", 16, 16, 128, 128}};
constexpr Geometry kSmall = {"small", 8, 1, 64, 64};

BenchCase caseOf(Operator op, const Geometry &geometry, DType dtype, int64_t tokens) {
  BenchCase result;
  result.name = geometry.name;
  result.spec.op = op;
  result.spec.dtype = dtype;
  result.spec.queryHeads = geometry.queryHeads;
  result.spec.kvHeads = geometry.kvHeads;
  result.spec.qkDim = geometry.qkDim;
  result.spec.vDim = geometry.vDim;
  result.maxima = {.batch = 1, .tokensQ = tokens, .seqlenQ = tokens, .seqlenK = tokens};
  return result;
}

class ForwardBench {
public:
  explicit ForwardBench(const Flags &flags) : flags(flags) {}

  Status run() {
    NSA_RETURN_IF_ERROR(open());
    const Result<DType> dtype = parseDType(flags.dtype);
    if (!dtype)
      return dtype.status();
    std::vector<Geometry> geometries(std::begin(kGeometries), std::end(kGeometries));
    std::vector<int64_t> lengths = {4096, 8192, 16384, 65536};
    if (!accelerator->isCuda() || flags.quick) {
      geometries = {kSmall};
      lengths = {flags.quick ? 512 : 4096};
    }
    if (!flags.tokens.empty())
      lengths = flags.tokens;
    bool any = false;
    for (const Geometry &geometry : geometries)
      for (int64_t tokens : lengths) {
        if (!flags.heads.empty() &&
            std::find(flags.heads.begin(), flags.heads.end(), geometry.name) == flags.heads.end())
          continue;
        any = true;
        NSA_RETURN_IF_ERROR(measure(geometry, *dtype, tokens));
      }
    return any ? Status::ok() : Status::invalid("--heads", "", "leaves no shape of this device");
  }

private:
  Status open() {
    Result<std::unique_ptr<tools::Accelerator>> opened = tools::Accelerator::open(flags.device);
    if (!opened)
      return opened.status();
    accelerator = std::move(*opened);
    for (const bool tuned : {false, true}) {
      tools::EngineSettings settings = flags.engineSettings(tuned ? NSA_MISS_TUNE : NSA_MISS_DEFAULT, ":memory:");
      settings.tuneBudgetSeconds = flags.tuneBudget;
      Result<tools::EngineHandle> engine = tools::createEngine(settings);
      if (!engine)
        return engine.status();
      (tuned ? tuning : guessing) = std::move(*engine);
    }
    Result<nlohmann::json> machine = machineFacts(guessing.get());
    if (!machine)
      return machine.status();
    nlohmann::ordered_json facts = {{"machine", *machine}, {"samples", flags.samples}};
    if (accelerator->isCuda()) {
      Result<tools::Buffer> buffer = accelerator->allocate(kFlushBytes);
      if (!buffer)
        return buffer.status();
      flush = std::move(*buffer);
    }
    if (accelerator->isCuda() && !flags.noPeers) {
      std::error_code error;
      const auto script =
          std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "peers/torch_attention.py";
      Result<std::unique_ptr<PeerProcess>> started = PeerProcess::start(script.string(), flags.device);
      if (started)
        peers = std::move(*started);
      else
        std::printf("Other implementations are not measured: %s\n", started.status().toString().c_str());
    }
    if (peers)
      facts["peers"] = peers->versions();
    Result<BenchReport> created = BenchReport::create(flags.results, "forward", facts,
                                                      {{"heads", "heads"},
                                                       {"tokens", "tokens"},
                                                       {"implementation", "implementation"},
                                                       {"median ms", "median_ms"},
                                                       {"compress", "ms_compress"},
                                                       {"cmp", "ms_cmp"},
                                                       {"select", "ms_select"},
                                                       {"sel", "ms_sel"},
                                                       {"win", "ms_win"},
                                                       {"combine", "ms_combine"}});
    if (!created)
      return created.status();
    report.emplace(std::move(*created));
    return Status::ok();
  }

  Status measure(const Geometry &geometry, DType dtype, int64_t tokens) {
    const BenchCase nsaCase = caseOf(Operator::kNsa, geometry, dtype, tokens);
    const tools::OperatorInputs inputs = tools::drawInputs(nsaCase.spec, {{tokens}, {tokens}}, 1);
    Result<tools::DeviceOperator> job = tools::DeviceOperator::upload(
        *accelerator, inputs, {TensorName::kBlockList, TensorName::kKComp, TensorName::kVComp});
    if (!job)
      return job.status();
    const Arena arena{*accelerator, inputs, *job, flush};
    std::vector<std::unique_ptr<PlanContender>> ours;
    for (const bool tuned : {false, true}) {
      if (tuned && flags.noTune)
        continue;
      Result<std::unique_ptr<PlanContender>> made =
          PlanContender::make(tuned ? "nsa tuned" : "nsa default", (tuned ? tuning : guessing).get(), arena);
      if (!made)
        return made.status();
      ours.push_back(std::move(*made));
    }
    std::vector<Contender *> everybody;
    for (const auto &contender : ours)
      everybody.push_back(contender.get());
    std::vector<std::unique_ptr<Contender>> others;
    if (peers) {
      Result<PeerProcess::Peers> prepared =
          peers->prepare(caseOf(Operator::kDense, geometry, dtype, tokens), flush.size());
      if (prepared)
        others = std::move(prepared->contenders);
      else
        std::printf("Other implementations are not measured here: %s\n", prepared.status().toString().c_str());
    }
    for (const auto &contender : others)
      everybody.push_back(contender.get());
    const std::vector<Result<Times>> times = measureInTurns(everybody, flags.samples);
    for (size_t i = 0; i < everybody.size(); ++i) {
      if (!times[i] && i < ours.size())
        return times[i].status();
      if (!times[i])
        continue;
      nlohmann::ordered_json row = caseFields(nsaCase);
      row["op"] = i < ours.size() ? "nsa" : "dense";
      row["window"] = nsaCase.spec.window;
      row["implementation"] = everybody[i]->name();
      row["median_ms"] = times[i]->medianMs;
      row["fastest_ms"] = times[i]->fastestMs;
      row["slowest_ms"] = times[i]->slowestMs;
      std::string partsText;
      if (i < ours.size()) {
        Result<nlohmann::ordered_json> parts = ours[i]->parts(3);
        if (!parts)
          return parts.status();
        for (const auto &[name, value] : parts->items())
          partsText += " " + name.substr(3) + " " + std::to_string(value.get<double>()).substr(0, 6);
        row.update(*parts);
      }
      row.update(everybody[i]->facts());
      std::printf("%-7s T=%-6lld %-16s %9.3f ms (%.3f to %.3f)%s\n", geometry.name, static_cast<long long>(tokens),
                  everybody[i]->name().c_str(), times[i]->medianMs, times[i]->fastestMs, times[i]->slowestMs,
                  partsText.c_str());
      std::fflush(stdout);
      NSA_RETURN_IF_ERROR(report->add(std::move(row)));
    }
    return Status::ok();
  }

  const Flags &flags;
  std::unique_ptr<tools::Accelerator> accelerator;
  tools::EngineHandle guessing, tuning;
  tools::Buffer flush;
  std::unique_ptr<PeerProcess> peers;
  std::optional<BenchReport> report;
};

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  nsa::bench::BenchProgram program("forward", "Measures the whole forward pass on one device.", flags,
                                   "One small shape");
  program.addDevice();
  program.addCount("--samples", flags.samples, "Samples of each implementation", 1, 10000);
  program.addTuneBudget(flags.tuneBudget);
  CLI::App &options = program.options();
  options.add_option("--heads", flags.heads, "Only these: nsa128, nsa192, gqa4, mha1")
      ->delimiter(',')
      ->type_name("LIST");
  options.add_option("--tokens", flags.tokens, "Only these lengths")->delimiter(',')->type_name("LIST");
  options.add_option("--dtype", flags.dtype, "bf16, fp16 or fp32")->capture_default_str()->type_name("TYPE");
  options.add_flag("--no-peers", flags.noPeers, "Only this library");
  options.add_flag("--no-tune", flags.noTune, "Only the compiler's best guess");
  return program.run(argc, argv, [&] { return nsa::bench::ForwardBench(flags).run(); });
}
