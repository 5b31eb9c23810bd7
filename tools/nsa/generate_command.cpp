// `nsa generate`: an operator's inputs from a seed, as a file that `nsa run` takes.
#include "tools/nsa/command/command.h"
#include "tools/nsa/files/file_io.h"
#include "tools/nsa/files/safetensors.h"
#include "tools/support/number_option.h"
#include "tools/support/progress.h"
#include "tools/support/structured_inputs.h"

#include <cstdio>

namespace nsa::tools {
namespace {

struct GenerateFlags {
  Operator op{};
  std::string configPath, outputPath;
  LengthFlags lengths;
  StructureChoice choice;
  uint64_t seed = 1;
  bool json = false;
};

// Rules of docs/specification.md 2 about lengths, which nothing but a call checks.
Status checkLengths(const Spec &spec, const Maxima &maxima) {
  const bool withoutKeys =
      readsLengths(spec.op) && std::ranges::none_of(operandsOf(spec.op), [](const Operand &operand) {
        return tensorRule(operand.name).lead == Lead::kKeys;
      });
  if (withoutKeys && spec.layout == Layout::kDense && maxima.seqlenQ != maxima.seqlenK)
    return Status::invalid("--seqlen-q", std::to_string(maxima.seqlenQ),
                           "must be --seqlen-k = " + std::to_string(maxima.seqlenK) + " for " +
                               std::string(operatorName(spec.op)) + " in the dense layout",
                           "set \"layout\": \"packed\" in the configuration");
  return Status::ok();
}

Status generate(const GenerateFlags &flags) {
  NSA_ASSIGN_OR_RETURN(ConfigFile config, readConfig(flags.configPath));
  NSA_ASSIGN_OR_RETURN(Spec spec, specOf(flags.op, config));
  const Maxima maxima = flags.lengths.maxima();
  NSA_RETURN_IF_ERROR(checkLengthFlags(spec, maxima));
  NSA_RETURN_IF_ERROR(checkLengths(spec, maxima));
  NSA_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(flags.outputPath));
  Progress progress;
  progress.step("drawing the inputs of " + std::string(operatorName(flags.op)));
  NSA_ASSIGN_OR_RETURN(OperatorInputs inputs,
                       drawStructuredInputs(spec, SequenceLengths::largest(maxima), flags.choice, flags.seed));
  std::vector<std::pair<std::string, const HostTensor *>> list;
  nlohmann::json shapes = nlohmann::json::object();
  for (const auto &[name, tensor] : inputs.tensors) {
    list.emplace_back(tensorName(name), &tensor);
    shapes[std::string(tensorName(name))] = {{"dtype", dtypeName(tensor.dtype)}, {"shape", tensor.shape}};
  }
  NSA_RETURN_IF_ERROR(writeSafetensors(std::move(output), list));
  progress.step("");
  if (flags.json) {
    printJson({{"output", flags.outputPath},
               {"structure", structureName(flags.choice.structure)},
               {"seed", flags.seed},
               {"tensors", shapes}});
    return Status::ok();
  }
  for (const auto &[name, tensor] : list)
    std::printf("%-12s  %-5s  %s\n", name.c_str(), std::string(dtypeName(tensor->dtype)).c_str(),
                shapeText(tensor->shape).c_str());
  return Status::ok();
}

} // namespace

void addGenerateCommand(CLI::App &app, Action &action) {
  auto [verb, flags] = addVerb<GenerateFlags>(
      app, action, "generate", "Draw an operator's inputs from a seed into a safetensors file", generate);
  verb.footer("Of decode the queries' tokens are new, and the other keys are in the cache.");
  addOperatorFlag(verb, flags.op);
  addConfig(verb, flags.configPath, configKeys())->required();
  flags.lengths.add(verb);
  const auto readStructure = [&choice = flags.choice](const std::string &name) {
    Result<Structure> structure = parseStructure(name);
    if (!structure)
      throw CLI::ValidationError("--structure", name + " " + structure.status().error().rule);
    choice.structure = *structure;
  };
  verb.add_option_function<std::string>(
          "--structure", readStructure,
          "How selection behaves: random; clustered (blocks that are wanted together); recency (near blocks); needle "
          "(the last queries find one block); real-locality (neighbouring queries agree as a trained model's). All but "
          "random: of nsa, nsa_bwd and decode with the mean (default: random)")
      ->type_name("NAME");
  addOption(verb, "--needle-position TOKEN", flags.choice.needlePosition, "A token of the block to find (needle)",
            wholeFrom0())
      ->capture_default_str();
  addOption(verb, "--seed N", flags.seed, "The same seed gives the same file")->capture_default_str();
  addOption(verb, "--output FILE", flags.outputPath, "Safetensors file to write")->required();
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
