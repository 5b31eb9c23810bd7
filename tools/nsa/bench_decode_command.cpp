// `nsa bench decode`: steps of decoding over lengths, told in the words of nsa-vibe's bench or in ours.
#include "bench/verbs/decode_bench.h"
#include "tools/nsa/bench_verbs.h"
#include "tools/support/number_option.h"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace nsa::tools {
namespace {

struct DecodeFlags {
  std::vector<std::string> configs;
  Spec shape; // without a file
  std::vector<CLI::Option *> shapeOptions;
  EngineFlags engine;
  bench::DecodeChoice choice;
  int32_t pageSize = -1; // -1: the configuration's
  bool batchInvariant = false;
  std::string ignored;
  PeerFlags peers;
  bool json = false;
};

Status run(DecodeFlags &flags) {
  bench::DecodeChoice &choice = flags.choice;
  if (flags.configs.empty()) {
    choice.specs = {{"seed", flags.shape}};
  } else {
    NSA_ASSIGN_OR_RETURN(choice.specs, readSpecs(flags.shape.op, flags.configs));
  }
  if (choice.warmUps >= choice.samples)
    return Status::invalid("--warm-ups", std::to_string(choice.warmUps),
                           "must be below --samples = " + std::to_string(choice.samples) + ": they are the first ones");
  const int64_t needed = choice.tokensNeeded(*std::ranges::max_element(choice.tokens));
  if (choice.maxTokens != 0 && choice.maxTokens < needed)
    return Status::invalid("--max-tokens", std::to_string(choice.maxTokens),
                           "must be at least " + std::to_string(needed) +
                               ": the greatest number of --tokens, and what --samples steps append");
  for (bench::NamedSpec &named : choice.specs) {
    if (flags.pageSize >= 0)
      named.spec.pageSize = flags.pageSize;
    named.spec.batchInvariant |= flags.batchInvariant;
    NSA_RETURN_IF_ERROR(named.spec.validate());
    for (const int64_t batch : choice.batches)
      for (const int64_t tokens : choice.tokens)
        NSA_RETURN_IF_ERROR(choice.maximaOf(batch, tokens).validate(named.spec));
  }
  NSA_ASSIGN_OR_RETURN(bench::BenchDevice device, bench::BenchDevice::open(flags.engine.settings));
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<bench::PeerProcess> peers, flags.peers.start(device));
  NSA_ASSIGN_OR_RETURN(const nlohmann::ordered_json report, measureAndPrint(choice, flags.json, [&] {
                         return bench::benchDecode(device, choice, peers.get());
                       }));
  if (!flags.json) {
    std::printf("\n%s\n", report.value("note", "").c_str());
    printResultsPlace(choice, "decode");
  }
  return Status::ok();
}

// One shape on the command line, by nsa-vibe's names; the defaults are the same as in its bench.
void addShape(CLI::App &command, DecodeFlags &flags) {
  Spec &shape = flags.shape;
  shape = bench::usualForward(32);
  shape.op = withCache(shape.op);
  shape.queryHeads = 8;
  shape.kvHeads = 2;
  shape.vDim = shape.qkDim;
  const struct {
    const char *name;
    int32_t *field;
    const char *about;
  } options[] = {{"--heads", &shape.queryHeads, "Query heads"},
                 {"--groups", &shape.kvHeads, "Key and value heads"},
                 {"--dk", &shape.qkDim, "Size of a query's and key's head"},
                 {"--dv", &shape.vDim, "Size of a value's head"},
                 {"--l", &shape.cmpBlock, "Tokens of a compression block"},
                 {"--d", &shape.cmpStride, "Tokens from one to the next"},
                 {"--l_sel", &shape.selBlock, "Tokens of a selection block"},
                 {"--n_sel", &shape.selCount, "Blocks that a query selects"},
                 {"--w", &shape.window, "Tokens of the window"}};
  for (const auto &[name, field, about] : options)
    flags.shapeOptions.push_back(
        addOption(command, name + std::string(" N"), *field, std::string(about) + " (without --config)", wholeAbove0())
            ->capture_default_str());
  const auto readDtype = [&shape](const std::string &name) {
    Result<DType> dtype = parseIoDType(name);
    if (!dtype)
      throw CLI::ValidationError("--dtype", dtype.status().error().sentence());
    shape.dtype = *dtype;
  };
  flags.shapeOptions.push_back(command
                                   .add_option_function<std::string>(
                                       "--dtype", readDtype, "bf16, fp16 or fp32 (without --config; default: bf16)")
                                   ->type_name("TYPE"));
  for (const char *name : {"--dim VALUE", "--branch_force_mode VALUE"})
    addOption(command, name, flags.ignored, "Taken and without effect: there is no module around the attention");
}

} // namespace

void addDecodeBench(CLI::App &bench, Action &action) {
  auto flags = std::make_shared<DecodeFlags>();
  CLI::App *command = bench.add_subcommand(
      "decode", "Steps of decoding from a cache: time by branch, and the tokens that a step reads");
  addConfig(*command, flags->configs,
            "heads, head sizes and what else a specification has; may be repeated (default: 8/2 heads of 32/32)");
  bench::DecodeChoice &choice = flags->choice;
  choice.tokens = {512, 1024, 2048, 4096};
  choice.samples = 64;
  choice.warmUps = 8;
  addOption(*command, "--tokens,--S_list LIST", choice.tokens,
            "Tokens in the cache before the first step, separated by commas", wholeAbove0())
      ->delimiter(',')
      ->capture_default_str();
  addOption(*command, "--batch,--B LIST", choice.batches, "Numbers of sequences, separated by commas", wholeAbove0())
      ->delimiter(',')
      ->capture_default_str();
  addOption(*command, "--new-tokens N", choice.newTokens, "Tokens of each sequence in a step", wholeWithin(1, 64))
      ->capture_default_str();
  addOption(*command, "--max-tokens N", choice.maxTokens,
            "Tokens for which all plans and caches are made (default: what the steps from each length on need)",
            wholeAbove0());
  addOption(*command, "--page-size N", flags->pageSize, "Tokens of a page; 0: no pages (default: the configuration's)",
            wholeFrom0());
  command->add_flag("--batch-invariant", flags->batchInvariant,
                    "Measure each step also in a plan with batch_invariant, and print what this costs");
  addOption(*command, "--samples,--iters N", choice.samples, "Steps from each length on", wholeWithin(1, 10000))
      ->capture_default_str();
  addOption(*command, "--warm-ups,--warmup N", choice.warmUps, "The first of them, which are not counted",
            wholeWithin(0, 10000))
      ->capture_default_str();
  command->add_flag("--tune", choice.tuned, "Tune the kernels that have choices first");
  flags->peers.addTo(*command, "dense decoding is not measured");
  flags->engine.addKernelBudget(*command);
  flags->engine.addDevice(*command);
  addShape(*command, *flags);
  addResults(*command, choice,
             "decode.json and decode.csv with S, ms_total, ms_cmp, ms_sel, ms_win, reads_actual and reads_expected; of "
             "several "
             "configurations or batches decode_NAME_bN.csv each");
  addJsonFlag(*command, flags->json);
  command->callback([flags, &action] {
    for (const CLI::Option *option : flags->shapeOptions)
      if (!flags->configs.empty() && option->count() > 0)
        throw CLI::ValidationError(option->get_name(), "stands in the file that --config names");
    action = [flags] { return run(*flags); };
  });
}

} // namespace nsa::tools
