#include "bench/measure/machine_facts.h"

#include <ctime>
#include <fstream>
#include <thread>

namespace nsa::bench {

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

Result<nlohmann::json> machineFacts(nsa_engine *engine) {
  NSA_ASSIGN_OR_RETURN(nlohmann::json description, tools::describeEngine(engine));
  // Only what bears on a measurement: paths of the machine stay on the machine.
  nlohmann::json facts = {{"device", description["device"]},
                          {"processor", processorName()},
                          {"cores", std::thread::hardware_concurrency()},
                          {"version", nsa_version()},
                          {"source", nsa_source_id()}};
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  std::strftime(date, sizeof date, "%Y-%m-%d", &day);
  facts["date"] = date;
  return facts;
}

} // namespace nsa::bench
