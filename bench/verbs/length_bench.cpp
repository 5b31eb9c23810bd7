#include "bench/verbs/length_bench.h"

namespace nsa::bench {

void LengthChoice::say(const std::string &verb, const BenchCase &benchCase) const {
  if (progress)
    progress(verb + " " + benchCase.name + ", " + std::to_string(benchCase.maxima.seqlenK) + " tokens" +
             (tuned ? ", with tuning" : ""));
}

Result<BenchReport> LengthChoice::report(const BenchDevice &device, const std::string &verb,
                                         const BenchReport::Table &table, const nlohmann::ordered_json &facts) const {
  nlohmann::ordered_json all = {{"samples", samples}};
  all.update(facts);
  return BenchReport::create(device.engine(false), results, verb, all, table);
}

Status LengthChoice::measure(BenchDevice &device, const BenchCase &benchCase, const nlohmann::ordered_json &fields,
                             BenchReport &report, const Figures &figures) const {
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena, device.arena(drawInputs(benchCase), warmUps));
  NSA_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PlanContender>> ours, device.contenders(*arena, tuned));
  NSA_ASSIGN_OR_RETURN(const std::vector<Times> times, measureAll(allOf(ours), samples));
  for (size_t i = 0; i < ours.size(); ++i) {
    nlohmann::ordered_json row = fields;
    row["implementation"] = ours[i]->name();
    row.update(times[i].fields());
    figures(row, *ours[i], *arena, times[i].medianMs);
    row.update(ours[i]->facts());
    NSA_RETURN_IF_ERROR(report.add(std::move(row)));
  }
  return Status::ok();
}

} // namespace nsa::bench
