// A plan of ours as a contender: checked on sampled rows against the fp64 reference before it may be measured.
// Ownership: borrows accelerator, tensors and flush buffer; owns its plan. Thread-safety: one thread.
#pragma once

#include "bench/contender.h"
#include "tools/support/operator_job.h"

namespace nsa::bench {

// What all plans of one shape share.
struct Arena {
  tools::Accelerator &accelerator;
  const tools::OperatorInputs &inputs;
  tools::DeviceOperator &job;
  tools::Buffer &flush; // larger than the L2; empty on the CPU
  int warmUps = 3;      // caches, clocks and lazy loading
};

// What is written before each sample, so that nobody finds anything in a GPU's L2; empty on the CPU.
Result<tools::Buffer> flushBuffer(tools::Accelerator &accelerator);

class PlanContender final : public Contender {
public:
  // Makes the plan (compiles or tunes), runs it and checks the result: a wrong kernel has no speed, so it is an error.
  static Result<std::unique_ptr<PlanContender>> make(std::string name, nsa_engine *engine, const Arena &arena);

  const std::string &name() const override { return contenderName; }
  Result<double> sample() override;
  // One run, whose result is not waited for on a GPU.
  Status enqueue() { return arena.job.enqueue(plan.get()); }
  nlohmann::ordered_json facts() const override;
  // "ms_cmp" and so on: the median time of each part of a run.
  Result<nlohmann::ordered_json> parts(int samples);
  // The template of the kernel that serves one operator of it, and its choices.
  std::string templateOf(Operator op) const { return fieldOf(op, "template"); }
  std::string configOf(Operator op) const { return fieldOf(op, "config"); }
  int64_t workspaceBytes() const { return description.value("workspace_bytes", int64_t{0}); }
  double tuneSeconds() const { return description["milliseconds"].value("tune", 0.0) / 1000; }

private:
  Status flushCaches();
  std::string fieldOf(Operator op, const char *field) const;
  PlanContender(std::string name, const Arena &arena) : contenderName(std::move(name)), arena(arena) {}

  std::string contenderName;
  Arena arena;
  tools::PlanHandle plan;
  nlohmann::json description;
  double relativeError = 0;
};

} // namespace nsa::bench
