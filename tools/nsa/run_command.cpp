// `nsa run`: one operator over the tensors of a file, and a report of which kernel ran and what it cost.
#include "tools/nsa/command.h"
#include "tools/nsa/file_io.h"
#include "tools/nsa/safetensors.h"

#include "tools/support/accelerator.h"

#include <cstdio>
#include <fstream>
#include <memory>

namespace nsa::tools {
namespace {

struct RunFlags {
  Operator op = Operator::kWindow;
  std::string configPath, inputPath, outputPath;
  EngineFlags engine;
  bool check = false;
  bool json = false;
};

std::string inputsText(const AttentionInputs &inputs) {
  const Spec &spec = inputs.spec;
  std::string text = std::string(operatorName(spec.op)) + " " + std::string(dtypeName(spec.dtype)) + ", q " +
                     shapeText(inputs.q.shape) + ", k " + shapeText(inputs.k.shape) + ", v " +
                     shapeText(inputs.v.shape);
  if (spec.op == Operator::kWindow)
    text += ", window " + std::to_string(spec.window);
  if (spec.layout == Layout::kPacked)
    text += ", " + std::to_string(inputs.maxima.batch) + " packed sequences";
  return text;
}

// Whether this process has opened the compiler, read off its own memory map.
bool isCompilerMapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libnsa_compiler") != std::string::npos)
      return true;
  return false;
}

// Whatever the engine fell back from, and where each millisecond went.
void printReport(const nlohmann::json &report) {
  const nlohmann::json &plan = report["plan"];
  std::printf("%s\n", report["inputs"].get<std::string>().c_str());
  std::printf("device   %s\n", plan.value("device", "").c_str());
  for (const nlohmann::json &fallback : plan["fallbacks"])
    std::printf("passed   %s\n", fallback.get<std::string>().c_str());
  for (const nlohmann::json &launch : plan["launches"])
    std::printf("kernel   %s  %s  from %s, %s\n", launch.value("template", "").c_str(),
                launch.value("config", "").c_str(), launch.value("source", "").c_str(),
                launch.value("tuned", false) ? "tuned" : "not tuned");
  std::string times;
  for (const char *phase : {"lookup", "render", "compile", "tune", "load", "run"})
    times += (times.empty() ? "" : ", ") + std::string(phase) + " " +
             millisecondsText(report["milliseconds"].value(phase, 0.0));
  std::printf("time     %s\n", times.c_str());
  std::printf("compiler %s\n", report.value("compiler_mapped", false) ? "mapped into this process" : "not mapped");
  if (report.contains("error")) {
    const nlohmann::json &error = report["error"];
    std::printf("error    relative RMS %.3g (limit %.3g), worst row %.3g (limit %.3g), lse %.3g (limit %.3g): %s\n",
                error.value("relative_rms", 0.0), error.value("relative_rms_limit", 0.0), error.value("worst_row", 0.0),
                error.value("worst_row_limit", 0.0), error.value("lse", 0.0), error.value("lse_limit", 0.0),
                error.value("within", false) ? "within the contract" : "NOT within the contract");
  }
}

nlohmann::json errorJson(const reference::ErrorReport &error, const reference::Tolerance &tolerance) {
  return {{"relative_rms", error.relativeRms},
          {"relative_rms_limit", tolerance.relativeRms},
          {"worst_row", error.worstRow},
          {"worst_row_limit", tolerance.worstRow},
          {"lse", error.lse},
          {"lse_limit", tolerance.lse},
          {"not_finite", error.notFinite},
          {"within", error.within(tolerance)}};
}

Status run(const RunFlags &flags) {
  Result<ConfigFile> config = ConfigFile::read(flags.configPath);
  if (!config)
    return config.status();
  Result<SafetensorsFile> file = SafetensorsFile::open(flags.inputPath);
  if (!file)
    return file.status();
  Result<AttentionFile> attention = readAttentionFile(flags.op, *config, *file);
  if (!attention)
    return attention.status();
  const AttentionInputs &inputs = attention->inputs;

  // Before anything is compiled or tuned for it.
  Result<OutputFile> output = OutputFile::create(flags.outputPath);
  if (!output)
    return output.status();
  Result<EngineHandle> engine = createEngine(flags.engine.settings);
  if (!engine)
    return engine.status();
  Result<std::string> device = deviceName(engine->get());
  if (!device)
    return device.status();
  Result<std::unique_ptr<Accelerator>> accelerator = Accelerator::open(*device);
  if (!accelerator)
    return accelerator.status();
  Result<PlanHandle> plan = createPlan(engine->get(), inputs.spec, inputs.maxima, (*accelerator)->stream());
  if (!plan)
    return plan.status();
  Result<DeviceAttention> job = DeviceAttention::upload(**accelerator, inputs);
  if (!job)
    return job.status();
  NSA_RETURN_IF_ERROR(job->allocateWorkspace(plan->get()));
  Result<double> runMs = (*accelerator)->time([&] { return job->enqueue(plan->get()); });
  if (!runMs)
    return runMs.status();
  nsa_error error{};
  NSA_RETURN_IF_ERROR(toStatus(nsa_plan_status(plan->get(), (*accelerator)->stream(), &error), error));
  Result<AttentionOutputs> outputs = job->download();
  if (!outputs)
    return outputs.status();

  nlohmann::json report;
  report["inputs"] = inputsText(inputs);
  report["plan"] = describePlan(plan->get());
  report["milliseconds"] = report["plan"]["milliseconds"];
  report["milliseconds"]["run"] = *runMs;
  report["compiler_mapped"] = isCompilerMapped();
  Status verdict;
  if (flags.check) {
    const reference::Tolerance tolerance = reference::toleranceOf(inputs.spec.dtype);
    const reference::ErrorReport measured = compareWithReference(inputs, *outputs);
    report["error"] = errorJson(measured, tolerance);
    if (!measured.within(tolerance))
      verdict =
          Status::error(ErrorCode::kInternal, "the result is not within the contract: " + measured.toString(tolerance),
                        "no output was written");
  }
  if (verdict.isOk()) {
    if (attention->withoutBatch)
      for (HostTensor *tensor : {&outputs->out, &outputs->lse})
        tensor->shape.erase(tensor->shape.begin());
    verdict = writeSafetensors(std::move(output), {{"out", &outputs->out}, {"lse", &outputs->lse}});
  }
  if (verdict.isOk())
    report["output"] = flags.outputPath;
  if (flags.json)
    printJson(report);
  else
    printReport(report);
  return verdict;
}

} // namespace

void addRunCommand(CLI::App &app, Action &action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App *command = app.add_subcommand("run", "Run an operator over the tensors of a safetensors file");
  addOperatorFlag(*command, flags->op);
  command
      ->add_option("--config", flags->configPath,
                   "JSON file: window, scale; query_heads, kv_heads, qk_dim, v_dim, dtype, layout come from the "
                   "tensors and are compared")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--input", flags->inputPath,
                   "Safetensors file: q, k_win (else k), v_win (else v), cu_seqlens_q, cu_seqlens_k")
      ->required()
      ->type_name("FILE");
  command->add_option("--output", flags->outputPath, "Safetensors file to write: out, lse")
      ->required()
      ->type_name("FILE");
  flags->engine.addDevice(*command);
  flags->engine.addMiss(*command);
  flags->engine.addCache(*command);
  flags->engine.addTuneBudget(*command);
  command->add_flag("--check", flags->check,
                    "Compare with the fp64 reference; beyond the contract's limits is a failure and writes nothing");
  command->add_flag("--json", flags->json, "Print a JSON report");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

} // namespace nsa::tools
