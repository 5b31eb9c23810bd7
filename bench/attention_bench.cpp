// nsa_bench_attention: speed of the attention operators on one device, with the compiler's best guess and with the
// tuner's winner, beside what torch carries when python3 has it, written into a folder of results row by row.
#include "bench/measure/bench_device.h"
#include "bench/measure/bench_program.h"
#include "bench/measure/bench_report.h"
#include "bench/measure/fma_peak.h"
#include "bench/measure/machine_facts.h"
#include "bench/measure/peer_process.h"
#include "bench/measure/timing.h"
#include "runtime/engine/choices/routes.h"
#include "tools/support/forward_pass.h"
#include "tools/support/operator_work.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace nsa::bench {
namespace {

struct Flags : CommonFlags {
  std::string peers;
  std::vector<std::string> dtypes = {"bf16"}, heads, ops = {"dense", "window", "cmp"}, templateDirs;
  std::vector<int64_t> tokens;
  int samples = 21;
  double tuneBudget = 60;
  bool noTune = false, noPeers = false;
};

// The default of other kernels than the library's own, in turns with these.
struct Variant {
  std::string name;
  tools::EngineHandle engine;
};
constexpr const char *kGenerated = "nsa generated";

// "b" of "a/b" and of "a/b/".
std::string folderName(const std::filesystem::path &folder) {
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

class AttentionBench {
public:
  explicit AttentionBench(const Flags &flags) : flags(flags) {}

  Status run() {
    const double start = wallMs();
    NSA_RETURN_IF_ERROR(open());
    std::vector<BenchCase> cases = benchCases(device->accelerator().isCuda(), flags.quick);
    std::erase_if(cases, [&](const BenchCase &benchCase) { return !isWanted(benchCase); });
    if (cases.empty())
      return Status::invalid("--heads, --ops, --tokens", "", "leave no shape of this device");
    for (const BenchCase &benchCase : cases)
      for (const std::string &name : flags.dtypes) {
        NSA_ASSIGN_OR_RETURN(DType dtype, parseDType(name));
        BenchCase typed = benchCase;
        typed.spec.dtype = dtype;
        NSA_RETURN_IF_ERROR(measureCase(typed));
      }
    const double seconds = (wallMs() - start) * 1e-3;
    std::printf("%.0f s in all, of which the tuner took %.0f\n", seconds, tuneSeconds);
    return report->setFact("seconds", {{"all", std::round(seconds)}, {"tuning", std::round(tuneSeconds)}});
  }

private:
  bool isWanted(const BenchCase &benchCase) const {
    auto among = [](const auto &wanted, const auto &value) {
      return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
    };
    return among(flags.heads, benchCase.name) && among(flags.ops, operatorName(benchCase.spec.op)) &&
           among(flags.tokens, benchCase.maxima.seqlenK);
  }

  Status open() {
    tools::EngineSettings settings = flags.engineSettings(NSA_MISS_DEFAULT);
    settings.tuneBudgetSeconds = flags.tuneBudget;
    NSA_ASSIGN_OR_RETURN(device, BenchDevice::open(std::move(settings)));
    NSA_RETURN_IF_ERROR(openVariants());

    NSA_ASSIGN_OR_RETURN(const nlohmann::json machine, machineFacts(device->engine(false)));
    deviceName = machine["device"].value("name", "");
    nlohmann::ordered_json facts = {{"machine", machine}, {"samples", flags.samples}};
    if (!device->accelerator().isCuda()) {
      const FmaPeak peak = measureFmaPeak(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
      facts["fma_peak"] = {
          {"vector_bits", peak.vectorBits}, {"threads", peak.threads}, {"gflops", std::round(peak.gflops)}};
      cpuRoof.tflops = peak.gflops / 1000;
    }
    if (const std::optional<Roof> roof = roofOf(deviceName, DType::kBf16))
      facts["roof"] = {{"tflops", roof->tflops}, {"terabytes_per_second", roof->terabytesPerSecond}};
    openPeers();
    if (peers)
      facts["peers"] = peers->versions();
    const bool ofGradients = std::ranges::all_of(flags.ops, [](const std::string &op) { return op.ends_with("_bwd"); });
    const std::string name = std::string(ofGradients ? "gradients" : "attention") +
                             (flags.heads.size() == 1 ? "_" + flags.heads.front() : "");
    NSA_ASSIGN_OR_RETURN(report, BenchReport::create(flags.results, name, facts));
    return Status::ok();
  }

  // The generated kernels, and the kernels of changed templates.
  Status openVariants() {
    auto open = [this](const std::string &name, const std::string &variant, const std::string &templateDir) -> Status {
      for (const Variant &other : variants)
        if (other.name == name)
          return Status::invalid("--templates", templateDir, "has a name that another contender has: " + name);
      tools::EngineSettings settings = tools::withNothingStored(flags.engineSettings(NSA_MISS_DEFAULT));
      settings.forceVariant = variant;
      settings.templateDir = templateDir;
      Result<tools::EngineHandle> engine = tools::createEngine(settings);
      if (engine)
        variants.push_back({name, std::move(*engine)});
      return engine.status();
    };
    NSA_RETURN_IF_ERROR(open(kGenerated, std::string(kTiledTemplate), ""));
    for (const std::string &folder : flags.templateDirs)
      NSA_RETURN_IF_ERROR(open("nsa " + folderName(folder), "", folder));
    return Status::ok();
  }

  void openPeers() {
    const bool asked = !flags.peers.empty();
    if (flags.noPeers || (!asked && !device->accelerator().isCuda()))
      return;
    Result<std::unique_ptr<PeerProcess>> started =
        PeerProcess::start(asked ? flags.peers : PeerProcess::shippedScript("torch_attention.py"), flags.device);
    if (started)
      peers = std::move(*started);
    else
      std::printf("Other implementations are not measured: %s\n", started.status().toString().c_str());
  }

  Status measureCase(const BenchCase &benchCase) {
    tools::OperatorInputs inputs = drawInputs(benchCase);
    if (definitionOf(benchCase.spec.op).isAttentionGradient())
      NSA_RETURN_IF_ERROR(tools::addSaved(inputs, device->engine(false), device->accelerator()));
    NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena, device->arena(std::move(inputs), 3, {TensorName::kLse}));
    NSA_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PlanContender>> made, device->contenders(*arena, !flags.noTune));
    std::vector<std::unique_ptr<Contender>> contenders;
    auto add = [&](Result<std::unique_ptr<PlanContender>> plan) -> Status {
      if (plan)
        contenders.push_back(std::move(*plan));
      return plan.status();
    };
    // What each kernel of a gradient takes.
    std::vector<nlohmann::ordered_json> parts;
    for (const std::unique_ptr<PlanContender> &contender : made) {
      parts.emplace_back();
      if (definitionOf(benchCase.spec.op).isWhole) {
        NSA_ASSIGN_OR_RETURN(parts.back(), contender->parts(std::min(flags.samples, 3)));
      }
    }
    const bool byHand = made.front()->templateOf(operatorName(benchCase.spec.op)) != kTiledTemplate;
    for (std::unique_ptr<PlanContender> &contender : made) {
      tuneSeconds += contender->tuneSeconds();
      NSA_RETURN_IF_ERROR(add(std::move(contender)));
    }
    for (const Variant &variant : variants)
      if (byHand || variant.name != kGenerated) // else the default is generated
        NSA_RETURN_IF_ERROR(add(PlanContender::make(variant.name, variant.engine.get(), *arena)));
    const size_t ours = contenders.size();
    if (peers && definitionOf(benchCase.spec.op).keys != MetKeys::kBlocks &&
        definitionOf(benchCase.spec.op).keys != MetKeys::kListed) { // no peer has them as operators of their own
      Result<PeerProcess::Peers> prepared = peers->prepare(benchCase, device->flush());
      if (!prepared) {
        // Their trouble must not end our measurement.
        std::printf("Other implementations are measured no more: %s\n", prepared.status().toString().c_str());
        peers.reset();
      } else {
        for (const PeerProcess::Absent &absent : prepared->absent)
          NSA_RETURN_IF_ERROR(addAbsent(benchCase, absent));
        for (std::unique_ptr<Contender> &peer : prepared->contenders)
          contenders.push_back(std::move(peer));
      }
    }
    const std::vector<Result<Times>> times = measureInTurns(allOf(contenders), flags.samples);
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (times[i])
        NSA_RETURN_IF_ERROR(addTimes(benchCase, tools::usefulFlops(arena->inputs), *contenders[i], *times[i],
                                     i < parts.size() ? parts[i] : nlohmann::ordered_json()));
      else if (i < ours)
        return times[i].status();
      else
        NSA_RETURN_IF_ERROR(addAbsent(benchCase, {contenders[i]->name(), times[i].status().error().message}));
    }
    return Status::ok();
  }

  Status addTimes(const BenchCase &benchCase, double flops, const Contender &contender, const Times &times,
                  const nlohmann::ordered_json &parts) {
    nlohmann::ordered_json row = caseFields(benchCase);
    const double tflops = flops / times.medianMs * 1e-9;
    row["implementation"] = contender.name();
    row.update(times.fields());
    row["tflops"] = tflops;
    row["percent_of_roof"] = nullptr;
    if (!device->accelerator().isCuda())
      row["percent_of_roof"] = 100 * tflops / cpuRoof.tflops;
    else if (const std::optional<Roof> roof = roofOf(deviceName, benchCase.spec.dtype))
      row["percent_of_roof"] = 100 * floorMs(benchCase, flops, *roof) / times.medianMs;
    if (!parts.is_null())
      row.update(parts);
    const nlohmann::ordered_json facts = contender.facts();
    row.update(facts);
    std::printf("%-7s %s %-8s T=%-6lld %-15s %9.4f ms (%.4f to %.4f) %8.2f TFLOP/s  %s %s\n",
                std::string(operatorName(benchCase.spec.op)).c_str(),
                std::string(dtypeName(benchCase.spec.dtype)).c_str(), benchCase.name.c_str(),
                static_cast<long long>(benchCase.maxima.seqlenK), contender.name().c_str(), times.medianMs,
                times.fastestMs, times.slowestMs, tflops, facts.value("template", "").c_str(),
                facts.value("config", facts.value("note", "")).c_str());
    std::fflush(stdout);
    return report->add(std::move(row));
  }

  Status addAbsent(const BenchCase &benchCase, const PeerProcess::Absent &absent) {
    nlohmann::ordered_json row = caseFields(benchCase);
    row["implementation"] = absent.name;
    row["note"] = "does not serve: " + absent.reason;
    return report->add(std::move(row));
  }

  const Flags &flags;
  std::optional<BenchDevice> device;
  std::vector<Variant> variants;
  std::unique_ptr<PeerProcess> peers;
  std::optional<BenchReport> report;
  std::string deviceName;
  Roof cpuRoof; // the peak measured in this run
  double tuneSeconds = 0;
};

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  nsa::bench::BenchProgram program("attention", "Measures the attention operators on one device.", flags,
                                   "One small shape");
  program.addDevice();
  program.addCount("--samples", flags.samples, "Samples of each implementation", 1, 10000);
  program.addKernelBudget(flags.tuneBudget);
  CLI::App &options = program.options();
  options.add_option("--dtypes", flags.dtypes, "bf16, fp16, fp32; separated by commas")
      ->delimiter(',')
      ->capture_default_str()
      ->type_name("LIST");
  options.add_option("--heads", flags.heads, "Only these: nsa128, nsa192, gqa4, mha1")
      ->delimiter(',')
      ->type_name("LIST");
  program.addOperators(flags.ops, {"dense_bwd", "window_bwd", "cmp_bwd", "sel_bwd"});
  options.add_option("--tokens", flags.tokens, "Only these lengths: 4096, 16384, 32768, 65536")
      ->delimiter(',')
      ->type_name("LIST");
  options
      .add_option(
          "--peers", flags.peers,
          "Script that measures other implementations (default, on a GPU: peers/torch_attention.py beside this)")
      ->type_name("FILE");
  options.add_flag("--no-peers", flags.noPeers, "Only this library");
  options
      .add_option("--templates", flags.templateDirs,
                  "The default with these folders' templates too, in turns with the built-in ones; may be repeated")
      ->type_name("DIR");
  options.add_flag("--no-tune", flags.noTune, "Only the compiler's best guess");
  return program.run(argc, argv, [&] { return nsa::bench::AttentionBench(flags).run(); });
}
