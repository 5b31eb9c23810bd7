// `nsa run`: one operator over the tensors of a file, and a report of which kernels ran and what they cost.
#include "tools/nsa/command/program_flags.h"
#include "tools/nsa/files/file_io.h"
#include "tools/nsa/files/safetensors.h"
#include "tools/nsa/run_program.h"
#include "tools/nsa/run_report.h"
#include "tools/support/number_option.h"
#include "tools/support/progress.h"

namespace nsa::tools {
namespace {

struct RunFlags {
  Operator op{};
  ProgramFlags program;
  std::string configPath, inputPath, outputPath;
  EngineFlags engine;
  bool allOutputs = false;
  bool check = false;
  int64_t decodeLast = 0;
  bool json = false;
};

// What a file shall hold: of a cache what became of it, and how much the call has read of it (docs/specification.md
// 12).
std::set<TensorName> outputsToWrite(const OperatorInputs &inputs, bool all) {
  const Operator op = inputs.spec.op;
  std::set<TensorName> names = outputsOf(inputs.spec, inputs.tensors, all ? allOutputs(op) : std::set<TensorName>());
  if (definitionOf(op).hasCache)
    names.insert(TensorName::kReads);
  for (const auto &[name, tensor] : inputs.tensors)
    if (isUpdated(name))
      names.insert(name);
  return names;
}

// The outputs of `wanted`, with the rank that the inputs have in the file.
Status writeOutputs(OutputFile target, const OperatorFile &file, NamedTensors &outputs,
                    const std::set<TensorName> &wanted) {
  std::vector<std::pair<std::string, const HostTensor *>> list;
  for (auto &[name, tensor] : outputs) {
    if (!wanted.contains(name))
      continue;
    if (file.withoutBatch)
      tensor.shape.erase(tensor.shape.begin());
    list.emplace_back(tensorName(name), &tensor);
  }
  return writeSafetensors(std::move(target), list);
}

std::string faultsOf(const OperatorCheck &check) {
  std::string faults;
  for (const OutputCheck &each : check.outputs)
    if (!each.within)
      faults += (faults.empty() ? "" : "; ") + each.name + ": " + each.text;
  return faults;
}

Status notWithin(const std::string &what, const std::string &faults) {
  return Status::error(ErrorCode::kInternal, what + " is not within the contract: " + faults, "no output was written");
}

Status verdictOf(const OperatorCheck &check, const OperatorInputs &inputs, const std::string &inputPath) {
  if (check.within())
    return Status::ok();
  if (check.isUnjudged())
    return Status::invalid("--input", inputPath,
                           "must be finite where --check judges what is made of it: " + faultsOf(check),
                           "every other row is right; run without --check to write the output");
  const OperatorDef &def = definitionOf(inputs.spec.op);
  if (def.isAttentionGradient() || def.isWholeGradient())
    if (const OperatorCheck saved = checkSaved(inputs); !saved.within() && !saved.isUnjudged())
      return Status::invalid("--input", inputPath,
                             std::string("must have the ") +
                                 (def.isWholeGradient() ? "'o_*', 'lse_*', 'k_comp' and 'v_comp'" : "'out' and 'lse'") +
                                 " of the forward pass of its other tensors under --config: " + faultsOf(saved),
                             "the forward operator writes them with --all-outputs; no output was written");
  return notWithin("the result", faultsOf(check));
}

Status run(const RunFlags &flags) {
  if (flags.program.isGiven())
    return runProgram({flags.program, flags.inputPath, flags.outputPath, flags.engine.settings, flags.allOutputs,
                       flags.check, flags.json});
  NSA_ASSIGN_OR_RETURN(OperatorFile file, readInputs(flags.op, flags.configPath, flags.inputPath));
  const OperatorInputs &inputs = file.inputs;
  if (flags.decodeLast > 0)
    NSA_RETURN_IF_ERROR(checkDecodable(inputs, flags.decodeLast));
  // Before anything is compiled or tuned for it.
  NSA_RETURN_IF_ERROR(checkOutputPath(flags.inputPath, flags.outputPath));
  NSA_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(flags.outputPath));
  const std::set<TensorName> written = outputsToWrite(inputs, flags.allOutputs);
  Progress progress;
  progress.step("running " + std::string(operatorName(flags.op)));
  NSA_ASSIGN_OR_RETURN(
      DeviceRun ran,
      runOnDevice(inputs, flags.engine.settings, flags.check || flags.decodeLast > 0 ? allOutputs(flags.op) : written));

  nlohmann::json report = runReport(inputs, ran);
  report["ignored"] = file.ignored;
  Status verdict;
  if (flags.check) {
    progress.step("checking every output against the fp64 reference");
    const OperatorCheck check = checkOperator(inputs, ran.result.outputs);
    report["checks"] = checksJson(check);
    verdict = verdictOf(check, inputs, flags.inputPath);
  }
  if (flags.decodeLast > 0 && verdict.isOk()) {
    progress.step("decoding the last tokens from a cache and checking them");
    NSA_ASSIGN_OR_RETURN(std::vector<DecodeParity> parities,
                         decodeLast(inputs, flags.decodeLast, flags.engine.settings, ran.result.outputs));
    report["decode"] = decodeJson(parities);
    for (const DecodeParity &parity : parities)
      if (!parity.within())
        verdict = notWithin("what was decoded", parity.differing > 0 ? std::to_string(parity.differing) +
                                                                           " lists are unlike prefill's and no tie"
                                                                     : faultsOf(parity.check));
  }
  progress.step("");
  if (verdict.isOk())
    verdict = writeOutputs(std::move(output), file, ran.result.outputs, written);
  if (verdict.isOk())
    report["output"] = flags.outputPath;
  if (flags.json)
    printJson(report);
  else
    printRunReport(report);
  return verdict;
}

} // namespace

void addRunCommand(CLI::App &app, Action &action) {
  auto [verb, flags] =
      addVerb<RunFlags>(app, action, "run", "Run an operator or a program over the tensors of a safetensors file", run);
  addOperatorFlag(verb, flags.op);
  addInputFiles(verb, flags.configPath, flags.inputPath);
  addOption(verb, "--output FILE", flags.outputPath,
            "Safetensors file to write: the outputs, of decode also the cache and reads")
      ->required();
  verb.add_flag("--all-outputs", flags.allOutputs,
                "Write the optional outputs too: lse, reads; of nsa o_*, lse_*, block_list, k_comp, v_comp, reads; "
                "of decode o_*, lse_*, block_list; of select and nsa with make_index block_index; of gradients of "
                "attention delta, of combine_bwd d_o_*, of compress_bwd and nsa_bwd the gradients of weights, of "
                "nsa_bwd also gradients of tensors that no branch reads, which are 0; of a program what it declares "
                "optional");
  flags.engine.addDevice(verb);
  flags.engine.addMiss(verb);
  flags.engine.addCache(verb);
  flags.engine.addKernelBudget(verb);
  verb.add_flag("--check", flags.check,
                "Compare every output, the optional ones too, with the fp64 reference, and of decode that nothing "
                "else in the cache has changed; beyond the contract's limits is a failure and writes nothing. Of a "
                "program run the call in an interpreter first, which finds loads and stores outside of a tensor, two "
                "stores to one place and a false `when`; what it finds is a failure and runs and writes nothing");
  addOption(verb, "--decode-last N", flags.decodeLast,
            "Of nsa: decode so many of each sequence's last tokens once more from a cache that the others fill, "
            "contiguous and in pages, and compare them with the fp64 reference and the lists of this run",
            wholeAbove0());
  addJsonFlag(verb, flags.json);
  flags.program.add(verb, {"--op", "--config", "--decode-last"});
  CLI::Option *input = verb.get_option("--input");
  input->description(input->get_description() +
                     "; required with --op. Of a program: the tensors that it reads, which are drawn without --input");
  flags.program.needWithout(*input);
}

} // namespace nsa::tools
