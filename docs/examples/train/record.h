// What a run measured, as JSON: its losses, the machine, the version and the commit that they are from, and how the
// losses are drawn (tools/render_tables/figure.h).
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace example {

struct Record {
  struct Row {
    std::int64_t step;
    double trainLoss;    // mean of the steps since the row before, nats per byte
    double heldOutLoss;  // nats per byte
    double milliseconds; // of a step, mean of the same steps
  };
  std::vector<Row> rows;
  double bigramEntropy = 0, heldOutBigramEntropy = 0; // nats per byte
  double seconds = 0;                                 // of the whole run, evaluation included
  bool selectedGradient = true;
  std::int64_t seed = 0, batch = 0;

  // Throws std::runtime_error if the file cannot be opened. For a run to call before it trains.
  static void checkPath(const std::string &path);
  // Throws std::runtime_error if the file cannot be written.
  void write(const std::string &path) const;
};

} // namespace example
