// A plan of this library as one of the implementations that a bench compares (a Contender). Some rows of a plan's
// result are compared with the fp64 reference before the plan may be measured.
// Ownership: an Arena borrows accelerator and flush buffer. A PlanContender borrows its arena, and owns its plan.
// Thread-safety: only one thread at a time may use a PlanContender.
#pragma once

#include "bench/measure/contender.h"
#include "tools/support/operator_job.h"

namespace nsa::bench {

// The buffer that is written before each sample, so that each run begins with a cold L2 on a GPU. Empty on the CPU.
Result<tools::Buffer> flushBuffer(tools::Accelerator &accelerator);
// Writes into the buffer; nullptr, on the CPU: does nothing.
Status flushCaches(tools::Accelerator &accelerator, const tools::Buffer *flush, int value = 0);

// The milliseconds of one run of what `enqueue` enqueues. On a GPU the run begins with a cold L2. On the CPU, short
// runs are repeated, and the result is their mean.
Result<double> timeRun(tools::Accelerator &accelerator, const tools::Buffer *flush,
                       const std::function<Status()> &enqueue);
// What a report shows of one kernel: template, config, registers, spilled and shared bytes, threads. `launch` is an
// entry of the array `launches` of nsa_plan_describe, or the text of nsa_program_describe.
nlohmann::ordered_json kernelFacts(const nlohmann::json &launch);

// The device, inputs and buffers that all plans of one shape share.
struct Arena {
  tools::Accelerator &accelerator;
  const tools::Buffer *flush; // larger than the L2; nullptr on the CPU
  int warmUps;                // runs that warm caches and clocks and do lazy loading
  tools::OperatorInputs inputs;
  tools::DeviceOperator job;

  // Uploads the inputs. Of the optional outputs, the ones are computed that `wanted` names and that the check of a
  // result needs. Plans do not get the inputs that `withheld` names, which only the check reads.
  static Result<std::unique_ptr<Arena>> make(tools::Accelerator &accelerator, const tools::Buffer *flush,
                                             tools::OperatorInputs inputs, int warmUps = 3,
                                             std::set<TensorName> wanted = {},
                                             const std::set<TensorName> &withheld = {});
};

class PlanContender final : public Contender {
public:
  // Makes the plan (compiles or tunes its kernels), runs the plan and checks the result. A wrong result is an error,
  // because the speed of a wrong kernel means nothing.
  static Result<std::unique_ptr<PlanContender>> make(std::string name, nsa_engine *engine, Arena &arena);

  const std::string &name() const override { return contenderName; }
  Result<double> sample() override;
  // Enqueues one run. On a GPU `enqueue` does not wait for the result.
  Status enqueue() { return arena.job.enqueue(plan.get()); }
  nlohmann::ordered_json facts() const override;
  // The median time of each part of a run, as fields such as "ms_cmp".
  Result<nlohmann::ordered_json> parts(int samples);
  // The template and the config of the kernel that computes the operator of this name.
  std::string templateOf(std::string_view op) const { return fieldOf(op, "template"); }
  std::string configOf(std::string_view op) const { return fieldOf(op, "config"); }
  int64_t workspaceBytes() const { return description.value("workspace_bytes", int64_t{0}); }
  double tuneSeconds() const { return description["milliseconds"].value("tune", 0.0) / 1000; }

private:
  std::string fieldOf(std::string_view op, const char *field) const;
  PlanContender(std::string name, Arena &arena) : contenderName(std::move(name)), arena(arena) {}

  std::string contenderName;
  Arena &arena;
  tools::PlanHandle plan;
  nlohmann::json description;
  double relativeError = 0;
};

} // namespace nsa::bench
