#include "bench/verbs/program_bench.h"

#include "bench/measure/program_contender.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace nsa::bench {

namespace {

constexpr uint64_t kSeed = 1;

// A field that is null where the program declares nothing.
Result<nlohmann::ordered_json> evaluated(const std::optional<ProgramSize> &part, const char *name,
                                         const tools::ProgramInputs &inputs) {
  if (!part)
    return nlohmann::ordered_json();
  NSA_ASSIGN_OR_RETURN(const int64_t value, part->evaluate(inputs.scalars));
  if (value < 1)
    return Status::invalid(std::string("work ") + name, std::to_string(value), "must be at least 1",
                           "it is '" + part->text() + "'");
  return nlohmann::ordered_json(static_cast<double>(value));
}

// A rate of 0 is not known: of a GPU on which none were measured, only the memory rate that its driver states is.
Roof roofOf(const BenchDevice &device, const BenchReport &report, DType dtype) {
  if (!device.accelerator().isCuda())
    return processorRoof();
  if (const std::optional<Roof> measured = bench::roofOf(report.deviceText("name"), dtype))
    return *measured;
  return {.tflops = 0, .terabytesPerSecond = std::strtod(report.deviceText("bandwidth_gbs").c_str(), nullptr) * 1e-3};
}

nlohmann::ordered_json rateOrNull(double rate) {
  return rate > 0 ? nlohmann::ordered_json(rate) : nlohmann::ordered_json();
}

// The lines of the program's own texts that are neither empty nor a comment.
int linesOf(const ProgramSource &source) {
  int lines = 0;
  const auto count = [&](const std::string &text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      if (const size_t first = line.find_first_not_of(' '); first != std::string::npos)
        lines += line.compare(first, 2, "//") != 0;
  };
  count(source.text);
  for (const auto &[name, text] : source.libraries)
    count(text);
  return lines;
}

// The rates of a kernel, and their shares of the device's. The share of the roof is the greater one of both shares. It
// is null unless the device's rates are known for all work that is declared.
void addRates(nlohmann::ordered_json &row, double milliseconds, const Roof &roof) {
  bool isKnown = false, isLacking = false;
  double most = 0;
  const auto add = [&](const char *work, const char *rate, double unit, const char *share, double limit) {
    row[rate] = row[share] = nullptr;
    if (row[work].is_null())
      return;
    const double reached = row[work].get<double>() / milliseconds * 1e3 / unit;
    row[rate] = reached;
    (limit > 0 ? isKnown : isLacking) = true;
    if (limit <= 0)
      return;
    row[share] = 100 * reached / limit;
    most = std::max(most, 100 * reached / limit);
  };
  add("flops", "tflops", 1e12, "percent_of_arithmetic", roof.tflops);
  add("bytes", "gigabytes_per_second", 1e9, "percent_of_memory", roof.terabytesPerSecond * 1e3);
  row["percent_of_roof"] = isKnown && !isLacking ? nlohmann::ordered_json(most) : nlohmann::ordered_json();
}

} // namespace

Result<nlohmann::ordered_json> benchProgram(BenchDevice &device, const ProgramChoice &choice, PeerProcess *peers) {
  NSA_ASSIGN_OR_RETURN(const ProgramSource::Pointer source, ProgramSource::read(choice.request.path));
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramInterface> interface,
                       ProgramInterface::make(*source, choice.request.values));
  const ProgramInterface::Work &work = interface->work();
  if (choice.progress)
    choice.progress(interface->name() + (choice.tuned ? ", with tuning" : ""));
  NSA_ASSIGN_OR_RETURN(tools::ProgramInputs inputs, tools::drawProgramInputs(interface, kSeed));
  inputs.setOpenScalars();
  nlohmann::ordered_json fields = {{"program", interface->name()}, {"values", inputs.valuesText()}};
  NSA_ASSIGN_OR_RETURN(fields["flops"], evaluated(work.flops, "flops", inputs));
  NSA_ASSIGN_OR_RETURN(fields["bytes"], evaluated(work.bytes, "bytes", inputs));

  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  if (peers)
    facts["peers"] = peers->versions();
  NSA_ASSIGN_OR_RETURN(
      BenchReport report,
      choice.report(device, interface->name(),
                    {"program", "values", "implementation", "median ms = median_ms", "TFLOP/s = tflops",
                     "% of arithmetic = percent_of_arithmetic", "GB/s = gigabytes_per_second",
                     "% of memory = percent_of_memory", "% of roof = percent_of_roof", "lines",
                     "compile ms = compile_ms", "config", "note"},
                    facts));
  Roof roof;
  if (work.flops || work.bytes) {
    roof = roofOf(device, report, interface->dtype());
    NSA_RETURN_IF_ERROR(report.setFact(
        "roof", {{"tflops", rateOrNull(roof.tflops)}, {"terabytes_per_second", rateOrNull(roof.terabytesPerSecond)}}));
  }
  std::vector<std::unique_ptr<ProgramContender>> ours;
  for (const bool tunes : {false, true}) {
    if (tunes && !choice.tuned)
      continue;
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<ProgramContender> made,
                         ProgramContender::make(tunes ? "nsa tuned" : "nsa default", device.engine(tunes),
                                                choice.request, inputs, device.accelerator(), device.flush(),
                                                choice.warmUps));
    ours.push_back(std::move(made));
  }
  std::vector<std::unique_ptr<Contender>> others;
  const auto addAbsent = [&](const std::string &name, const std::string &reason) {
    nlohmann::ordered_json row = fields;
    row["implementation"] = name;
    row["note"] = "does not serve: " + reason;
    return report.add(std::move(row));
  };
  if (peers) {
    NSA_ASSIGN_OR_RETURN(PeerProcess::Peers prepared, peers->prepare({{"program", interface->name()},
                                                                      {"dtype", dtypeName(interface->dtype())},
                                                                      {"values", choice.request.values}},
                                                                     device.flush()));
    others = std::move(prepared.contenders);
    for (const PeerProcess::Absent &absent : prepared.absent)
      NSA_RETURN_IF_ERROR(addAbsent(absent.name, absent.reason));
  }
  const std::vector<Contender *> everybody = allOf(ours, others);
  const std::vector<Result<Times>> times = measureInTurns(everybody, choice.samples);
  for (size_t i = 0; i < everybody.size(); ++i) {
    const bool isOurs = i < ours.size();
    if (!times[i] && isOurs)
      return times[i].status();
    if (!times[i]) {
      NSA_RETURN_IF_ERROR(addAbsent(everybody[i]->name(), times[i].status().error().message));
      continue;
    }
    nlohmann::ordered_json row = fields;
    row["implementation"] = everybody[i]->name();
    row.update(times[i]->fields());
    addRates(row, times[i]->medianMs, roof);
    if (isOurs)
      row["lines"] = linesOf(*source);
    row.update(everybody[i]->facts());
    NSA_RETURN_IF_ERROR(report.add(std::move(row)));
  }
  return report.content();
}

} // namespace nsa::bench
