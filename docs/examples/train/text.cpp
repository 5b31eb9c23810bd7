#include "text.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

namespace example {
namespace {

double entropyOfNext(std::span<const std::uint8_t> bytes) {
  std::map<std::pair<int, int>, double> pairs;
  std::map<int, double> firsts;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    ++pairs[{bytes[i], bytes[i + 1]}];
    ++firsts[bytes[i]];
  }
  double sum = 0;
  for (const auto &[pair, count] : pairs)
    sum -= count * std::log(count / firsts[pair.first]);
  return sum / static_cast<double>(bytes.size() - 1);
}

} // namespace

Text Text::read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad())
    throw std::runtime_error(path + " cannot be read");
  Text text(std::move(bytes));
  if (text.size() / 10 <= kSequence)
    throw std::runtime_error(path + " has " + std::to_string(text.size()) +
                             " bytes: a tenth of the text must have more than " + std::to_string(kSequence));
  return text;
}

Batch Text::draw(std::int64_t size, std::mt19937 &random) const {
  Batch batch;
  for (std::int64_t i = 0; i < size; ++i)
    append(static_cast<std::int64_t>(random()) % (trainEnd() - kSequence), batch);
  return batch;
}

std::vector<Batch> Text::heldOut(std::int64_t mostSequences) const {
  std::vector<Batch> batches;
  for (std::int64_t begin = trainEnd(); begin + kSequence < size(); begin += kSequence) {
    if (batches.empty() || batches.back().size == mostSequences)
      batches.emplace_back();
    append(begin, batches.back());
  }
  return batches;
}

double Text::bigramEntropy() const { return entropyOfNext(bytes); }

double Text::heldOutBigramEntropy() const {
  return entropyOfNext(std::span(bytes).subspan(static_cast<std::size_t>(trainEnd())));
}

void Text::append(std::int64_t begin, Batch &batch) const {
  const auto first = bytes.begin() + begin;
  batch.bytes.insert(batch.bytes.end(), first, first + kSequence);
  batch.next.insert(batch.next.end(), first + 1, first + 1 + kSequence);
  ++batch.size;
}

} // namespace example
