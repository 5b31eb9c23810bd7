#include "bench/measure/program_contender.h"

#include "bench/measure/plan_contender.h"

#include <algorithm>

namespace nsa::bench {

Result<std::unique_ptr<ProgramContender>> ProgramContender::make(std::string name, nsa_engine *engine,
                                                                 const tools::ProgramRequest &request,
                                                                 const tools::ProgramInputs &inputs,
                                                                 tools::Accelerator &accelerator,
                                                                 const tools::Buffer *flush, int warmUps) {
  std::unique_ptr<ProgramContender> contender(new ProgramContender(std::move(name), accelerator, flush));
  NSA_ASSIGN_OR_RETURN(contender->program, request.create(engine, accelerator.stream()));
  contender->description = tools::describeProgram(contender->program.get());
  NSA_ASSIGN_OR_RETURN(contender->job,
                       tools::DeviceProgram::upload(accelerator, inputs, outputsOf(inputs, /*withOptional=*/true)));
  NSA_RETURN_IF_ERROR(contender->job.allocateWorkspace(contender->program.get()));
  for (int i = 0; i < std::max(warmUps, 1); ++i)
    NSA_RETURN_IF_ERROR(contender->sample().status());
  NSA_RETURN_IF_ERROR(tools::toStatus(nsa_program_status(contender->program.get(), accelerator.stream(), nullptr)));
  NSA_RETURN_IF_ERROR(contender->job.checkGuards());
  return contender;
}

Result<double> ProgramContender::sample() {
  return timeRun(accelerator, flush, [&] { return job.enqueue(program.get()); });
}

nlohmann::ordered_json ProgramContender::facts() const {
  nlohmann::ordered_json facts = kernelFacts(description);
  facts["compile_ms"] = description["milliseconds"].value("compile", 0.0);
  facts["tune_ms"] = description["milliseconds"].value("tune", 0.0);
  return facts;
}

} // namespace nsa::bench
