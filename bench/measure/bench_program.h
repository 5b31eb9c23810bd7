// The command line options that all bench programs share, and how a bench program ends. Exit codes: 0 measured, 1
// failed (with the reason on stderr), 2 a wrong command line.
// Thread-safety: only one thread at a time may use a BenchProgram.
#pragma once

#include "runtime/base/status.h"
#include "tools/support/engine.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace nsa::bench {

// The options of every bench. A bench adds its own options by deriving from CommonFlags.
struct CommonFlags {
  std::string device = "cpu", results, compiler;
  bool quick = false;

  // Settings of an engine on the bench's device. `cache` is its database. An engine without a database begins without
  // stored kernels.
  tools::EngineSettings engineSettings(nsa_miss_policy policy, const std::string &cache) const;
  tools::EngineSettings engineSettings(nsa_miss_policy policy) const;
};

class BenchProgram {
public:
  // The program nsa_bench_NAME, which writes NAME.json and NAME.csv into the folder --results. `quick` says what
  // --quick measures. Borrows the flags.
  BenchProgram(const std::string &name, const std::string &purpose, CommonFlags &flags, const std::string &quick);

  // The parser of the command line, to which a bench adds options that no other bench has.
  CLI::App &options() { return app; }
  void addDevice();
  void addCount(const std::string &option, int &count, const std::string &meaning, int least, int most);
  void addKernelBudget(double &seconds);
  // Adds --ops: a list of some of the operators that `ops` names, and by default all of them. The list may
  // also name `others`.
  void addOperators(std::vector<std::string> &ops, const std::vector<std::string> &others = {});

  // Reads the command line, runs `measure`, and prints its error if it fails. Returns the exit code.
  int run(int argc, char **argv, const std::function<Status()> &measure);

private:
  CLI::App app;
  CommonFlags &flags;
};

} // namespace nsa::bench
