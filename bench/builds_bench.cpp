// nsa_bench_builds: the record of a comparison of two builds, from the records that their benches wrote in turns
// (tools/compare_builds speed).
#include "bench/measure/bench_report.h"
#include "bench/measure/build_pairs.h"
#include "tools/render_tables/tables.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace nsa::bench {
namespace {

Status compare(const std::string &rounds, const std::string &results) {
  NSA_ASSIGN_OR_RETURN(const std::vector<BuildRound> read, readRounds(rounds));
  NSA_ASSIGN_OR_RETURN(const BuildPairs pairs, pairBuilds(read));
  NSA_ASSIGN_OR_RETURN(BenchReport report, BenchReport::create(results, "builds", pairs.facts,
                                                               {"record", "measured = what", "unit", "old", "new",
                                                                "new / old = ratio", "least", "greatest"}));
  for (const nlohmann::ordered_json &row : pairs.rows)
    NSA_RETURN_IF_ERROR(report.add(row));
  std::printf("%s\n", tables::terminalTable(report.content()).c_str());
  return Status::ok();
}

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  CLI::App app("Compares the records of two builds that were measured in turns.", "nsa_bench_builds");
  std::string rounds, results;
  app.add_option("ROUNDS", rounds, "Folder with the records of round N in old/N and new/N")->required()->type_name("");
  app.add_option("--results", results, "Folder for builds.json and builds.csv, e.g. bench/results/h200")
      ->required()
      ->type_name("DIR");
  CLI11_PARSE(app, argc, argv);
  const nsa::Status status = nsa::bench::compare(rounds, results);
  if (status.isOk())
    return 0;
  std::fprintf(stderr, "nsa_bench_builds: %s\n", status.toString().c_str());
  return 1;
}
