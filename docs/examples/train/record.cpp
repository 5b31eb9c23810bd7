#include "record.h"

#include "parallel.h"

#include <nsa/nsa.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>

namespace example {
namespace {

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

std::string today() {
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(date, sizeof date, "%Y-%m-%d", &parts);
  return date;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

} // namespace

void Record::checkPath(const std::string &path) {
  if (!std::ofstream(path, std::ios::app)) // keeps what the file holds
    throw std::runtime_error(path + " cannot be written");
}

void Record::write(const std::string &path) const {
  std::ofstream file(path);
  file << "{\n \"machine\": {\n  \"cores\": " << threadCount() << ",\n  \"date\": \"" << today()
       << "\",\n  \"device\": {\"kind\": \"cpu\", \"threads\": \"" << threadCount() << "\"},\n  \"processor\": \""
       << processorName() << "\",\n  \"source\": \"" << nsa_source_id() << "\",\n  \"version\": \"" << nsa_version()
       << "\"\n },\n \"seed\": " << seed << ",\n \"batch\": " << batch
       << ",\n \"selected_gradient\": " << (selectedGradient ? "true" : "false")
       << ",\n \"seconds\": " << number(seconds) << ",\n \"bigram_entropy\": " << number(bigramEntropy)
       << ",\n \"held_out_bigram_entropy\": " << number(heldOutBigramEntropy) << R"(,
 "figure": {
  "title": "The loss of a small language model with native sparse attention",
  "x": {"title": "steps", "field": "step"},
  "y": {"title": "nats per byte"},
  "series": [{"name": "text to train on", "field": "train_loss"}, {"name": "held-out text", "field": "held_out_loss"}],
  "guides": [{"name": "entropy of a byte given the byte before it, held-out text", "value": )"
       << number(heldOutBigramEntropy) << "}]\n },\n \"results\": [";
  for (const Row &row : rows)
    file << (&row == rows.data() ? "" : ",") << "\n  {\"step\": " << row.step
         << ", \"train_loss\": " << number(row.trainLoss) << ", \"held_out_loss\": " << number(row.heldOutLoss)
         << ", \"step_ms\": " << number(row.milliseconds) << "}";
  file << "\n ]\n}\n";
  file.close();
  if (!file)
    throw std::runtime_error(path + " cannot be written");
}

} // namespace example
