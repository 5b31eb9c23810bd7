// The kernel of a program of one's own as one of the implementations that a bench compares (a Contender).
// Ownership: a ProgramContender borrows accelerator and flush buffer, and owns its program and its tensors.
// Thread-safety: only one thread at a time may use a ProgramContender.
#pragma once

#include "bench/measure/contender.h"
#include "tools/support/program_job.h"

#include <memory>
#include <string>

namespace nsa::bench {

class ProgramContender final : public Contender {
public:
  // Makes the kernel (compiles or tunes it) and runs it `warmUps` times on the inputs, at least once. A kernel that
  // reports a fault or writes around its tensors is an error.
  static Result<std::unique_ptr<ProgramContender>>
  make(std::string name, nsa_engine *engine, const tools::ProgramRequest &request, const tools::ProgramInputs &inputs,
       tools::Accelerator &accelerator, const tools::Buffer *flush, int warmUps);

  const std::string &name() const override { return contenderName; }
  Result<double> sample() override;
  nlohmann::ordered_json facts() const override;

private:
  ProgramContender(std::string name, tools::Accelerator &accelerator, const tools::Buffer *flush)
      : contenderName(std::move(name)), accelerator(accelerator), flush(flush) {}

  std::string contenderName;
  tools::Accelerator &accelerator;
  const tools::Buffer *flush;
  tools::DeviceProgram job;
  tools::ProgramHandle program;
  nlohmann::json description;
};

} // namespace nsa::bench
