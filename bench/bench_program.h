// What every bench program is told and how it ends. Exit codes: 0 measured, 1 failed (the reason on stderr), 2 the
// command line was not understood.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"
#include "tools/support/engine.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace nsa::bench {

// A bench adds its own by deriving from it.
struct CommonFlags {
  std::string device = "cpu", results, compiler;
  bool quick = false;

  // For an engine on this device; `cache` is its database. Without one it has nothing stored.
  tools::EngineSettings engineSettings(nsa_miss_policy policy, const std::string &cache) const;
  tools::EngineSettings engineSettings(nsa_miss_policy policy) const;
};

class BenchProgram {
public:
  // The program nsa_bench_NAME, which writes NAME.json and NAME.csv into the folder --results. `quick` says what is
  // measured with --quick. Borrows the flags.
  BenchProgram(const std::string &name, const std::string &purpose, CommonFlags &flags, const std::string &quick);

  // For the options that no other bench has.
  CLI::App &options() { return app; }
  void addDevice();
  void addCount(const std::string &option, int &count, const std::string &meaning, int least, int most);
  void addTuneBudget(double &seconds);

  // Reads the command line, measures and reports what went wrong; the exit code.
  int run(int argc, char **argv, const std::function<Status()> &measure);

private:
  CLI::App app;
  CommonFlags &flags;
};

} // namespace nsa::bench
