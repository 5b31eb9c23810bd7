// Tunes one task once. A TuningSession gives the tuner three callbacks: to compile a candidate with the compiler
// library, to compare its result with the result of the tile program on random inputs, and to measure its time on the
// device.
// Ownership: a TuningSession borrows everything that it is made with.
// Thread-safety: `run` may be called once, from one thread.
#pragma once

#include "autotune/tuner/tuner.h"
#include "cache/kernel_store.h"
#include "runtime/engine/choices/kernel_task.h"
#include "runtime/engine/compile/candidate_memo.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/options/options.h"
#include "runtime/engine/report/counters.h"
#include "runtime/engine/tune/trial.h"
#include "runtime/process/log.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace nsa {

class TuningSession {
public:
  struct Environment {
    Device &device;
    const CompilerLibrary &compiler;
    const EngineOptions &options;
    const Logger &logger;
    Counters &counters;
    CandidateMemo &memo;
    KernelTask::Serve serve;                     // gives the other kernels of decode
    const std::function<bool()> *stop = nullptr; // asked whenever the budget is; true ends the tuning
  };
  TuningSession(const Environment &environment, const KernelTask &task, CompileRequest request,
                std::vector<Candidate> candidates);

  Result<TuneReport> run();

  // Return the compiled kernel and the loaded kernel of the winner. `run` must have succeeded before.
  const CompiledKernel &winner() const { return *compiled[report.winner]; }
  const std::shared_ptr<const LoadedKernel> &winnerKernel() const { return kernels[report.winner]; }
  // Returns the rows that are stored as evidence of the choice: each tried candidate with its outcome, and the number
  // of candidates that were not tried.
  std::vector<Measurement> evidence() const;
  uint64_t seed() const { return inputSeed; }
  // As Trial::shapeText and Trial::cut.
  std::string shapeText() const { return trial->shapeText(); }
  std::string cut() const { return trial->cut(); }

private:
  Result<std::unique_ptr<Trial>> makeTrial(uint64_t seed, double mostBytes) const;
  Status compile(size_t index);
  Status check(size_t index);
  Result<double> measure(size_t index);
  // Replaces `trial` by a new Trial, whose tensors have other random values and other addresses. If the new Trial
  // cannot be made, `trial` stays as it is.
  void restart();
  // Compiles a candidate of `of` by a request for its kernels.
  Result<std::shared_ptr<const LoadedKernel>> build(const KernelTask &of, CompileRequest by, const Candidate &candidate,
                                                    std::shared_ptr<const CompiledKernel> &kernel);
  // Whether the task says itself with what is compared.
  bool namesReference() const { return task.reference || !task.referenceChoices.empty(); }
  // Compiles the cheapest configuration of what the task names as its reference, or else of the tile program, which is
  // not among the candidates where force_variant names another template.
  Result<std::shared_ptr<const LoadedKernel>> buildReference();
  Result<TuningResult> namedResult();
  Status prepareReference();
  // Takes note of why a candidate does not compile.
  void noteFailure(const Status &why);

  Environment environment;
  const KernelTask &task;
  CompileRequest request;
  std::vector<Candidate> candidates;
  std::vector<std::shared_ptr<const CompiledKernel>>
      compiled; // by candidate; each is written by its own call of `compile`
  std::vector<std::shared_ptr<const LoadedKernel>> kernels; // by candidate
  std::unique_ptr<Trial> trial;
  std::optional<TuningResult> reference;
  std::mutex failureMutex;
  Status failure;                // of the first candidate that did not compile
  bool hasOtherFailures = false; // whether another candidate did not compile for another reason
  uint64_t inputSeed, trialSeed;
  double trialLimit = 0; // bytes with which the first trial was made
  TuneReport report;
};

} // namespace nsa
