#include "tools/nsa/run_program.h"

#include "tools/nsa/files/file_io.h"
#include "tools/nsa/files/program_file.h"
#include "tools/nsa/run_report.h"
#include "tools/support/progress.h"

namespace nsa::tools {

namespace {

constexpr uint64_t kSeed = 1; // of drawn tensors

// Also completes the request's values by what the tensors say, and adds to `unused` the tensors that are not read.
Result<ProgramInputs> inputsOf(ProgramRequest &request, const std::string &inputPath,
                               std::vector<std::string> &unused) {
  NSA_ASSIGN_OR_RETURN(const ProgramSource::Pointer source, ProgramSource::read(request.path));
  if (!inputPath.empty()) {
    NSA_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::open(inputPath));
    Result<ProgramInputs> inputs = readProgramFile(*source, request.values, file);
    if (inputs)
      unused = unusedTensors(*inputs, file);
    return inputs;
  }
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramInterface> interface,
                       ProgramInterface::make(*source, request.values));
  return drawProgramInputs(std::move(interface), kSeed);
}

struct Ran {
  nlohmann::json kernel; // nsa_program_describe
  ProgramTensors outputs;
  double milliseconds = 0;
};

Result<Ran> runOnDevice(const ProgramRun &run, const ProgramRequest &request, const ProgramInputs &inputs,
                        const std::set<std::string> &outputs) {
  NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(run.settings));
  NSA_ASSIGN_OR_RETURN(std::string device, deviceName(engine.get()));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<Accelerator> accelerator, Accelerator::open(device));
  NSA_ASSIGN_OR_RETURN(ProgramHandle program, request.create(engine.get(), accelerator->stream()));
  if (run.check) {
    // The interpreter stores its results, and the run has to read what the program has not stored to yet.
    NSA_ASSIGN_OR_RETURN(const DeviceProgram copy, DeviceProgram::upload(*accelerator, inputs, outputs));
    NSA_RETURN_IF_ERROR(copy.check(program.get()));
  }
  NSA_ASSIGN_OR_RETURN(DeviceProgram job, DeviceProgram::upload(*accelerator, inputs, outputs));
  NSA_RETURN_IF_ERROR(job.allocateWorkspace(program.get()));
  Ran ran{describeProgram(program.get()), {}, 0};
  NSA_ASSIGN_OR_RETURN(ran.milliseconds, accelerator->time([&] { return job.enqueue(program.get()); }));
  NSA_RETURN_IF_ERROR(toStatus(nsa_program_status(program.get(), accelerator->stream(), nullptr)));
  NSA_ASSIGN_OR_RETURN(ran.outputs, job.download());
  return ran;
}

} // namespace

Status runProgram(const ProgramRun &run) {
  NSA_ASSIGN_OR_RETURN(ProgramRequest request, run.program.request());
  std::vector<std::string> unused;
  NSA_ASSIGN_OR_RETURN(const ProgramInputs inputs, inputsOf(request, run.inputPath, unused));
  const std::set<std::string> outputs = outputsOf(inputs, run.allOutputs);
  // Before anything is compiled or tuned for it.
  NSA_RETURN_IF_ERROR(inputs.check(outputs));
  NSA_RETURN_IF_ERROR(checkOutputPath(run.inputPath, run.outputPath));
  NSA_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(run.outputPath));
  Progress progress;
  progress.step("running " + inputs.interface->name());
  Result<Ran> ran = runOnDevice(run, request, inputs, outputs);
  progress.step("");
  if (!ran)
    return ran.status();
  std::vector<std::pair<std::string, const HostTensor *>> list;
  for (const auto &[name, tensor] : ran->outputs)
    list.emplace_back(name, &tensor);
  NSA_RETURN_IF_ERROR(writeSafetensors(std::move(output), list));

  nlohmann::json report = kernelReport(ran->kernel, ran->milliseconds);
  report["inputs"] = inputs.toString() + (run.inputPath.empty() ? ", drawn" : "");
  report["not_used"] = unused;
  report["checked"] = run.check;
  report["output"] = run.outputPath;
  if (run.json)
    printJson(report);
  else
    printRunReport(report);
  return Status::ok();
}

} // namespace nsa::tools
