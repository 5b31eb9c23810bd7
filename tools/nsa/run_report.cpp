#include "tools/nsa/run_report.h"

#include "runtime/base/signature.h"
#include "runtime/base/text.h"
#include "tools/nsa/command/command.h"
#include "tools/support/operator_work.h"

#include <algorithm>
#include <fstream>
#include <memory>

namespace nsa::tools {

namespace {

// Read off the process's own memory map.
bool isCompilerMapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libnsa_compiler") != std::string::npos)
      return true;
  return false;
}

} // namespace

Result<DeviceRun> runOnDevice(const OperatorInputs &inputs, const EngineSettings &settings,
                              const std::set<TensorName> &wanted) {
  NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(settings));
  NSA_ASSIGN_OR_RETURN(std::string device, deviceName(engine.get()));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<Accelerator> accelerator, Accelerator::open(device));
  NSA_ASSIGN_OR_RETURN(PlanHandle plan, createPlan(engine.get(), inputs.spec, inputs.maxima, accelerator->stream()));
  NSA_ASSIGN_OR_RETURN(RunResult result, runOnce(*accelerator, plan.get(), inputs, wanted));
  return DeviceRun{describePlan(plan.get()), std::move(result), isCompilerMapped()};
}

std::string inputsText(const OperatorInputs &inputs) {
  const Spec &spec = inputs.spec;
  std::string text = std::string(operatorName(spec.op)) + " " + std::string(dtypeName(spec.dtype));
  for (const auto &[name, tensor] : inputs.tensors)
    text += ", " + std::string(tensorName(name)) + " " + shapeText(tensor.shape);
  const uint32_t fields = fieldsOf(spec.op);
  if (fields & kCmpGeometry)
    text += ", blocks of " + std::to_string(spec.cmpBlock) + " each " + std::to_string(spec.cmpStride);
  if (fields & kSelGeometry)
    text += ", " + std::to_string(spec.selCount) + " selected of " + std::to_string(spec.selBlock);
  if (spec.pageSize > 0 && (fields & kPages))
    text += ", pages of " + std::to_string(spec.pageSize);
  if (fields & kWindowField)
    text += ", window " + std::to_string(spec.window);
  if (spec.layout == Layout::kPacked && readsLengths(spec.op))
    text += ", " + std::to_string(inputs.maxima.batch) + " packed sequences";
  return text;
}

nlohmann::json runReport(const OperatorInputs &inputs, const DeviceRun &run) {
  nlohmann::json report;
  report["inputs"] = inputsText(inputs);
  report["plan"] = run.plan;
  report["milliseconds"] = run.plan["milliseconds"];
  report["milliseconds"]["run"] = run.result.milliseconds;
  report["compiler_mapped"] = run.compilerMapped;
  if (fieldsOf(inputs.spec.op) & kForced)
    report["selecting"] = {{"queries", queryCount(inputs)}, {"leave_blocks_out", selectingQueries(inputs)}};
  return report;
}

nlohmann::json kernelReport(const nlohmann::json &kernel, double milliseconds) {
  nlohmann::json report;
  report["plan"] = {
      {"device", kernel["device"]}, {"fallbacks", kernel["fallbacks"]}, {"launches", nlohmann::json::array({kernel})}};
  report["milliseconds"] = kernel["milliseconds"];
  report["milliseconds"]["run"] = milliseconds;
  report["compiler_mapped"] = isCompilerMapped();
  return report;
}

nlohmann::json checksJson(const OperatorCheck &check) {
  nlohmann::json list = nlohmann::json::array();
  for (const OutputCheck &output : check.outputs) {
    nlohmann::json entry = {{"output", output.name}, {"within", output.within}, {"text", output.text}};
    if (output.error)
      entry.update({{"relative_rms", output.error->relativeRms},
                    {"relative_rms_limit", output.limits.relativeRms},
                    {"worst_row", output.error->worstRow},
                    {"worst_row_limit", output.limits.worstRow},
                    {"lse", output.error->lse},
                    {"lse_limit", output.limits.lse},
                    {"not_finite", output.error->notFinite},
                    {"unjudged", output.error->unjudged}});
    if (output.lists)
      entry.update({{"lists", output.lists->lists},
                    {"ties", output.lists->ties},
                    {"differing", output.lists->differing},
                    {"wrong", output.lists->wrong}});
    list.push_back(std::move(entry));
  }
  return list;
}

nlohmann::json decodeJson(const std::vector<DecodeParity> &parities) {
  nlohmann::json list = nlohmann::json::array();
  for (const DecodeParity &parity : parities)
    list.push_back({{"page_size", parity.pageSize},
                    {"prompt_chunks", parity.chunks},
                    {"rows", parity.rows},
                    {"lists", parity.lists},
                    {"unlike_prefill_in_ties", parity.tied},
                    {"unlike_prefill", parity.differing},
                    {"within", parity.within()},
                    {"checks", checksJson(parity.check)},
                    {"plan", parity.plan}});
  return list;
}

namespace {

void printChecks(const nlohmann::json &checks) {
  for (const nlohmann::json &check : checks)
    printText("check    %-10s  %s: %s\n", check.value("output", "").c_str(),
              check.value("within", false) ? "within the contract" : "NOT within the contract",
              check.value("text", "").c_str());
}

// A file may hold all the tensors of a model.
void printUnused(const nlohmann::json &names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (text.empty() ? "" : ", ") + names[i].get<std::string>();
  if (names.size() > kMost)
    text += " and " + std::to_string(names.size() - kMost) + " more";
  if (!text.empty())
    printText("not used: %s\n", text.c_str());
}

void printDecode(const nlohmann::json &decode) {
  const int64_t page = decode.value("page_size", int64_t{0});
  const std::string cache =
      page ? "a cache in pages of " + std::to_string(page) + " tokens" : std::string("a contiguous cache");
  printText("decode   %lld rows one by one from %s, after a prompt in %lld chunks\n", decode.value("rows", 0LL),
            cache.c_str(), decode.value("prompt_chunks", 0LL));
  printChecks(decode["checks"]);
  printText("lists    %lld, unlike prefill's: %lld within ties, %lld outside of them\n", decode.value("lists", 0LL),
            decode.value("unlike_prefill_in_ties", 0LL), decode.value("unlike_prefill", 0LL));
}

} // namespace

void printRunReport(const nlohmann::json &report) {
  const nlohmann::json &plan = report["plan"];
  printText("%s\n", report["inputs"].get<std::string>().c_str());
  if (report.contains("not_used"))
    printUnused(report["not_used"]);
  printText("device   %s\n", plan.value("device", "").c_str());
  for (const nlohmann::json &fallback : plan["fallbacks"])
    printText("passed   %s\n", fallback.get<std::string>().c_str());
  for (const nlohmann::json &launch : plan["launches"])
    printText("kernel   %s  %s  %s  from %s, %s\n", launch.value("operator", "").c_str(),
              launch.value("template", "").c_str(), launch.value("config", "").c_str(),
              launch.value("source", "").c_str(), launch.value("tuned", false) ? "tuned" : "not tuned");
  std::string times;
  for (const char *phase : {"lookup", "render", "compile", "tune", "load", "run"})
    times += (times.empty() ? "" : ", ") + std::string(phase) + " " +
             millisecondsText(report["milliseconds"].value(phase, 0.0));
  printText("time     %s\n", times.c_str());
  printText("compiler %s\n", report.value("compiler_mapped", false) ? "mapped into this process" : "not mapped");
  if (const std::vector<std::string> ignored = report.value("ignored", std::vector<std::string>()); !ignored.empty())
    printText("ignored  tensors of the file that the operator does not read: %s\n", joined(ignored, ", ").c_str());
  if (report.contains("selecting"))
    printText("selects  %lld of %lld queries have more blocks than they may attend\n",
              report["selecting"].value("leave_blocks_out", 0LL), report["selecting"].value("queries", 0LL));
  if (report.value("checked", false))
    printText("checked  in the interpreter, which has found nothing\n");
  if (report.contains("checks"))
    printChecks(report["checks"]);
  if (report.contains("decode"))
    for (const nlohmann::json &decode : report["decode"])
      printDecode(decode);
}

} // namespace nsa::tools
