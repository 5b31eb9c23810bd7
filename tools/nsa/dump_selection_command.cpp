// `nsa dump-selection`: which tokens each query's groups chose, one JSON line per query, from a run over a file.
#include "runtime/base/signature.h"
#include "tools/nsa/command/command.h"
#include "tools/nsa/files/file_io.h"
#include "tools/nsa/run_report.h"
#include "tools/support/operator_check.h"

#include <cstdio>
#include <optional>

namespace nsa::tools {
namespace {

struct DumpFlags {
  Operator op{};
  std::string configPath, inputPath, outputPath;
  EngineFlags engine;
};

nsa_tensor apiTensor(HostTensor &tensor) { return contiguousTensor(tensor.bytes.data(), tensor.dtype, tensor.shape); }

// Merged ranges [.., kv_heads, sel_count, 2] of the lists.
Result<HostTensor> rangesOf(OperatorInputs &inputs, HostTensor &lists) {
  std::vector<int64_t> shape = lists.shape;
  shape.push_back(2);
  HostTensor ranges = HostTensor::make(DType::kI32, std::move(shape));
  nsa_range_options options = NSA_INIT(nsa_range_options);
  options.sel_block = inputs.spec.selBlock;
  options.merge = 1;
  nsa_tensor cuSeqlensQ, cuSeqlensK;
  if (inputs.spec.layout == Layout::kPacked) {
    cuSeqlensQ = apiTensor(inputs.tensors.at(TensorName::kCuSeqlensQ));
    cuSeqlensK = apiTensor(inputs.tensors.at(TensorName::kCuSeqlensK));
    options.cu_seqlens_q = &cuSeqlensQ;
    options.cu_seqlens_k = &cuSeqlensK;
  } else {
    options.seqlen_k = inputs.extents.timeK;
  }
  const nsa_tensor list = apiTensor(lists), target = apiTensor(ranges);
  NSA_RETURN_IF_ERROR(toStatus(nsa_ranges_from_block_list(&list, &options, &target, nullptr)));
  return ranges;
}

// [[[begin, end], ...] per group] of the query in a row of [rows, kv_heads, sel_count, 2].
nlohmann::json groupsOf(const Spec &spec, const HostTensor &ranges, int64_t row) {
  const int32_t *bounds = ranges.integers().data() + row * spec.kvHeads * spec.selCount * 2;
  nlohmann::json groups = nlohmann::json::array();
  for (int32_t group = 0; group < spec.kvHeads; ++group, bounds += int64_t{spec.selCount} * 2) {
    nlohmann::json list = nlohmann::json::array();
    for (int32_t slot = 0; slot < spec.selCount && bounds[2 * slot + 1] != 0; ++slot)
      list.push_back({bounds[2 * slot], bounds[2 * slot + 1]});
    groups.push_back(std::move(list));
  }
  return groups;
}

std::string jsonLines(const OperatorInputs &inputs, const HostTensor &ranges) {
  const std::vector<reference::Sequence> sequences = sequencesOf(inputs);
  const int64_t time = inputs.spec.layout == Layout::kPacked ? 0 : inputs.extents.timeQ;
  std::string text;
  for (size_t i = 0; i < sequences.size(); ++i)
    for (int64_t query = 0; query < sequences[i].queries; ++query) {
      nlohmann::ordered_json line;
      if (sequences.size() > 1)
        line["sequence"] = i;
      line["t"] = sequences[i].position(query);
      line["ranges"] = groupsOf(inputs.spec, ranges, sequences[i].batch * time + sequences[i].queryBegin + query);
      text += line.dump() + "\n";
    }
  return text;
}

Status dump(const DumpFlags &flags) {
  NSA_ASSIGN_OR_RETURN(OperatorFile file, readInputs(flags.op, flags.configPath, flags.inputPath));
  OperatorInputs &inputs = file.inputs;
  if (!takes(inputs.spec, TensorName::kBlockList))
    return Status::invalid("branches", "without sel", "must name sel: nothing is selected otherwise");
  std::optional<OutputFile> output; // made before the work, so that a path that cannot be written costs nothing
  if (!flags.outputPath.empty()) {
    NSA_ASSIGN_OR_RETURN(OutputFile created, OutputFile::create(flags.outputPath));
    output.emplace(std::move(created));
  }
  NSA_ASSIGN_OR_RETURN(DeviceRun run, runOnDevice(inputs, flags.engine.settings, {TensorName::kBlockList}));
  NSA_ASSIGN_OR_RETURN(HostTensor ranges, rangesOf(inputs, run.result.outputs.at(TensorName::kBlockList)));
  const std::string text = jsonLines(inputs, ranges);
  if (!output)
    return writeOutput("", text);
  NSA_RETURN_IF_ERROR(output->write(std::as_bytes(std::span(text))));
  return output->commit();
}

} // namespace

void addDumpSelectionCommand(CLI::App &app, Action &action) {
  auto [verb, flags] = addVerb<DumpFlags>(app, action, "dump-selection",
                                          "Run select or nsa over a file and write what each query chose", dump);
  verb.footer("One JSON line for each query, with ranges of tokens: {\"t\": position, \"ranges\": [[[begin, end], "
              "...] per group]}");
  const auto selects = [](const OperatorDef &def) {
    const Operand *lists = def.operandOf(TensorName::kBlockList);
    return lists && !lists->isRead() && !def.hasCache;
  };
  addOption(verb, "--op OP", flags.op, "The operator: select or nsa")->required()->transform(namedOperator(selects));
  addInputFiles(verb, flags.configPath, flags.inputPath);
  addOption(verb, "-o,--output FILE", flags.outputPath, "Write there instead of to stdout");
  flags.engine.addDevice(verb);
  flags.engine.addMiss(verb);
  flags.engine.addCache(verb);
  flags.engine.addKernelBudget(verb);
}

} // namespace nsa::tools
