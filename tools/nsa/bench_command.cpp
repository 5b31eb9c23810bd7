// `nsa bench`: measures whole operations over lengths, and prints the tables of measurements that were made before.
#include "bench/verbs/decode_summary.h"
#include "bench/verbs/search_bench.h"
#include "bench/verbs/threshold_bench.h"
#include "tools/nsa/bench_verbs.h"
#include "tools/nsa/cache/cache_verbs.h"
#include "tools/nsa/command/command.h"
#include "tools/nsa/files/file_io.h"
#include "tools/render_tables/tables.h"
#include "tools/support/number_option.h"
#include "tools/support/progress.h"

#include <cstdio>
#include <filesystem>
#include <memory>

namespace nsa::tools {
namespace {

// A row has some hundred bytes.
constexpr uint64_t kMaxCsvBytes = uint64_t{16} << 20;

struct BenchFlags {
  std::vector<std::string> configs;
  EngineFlags engine;
  bench::LengthChoice choice;
  PeerFlags peers;
  bool json = false, store = false;
  std::vector<Operator> operators;
  bool choosesLengths = false; // the verb does, where none were given
  bool isSearch = false;       // which always tunes, one length unless others were given
  double exhaustiveSeconds = 0;
  std::string name; // of the verb and its files
  std::vector<int64_t> decodeBatches, decodeTokens, decodeNewTokens;
};

// The paper's heads, where no file names others, or those that kernels are mostly measured on.
bench::NamedSpec usualSpec(int32_t qkDim) { return {"nsa" + std::to_string(qkDim), bench::usualForward(qkDim)}; }

Status chooseSpecs(BenchFlags &flags) {
  NSA_ASSIGN_OR_RETURN(flags.choice.specs, readSpecs(Operator::kNsa, flags.configs));
  if (flags.choice.specs.empty())
    flags.choice.specs.push_back(usualSpec(flags.isSearch ? 128 : 192));
  return Status::ok();
}

using Measure = Result<nlohmann::ordered_json> (*)(bench::BenchDevice &, const BenchFlags &);

Status measure(BenchFlags &flags, Measure verb) {
  NSA_RETURN_IF_ERROR(chooseSpecs(flags));
  NSA_ASSIGN_OR_RETURN(bench::BenchDevice device, bench::BenchDevice::open(flags.engine.settings));
  if (flags.choice.tokens.empty() && flags.isSearch)
    flags.choice.tokens = {device.accelerator().isCuda() ? 8192 : 1024};
  if (flags.choice.tokens.empty() && !flags.choosesLengths)
    flags.choice.tokens = device.accelerator().isCuda() ? std::vector<int64_t>{4096, 8192, 16384, 32768, 65536}
                                                        : std::vector<int64_t>{1024, 2048, 4096};
  for (const bench::NamedSpec &named : flags.choice.specs)
    for (const int64_t tokens : flags.choice.tokens)
      NSA_RETURN_IF_ERROR(bench::promptCase(named.name, named.spec, tokens).maxima.validate(named.spec));
  NSA_ASSIGN_OR_RETURN(const nlohmann::ordered_json report,
                       measureAndPrint(flags.choice, flags.json, [&] { return verb(device, flags); }));
  if (flags.json)
    return Status::ok();
  for (const nlohmann::ordered_json &crossover : report.value("crossover", nlohmann::ordered_json::array()))
    std::printf("\nCrossover with dense attention, %s%s: %s\n", crossover.value("heads", "").c_str(),
                crossover.contains("pass") ? (", " + crossover.value("pass", "")).c_str() : "",
                crossover.value("text", "").c_str());
  for (const nlohmann::ordered_json &threshold : report.value("thresholds", nlohmann::ordered_json::array()))
    std::printf("\nThreshold %s, %s: %s\n", threshold.value("route", "").c_str(), threshold.value("heads", "").c_str(),
                threshold.value("text", "").c_str());
  if (const auto search = report.find("search"); search != report.end())
    std::printf("\nTuned within %.0f %% of exhaustive search: %d of %d shapes, at worst %.3f times as long\n",
                (search->value("limit", 1.0) - 1) * 100, search->value("within", 0), search->value("shapes", 0),
                search->value("worst", 0.0));
  printResultsPlace(flags.choice, flags.name);
  return Status::ok();
}

// With or without the backward pass.
using Passes = Result<nlohmann::ordered_json> (*)(bench::BenchDevice &, const bench::LengthChoice &,
                                                  bench::PeerProcess *);
template <Passes measured>
Result<nlohmann::ordered_json> besidePeers(bench::BenchDevice &device, const BenchFlags &flags) {
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<bench::PeerProcess> peers, flags.peers.start(device));
  return measured(device, flags.choice, peers.get());
}

// The choice of `flags`, with `op` as the operator of each spec.
bench::LengthChoice choiceOf(Operator op, const BenchFlags &flags) {
  bench::LengthChoice choice = flags.choice;
  for (bench::NamedSpec &named : choice.specs)
    named.spec.op = op;
  return choice;
}

Result<nlohmann::ordered_json> selection(bench::BenchDevice &device, const BenchFlags &flags) {
  return bench::benchSelection(device, choiceOf(Operator::kSelect, flags));
}

Result<nlohmann::ordered_json> compress(bench::BenchDevice &device, const BenchFlags &flags) {
  return bench::benchCompress(device, choiceOf(Operator::kCompress, flags));
}

Result<nlohmann::ordered_json> thresholds(bench::BenchDevice &device, const BenchFlags &flags) {
  bench::ThresholdChoice choice{.lengths = flags.choice,
                                .engine = flags.engine.settings,
                                .storeIn = "",
                                .decodeBatches = flags.decodeBatches,
                                .decodeTokens = flags.decodeTokens,
                                .decodeNewTokens = flags.decodeNewTokens};
  if (flags.store) {
    NSA_ASSIGN_OR_RETURN(choice.storeIn, cachePathOf(flags.engine.settings.cachePath));
  }
  return bench::benchThresholds(device, choice);
}

Result<nlohmann::ordered_json> search(bench::BenchDevice &device, const BenchFlags &flags) {
  return bench::benchSearch(device, {flags.choice, flags.operators, flags.engine.settings, flags.exhaustiveSeconds});
}

// What all verbs that measure take.
std::pair<CLI::App &, BenchFlags &> addMeasuring(CLI::App &bench, Action &action, BenchFlags initial,
                                                 const std::string &name, const std::string &purpose, Measure verb) {
  auto [command, flags] =
      addVerb<BenchFlags>(bench, action, name, purpose, [verb](BenchFlags &chosen) { return measure(chosen, verb); });
  flags = std::move(initial);
  addConfig(command, flags.configs,
            std::string("heads, head sizes and what else a specification has; may be repeated (default: ") +
                (flags.isSearch ? "64/4 heads of 128/128, bf16)" : "the paper's 64/4 heads of 192/128, bf16)"));
  addOption(command, "--tokens LIST", flags.choice.tokens,
            flags.choosesLengths ? "Lengths, separated by commas (default: powers of two)"
            : flags.isSearch     ? "Lengths, separated by commas (default: 8192, on the CPU 1024)"
                                 : "Lengths, separated by commas (default: 4096 to 65536, on the CPU 1024 to 4096)",
            wholeAbove0())
      ->delimiter(',');
  addSampling(command, flags.choice, !flags.isSearch);
  flags.engine.addKernelBudget(command);
  flags.engine.addDevice(command);
  addResults(command, flags.choice, name + ".json and " + name + ".csv");
  addJsonFlag(command, flags.json);
  flags.name = name;
  return {command, flags};
}

void addPasses(CLI::App &bench, Action &action, const std::string &name, const std::string &purpose, Measure verb) {
  auto [command, flags] = addMeasuring(bench, action, {}, name, purpose, verb);
  flags.peers.addTo(command, "dense attention is ours");
}

void addSearch(CLI::App &bench, Action &action) {
  BenchFlags initial;
  initial.isSearch = true;
  initial.choice.samples = 25; // ratios of a few percent are what it is about
  initial.operators = {Operator::kSel, Operator::kWindow, Operator::kDense};
  auto [command, flags] = addMeasuring(bench, action, std::move(initial), "search",
                                       "How near the tuner's winners come to those of an exhaustive search", search);
  addOption(command, "--ops LIST", flags.operators, "Operators, separated by commas (default: sel,window,dense)")
      ->delimiter(',')
      ->transform(namedOperator([](const OperatorDef &def) { return isTuned(def.op); }));
  addOption(command, "--exhaustive-budget SECONDS", flags.exhaustiveSeconds,
            "Seconds that each exhaustive search may take; one that it cuts says so (default: no limit)",
            secondsAbove0());
}

using Paths = std::vector<std::string>;

Status summarize(const Paths &paths) {
  // All or nothing: a table of half the files would look like all of them.
  std::string text;
  for (const std::string &path : paths) {
    NSA_ASSIGN_OR_RETURN(std::string csv, readText(path, kMaxCsvBytes));
    NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json summary, bench::summarizeDecode(path, csv));
    if (paths.size() > 1)
      text += (text.empty() ? "" : "\n") + path + "\n";
    text += tables::terminalTable(summary);
  }
  return writeOutput("", text);
}

void addSummarize(CLI::App &bench, Action &action) {
  auto [command, paths] = addVerb<Paths>(
      bench, action, "summarize",
      "Print the table of a decoding bench's CSV: shares of the branches, tokens read and expected", summarize);
  command
      .add_option("FILE", paths,
                  "CSV with the columns S, ms_total, ms_cmp, ms_sel, ms_win, reads_actual, reads_expected")
      ->required()
      ->type_name("");
}

} // namespace

void PeerFlags::addTo(CLI::App &command, const std::string &without) {
  addOption(command, "--peers FILE", script,
            "Script that measures other implementations (default, on a GPU: torch's); without any, " + without);
  command.add_flag("--no-peers", none, "Only this library");
}

Result<std::unique_ptr<bench::PeerProcess>> PeerFlags::start(bench::BenchDevice &device) const {
  if (none || (script.empty() && !device.accelerator().isCuda()))
    return std::unique_ptr<bench::PeerProcess>();
  Result<std::unique_ptr<bench::PeerProcess>> started = bench::PeerProcess::start(
      script.empty() ? bench::PeerProcess::shippedScript("torch_attention.py") : script, device.name());
  // A script that the user named has to run. The usual script needs python3 and torch, which are optional.
  if (started || !script.empty())
    return started;
  printWarning("other implementations are not measured: " + started.status().toString());
  return std::unique_ptr<bench::PeerProcess>();
}

Result<std::vector<bench::NamedSpec>> readSpecs(Operator op, const std::vector<std::string> &configs) {
  std::vector<bench::NamedSpec> specs;
  for (const std::string &path : configs) {
    NSA_ASSIGN_OR_RETURN(const ConfigFile config, readConfig(path));
    NSA_ASSIGN_OR_RETURN(const Spec spec, specOf(op, config));
    specs.push_back({config.path == path ? std::filesystem::path(path).stem().string() : "config", spec});
  }
  return specs;
}

Result<nlohmann::ordered_json> measureAndPrint(bench::LengthChoice &choice, bool json,
                                               const std::function<Result<nlohmann::ordered_json>()> &measure) {
  Result<nlohmann::ordered_json> report = [&] {
    Progress progress;
    choice.progress = [&](const std::string &text) { progress.step(text); };
    Result<nlohmann::ordered_json> measured = measure();
    choice.progress = nullptr;
    return measured;
  }();
  if (report && json)
    printJson(*report);
  else if (report)
    std::printf("%s\n\n%s", tables::machineLine(*report).c_str(), tables::terminalTable(*report).c_str());
  return report;
}

void addSampling(CLI::App &command, bench::LengthChoice &choice, bool withTune) {
  addOption(command, "--samples N", choice.samples, "Samples of each measurement", wholeWithin(1, 10000))
      ->capture_default_str();
  addOption(command, "--warm-ups N", choice.warmUps, "Runs before the first sample", wholeWithin(1, 10000))
      ->capture_default_str();
  if (withTune)
    command.add_flag("--tune,!--no-tune", choice.tuned,
                     "Measure the tuner's winner too, beside the compiler's best guess (default: --no-tune)");
}

void addResults(CLI::App &command, bench::LengthChoice &choice, const std::string &files) {
  addOption(command, "--results DIR", choice.results, "Folder for " + files + " (default: nothing is written)");
}

void printResultsPlace(const bench::LengthChoice &choice, const std::string &name) {
  if (choice.results.empty())
    printText("\nNo file was written: --results DIR keeps what was measured.\n");
  else
    printText("\nResults: %s, and as CSV beside it\n",
              (std::filesystem::path(choice.results) / (name + ".json")).c_str());
}

void addBenchCommand(CLI::App &app, Action &action) {
  CLI::App *bench = app.add_subcommand("bench", "Measure operations over lengths on this machine");
  bench->require_subcommand(1);
  addPasses(*bench, action, "prefill",
            "The whole forward pass and its parts beside dense attention, and from which length on it is faster",
            besidePeers<bench::benchPrefill>);
  addPasses(*bench, action, "backward",
            "The forward pass and its gradient beside those of dense attention, and from which length on they are "
            "faster",
            besidePeers<bench::benchBackward>);
  addMeasuring(*bench, action, {}, "selection", "Selection alone: lists per second, and memory", selection);
  addMeasuring(*bench, action, {}, "compress",
               "Compression by the mean, the linear map and the mlp, against what memory delivers", compress);
  BenchFlags initial;
  initial.choosesLengths = true;
  initial.decodeTokens = {4096, 16384, 65536};
  initial.decodeNewTokens = {1};
  auto [threshold, thresholdFlags] =
      addMeasuring(*bench, action, std::move(initial), "thresholds",
                   "Thresholds: the lengths at which a plan should change from one algorithm to another, and with "
                   "--decode-batch the best numbers of programs of a decoding step",
                   thresholds);
  threshold.add_flag("--store", thresholdFlags.store, "Keep the thresholds in the database, for plans to come");
  thresholdFlags.engine.addCache(threshold);
  CLI::Option *batches = addOption(threshold, "--decode-batch LIST", thresholdFlags.decodeBatches,
                                   "Batches of decode, separated by commas, at which the numbers of programs that "
                                   "share the keys of a query, and decode_step, are measured (default: none)",
                                   wholeWithin(1, 65536))
                             ->delimiter(',');
  addOption(threshold, "--decode-tokens LIST", thresholdFlags.decodeTokens,
            "Lengths of decode's sequences, separated by commas (default: 4096,16384,65536)", wholeWithin(8, 1 << 22))
      ->delimiter(',')
      ->needs(batches);
  addOption(threshold, "--decode-new-tokens LIST", thresholdFlags.decodeNewTokens,
            "New tokens of each sequence in a step of decode, separated by commas (default: 1)", wholeWithin(1, 8))
      ->delimiter(',')
      ->needs(batches);
  addSearch(*bench, action);
  addDecodeBench(*bench, action);
  addProgramBench(*bench, action);
  addSummarize(*bench, action);
}

} // namespace nsa::tools
