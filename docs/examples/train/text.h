// The text: what the model trains on, and the last tenth of it, which is held out. Thread-safety: constant.
#pragma once

#include "model.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace example {

class Text {
public:
  // Throws std::runtime_error if the file cannot be read, or if it is too short.
  static Text read(const std::string &path);

  // Sequences that begin anywhere in the part to train on.
  Batch draw(std::int64_t size, std::mt19937 &random) const;
  // The held-out part, cut into sequences one after the other; a rest that is shorter than a sequence is left out.
  std::vector<Batch> heldOut(std::int64_t mostSequences) const;

  // The entropy of a byte given the byte before it, in nats per byte: over the whole text, and over the held-out part
  // alone. No model that sees one byte can have a smaller loss on the text that the frequencies were counted in.
  double bigramEntropy() const;
  double heldOutBigramEntropy() const;
  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()); }

private:
  explicit Text(std::vector<std::uint8_t> bytes) : bytes(std::move(bytes)) {}
  std::int64_t trainEnd() const { return size() - size() / 10; }
  void append(std::int64_t begin, Batch &batch) const;

  std::vector<std::uint8_t> bytes;
};

} // namespace example
