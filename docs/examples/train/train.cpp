// Trains a small language model with native sparse attention on the CPU, forward and backward through the C ABI of NSA
// Runtime and in plain C++ for the rest.
//
//   nsa_example_train TEXT [--steps N] [--batch SEQUENCES] [--seed N] [--without-selected-gradient] [--record FILE]
//
// Ends with 0 when the loss on the held-out tenth of the text is below the entropy of its bigrams, 1 when it is not, 2
// when something was refused.
#include "adamw.h"
#include "model.h"
#include "nsa_attention.h"
#include "record.h"
#include "text.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

using namespace example;

constexpr const char *kUsage = "usage: nsa_example_train TEXT [--steps N] [--batch SEQUENCES] [--seed N] "
                               "[--without-selected-gradient] [--record FILE]";
constexpr double kPeakRate = 3e-3;
constexpr std::int64_t kReports = 20; // lines that a run prints

struct Options {
  std::string text, record;
  std::int64_t steps = 650, batch = 4, seed = 1;
  bool selectedGradient = true;

  static Options parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      const auto value = [&] {
        return i + 1 < argc ? std::string(argv[++i]) : throw refusal(name, "", "needs a value");
      };
      if (name == "--without-selected-gradient")
        options.selectedGradient = false;
      else if (name == "--record")
        options.record = value();
      else if (name == "--steps")
        options.steps = number(name, value(), 1);
      else if (name == "--batch")
        options.batch = number(name, value(), 1);
      else if (name == "--seed")
        options.seed = number(name, value(), 0);
      else if (options.text.empty() && name[0] != '-')
        options.text = name;
      else
        throw refusal(name, "", name[0] == '-' ? "is no option" : "is a second text, and there may be one");
    }
    if (options.text.empty())
      throw refusal("TEXT", "", "is missing");
    return options;
  }

private:
  static constexpr std::int64_t kMost = 1000000;
  static std::invalid_argument refusal(const std::string &name, const std::string &value, const std::string &rule) {
    return std::invalid_argument(name + (value.empty() ? "" : " = " + value + ":") + " " + rule + "\n" + kUsage);
  }
  static std::int64_t number(const std::string &name, const std::string &text, std::int64_t least) {
    std::int64_t value = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < least || value > kMost)
      throw refusal(name, text, "must be an integer from " + std::to_string(least) + " to " + std::to_string(kMost));
    return value;
  }
};

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double heldOutLoss(Model<float> &model, const std::vector<float> &parameters, const std::vector<Batch> &heldOut) {
  double sum = 0, sequences = 0;
  for (const Batch &batch : heldOut) {
    sum += model.loss(parameters, batch) * static_cast<double>(batch.size);
    sequences += static_cast<double>(batch.size);
  }
  return sum / sequences;
}

int run(const Options &options) {
  const double start = secondsNow();
  const Text text = Text::read(options.text);
  if (!options.record.empty())
    Record::checkPath(options.record);
  NsaAttention attention(options.batch, options.selectedGradient);
  Model<float> model(attention);
  AdamW<float> optimiser(model.layout);
  const auto seed = static_cast<std::uint32_t>(options.seed);
  std::vector<float> parameters = initialParameters(model.layout, seed), gradient;
  std::mt19937 random(seed + 1);
  const std::vector<Batch> heldOut = text.heldOut(options.batch);
  std::printf("%lld bytes, %lld parameters, %lld steps of %lld sequences of %lld bytes\n"
              "    step  train loss  held out  ms of a step\n",
              static_cast<long long>(text.size()), static_cast<long long>(model.layout.count),
              static_cast<long long>(options.steps), static_cast<long long>(options.batch),
              static_cast<long long>(kSequence));

  Record record;
  double seconds = 0, loss = 0; // of the steps since the last line
  std::int64_t steps = 0;
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    const double begin = secondsNow();
    loss += model.lossAndGradient(parameters, text.draw(options.batch, random), gradient);
    optimiser.step(parameters, gradient, learningRate(step - 1, options.steps, kPeakRate));
    seconds += secondsNow() - begin;
    ++steps;
    if (step * kReports / options.steps == (step - 1) * kReports / options.steps)
      continue;
    const double count = static_cast<double>(steps);
    const Record::Row row{step, loss / count, heldOutLoss(model, parameters, heldOut), 1e3 * seconds / count};
    std::printf("%8lld  %10.4f  %8.4f  %12.1f\n", static_cast<long long>(row.step), row.trainLoss, row.heldOutLoss,
                row.milliseconds);
    std::fflush(stdout);
    record.rows.push_back(row);
    seconds = loss = 0;
    steps = 0;
  }

  record.seconds = secondsNow() - start;
  record.bigramEntropy = text.bigramEntropy();
  record.heldOutBigramEntropy = text.heldOutBigramEntropy();
  record.selectedGradient = options.selectedGradient;
  record.seed = options.seed;
  record.batch = options.batch;
  if (!options.record.empty())
    record.write(options.record);
  const double last = record.rows.back().heldOutLoss;
  std::printf("held out: %.4f nats per byte\nentropy of a byte given the one before it: %.4f in the held-out part, "
              "%.4f in the whole text\n",
              last, record.heldOutBigramEntropy, record.bigramEntropy);
  if (last < record.heldOutBigramEntropy)
    return 0;
  std::fprintf(stderr, "nsa_example_train: the loss on the held-out part is not below the entropy there\n");
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(Options::parse(argc, argv));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "nsa_example_train: %s\n", error.what());
    return 2;
  }
}
