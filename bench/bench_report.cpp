#include "bench/bench_report.h"

#include <cmath>
#include <filesystem>
#include <fstream>

namespace nsa::bench {
namespace {

// Enough digits to compare, few enough to read in a diff.
double rounded(double value) {
  if (value == 0)
    return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 3);
  return std::round(value / unit) * unit;
}

Status writeText(const std::filesystem::path &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status::ok() : Status::error(ErrorCode::kIoError, path.string() + " cannot be written");
}

} // namespace

BenchReport::BenchReport(nlohmann::json machine, const FmaPeak &peak) {
  json["machine"] = std::move(machine);
  json["fma_peak"] = {{"vector_bits", peak.vectorBits}, {"threads", peak.threads}, {"gflops", std::round(peak.gflops)}};
  json["results"] = nlohmann::ordered_json::array();
}

void BenchReport::add(const BenchCase &benchCase, const std::string &kind, const BenchResult &result) {
  const Spec &spec = benchCase.spec;
  json["results"].push_back({{"op", operatorName(spec.op)},
                             {"dtype", dtypeName(spec.dtype)},
                             {"heads", benchCase.name},
                             {"query_heads", spec.queryHeads},
                             {"kv_heads", spec.kvHeads},
                             {"qk_dim", spec.qkDim},
                             {"v_dim", spec.vDim},
                             {"tokens", benchCase.maxima.seqlenK},
                             {"window", spec.op == Operator::kWindow ? spec.window : 0},
                             {"kind", kind},
                             {"template", result.templateName},
                             {"config", result.config},
                             {"median_ms", rounded(result.medianMs)},
                             {"fastest_ms", rounded(result.fastestMs)},
                             {"slowest_ms", rounded(result.slowestMs)},
                             {"tflops", rounded(result.tflops)},
                             {"sampled_relative_rms", rounded(result.sampledError)}});
}

Status BenchReport::write(const std::string &folder) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::error(ErrorCode::kIoError, folder + ": " + error.message());
  std::string csv;
  for (const auto &row : json["results"]) {
    if (csv.empty()) {
      for (const auto &[name, unused] : row.items())
        csv += (csv.empty() ? "" : ",") + name;
      csv += "\n";
    }
    std::string line;
    for (const auto &[unused, value] : row.items())
      line += (line.empty() ? "" : ",") + (value.is_string() ? value.get<std::string>() : value.dump());
    csv += line + "\n";
  }
  NSA_RETURN_IF_ERROR(writeText(std::filesystem::path(folder) / "attention.json", json.dump(1) + "\n"));
  return writeText(std::filesystem::path(folder) / "attention.csv", csv);
}

} // namespace nsa::bench
