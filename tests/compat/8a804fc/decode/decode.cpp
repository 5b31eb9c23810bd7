// Decoding with a cache through the public headers alone: two prompts of unequal length in two chunks, then token by
// token, and at the end one forward pass over the same tokens to compare with. On a GPU a step is captured once and
// replayed.
//
//   nsa_example_decode [--device cpu|cuda:N] [--page-size TOKENS] [--prompt TOKENS] [--steps N] [--cache FILE]
//
// Ends with 0 when both agree, 1 when they do not, 2 when something was refused.
#include "comparison.h"
#include "decoder.h"
#include "model.h"

#include <charconv>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <optional>
#include <stdexcept>

namespace {

using namespace example;

constexpr const char *kUsage = "usage: nsa_example_decode [--device cpu|cuda:N] [--page-size TOKENS] [--prompt TOKENS] "
                               "[--steps N] [--cache FILE]\n";

struct Options {
  std::string device = "cpu", cache;
  std::int32_t pageSize = 0; // tokens; 0: each sequence's tokens stand together
  std::int32_t prompt = 1061, steps = 64;

  static std::optional<Options> parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (i + 1 == argc)
        return std::nullopt;
      const char *value = argv[i + 1];
      if (name == "--device")
        options.device = value;
      else if (name == "--cache")
        options.cache = value;
      else if (!(name == "--page-size" && number(value, options.pageSize)) &&
               !(name == "--prompt" && number(value, options.prompt)) &&
               !(name == "--steps" && number(value, options.steps)))
        return std::nullopt;
    }
    return options;
  }

private:
  static bool number(const char *text, std::int32_t &value) {
    const char *end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, value);
    return error == std::errc() && stop == end;
  }
};

// Of the newest output rows, over their bits: replays of one history print the same.
std::uint64_t checksum(const std::vector<History> &histories) {
  std::uint64_t hash = 14695981039346656037u; // FNV-1a
  for (const History &history : histories)
    for (std::size_t i = history.out.size() - kQueryRow; i < history.out.size(); ++i)
      hash = (hash ^ history.out[i]) * 1099511628211u;
  return hash;
}

void printStep(const std::string &what, const std::vector<History> &histories) {
  std::cout << std::setw(8) << what;
  for (const History &history : histories) {
    std::cout << "  length " << history.done() << " reads";
    for (std::size_t i = history.reads.size() - kKvHeads; i < history.reads.size(); ++i)
      std::cout << " " << history.reads[i];
  }
  std::cout << "  checksum " << std::hex << std::setw(16) << std::setfill('0') << checksum(histories) << std::dec
            << std::setfill(' ') << "\n";
}

int run(const Options &options) {
  const std::vector<std::int64_t> prompts = {options.prompt, std::int64_t{options.prompt} * 3 / 4};
  if (prompts[1] <= std::int64_t{kSelCount} * kSelBlock || options.steps < 1)
    throw std::runtime_error("--prompt must be long enough that selection leaves blocks out (more than " +
                             std::to_string(kSelCount * kSelBlock * 4 / 3 + 1) + "), --steps at least 1");

  // The library first: what it says about a device is more than the driver does.
  nsa_engine_options engineOptions = NSA_INIT(nsa_engine_options);
  engineOptions.device = options.device.c_str();
  engineOptions.cache_path = options.cache.empty() ? nullptr : options.cache.c_str();
  nsa::Engine engine(engineOptions);
  const std::unique_ptr<Device> device = Device::open(options.device);

  const Model model;
  std::vector<History> histories(kBatch);
  std::vector<std::int64_t> room, first, rest;
  for (std::size_t s = 0; s < histories.size(); ++s) {
    for (std::int64_t position = 0; position < prompts[s]; ++position)
      model.project(model.embed(static_cast<std::int64_t>(s), position), histories[s]);
    room.push_back(prompts[s] + options.steps);
    first.push_back(prompts[s] * 5 / 8);
    rest.push_back(prompts[s] - first[s]);
  }

  Decoder decoder(*device, engine, room, first[0] + first[1], options.pageSize);
  for (const std::vector<std::int64_t> &chunk : {first, rest}) {
    decoder.prefill(histories, chunk);
    printStep("prompt", histories);
  }
  for (std::int32_t step = 1; step <= options.steps; ++step) {
    for (std::size_t s = 0; s < histories.size(); ++s) {
      const std::uint16_t *newest = histories[s].out.data() + histories[s].out.size() - kQueryRow;
      model.project(model.next(newest, static_cast<std::int64_t>(s), histories[s].done()), histories[s]);
    }
    decoder.step(histories);
    printStep("step " + std::to_string(step), histories);
  }

  const Comparison comparison = Comparison::of(histories, forwardPass(*device, engine, histories));
  std::cout << "decoding beside one forward pass: " << comparison.toString() << "\n"
            << (comparison.isWithin() ? "they agree\n" : "they do not agree\n");
  return comparison.isWithin() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  const std::optional<Options> options = Options::parse(argc, argv);
  if (!options) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    return run(*options);
  } catch (const nsa::Error &error) {
    // What a host shows or logs: each part by itself.
    std::cerr << error.what() << "\n"
              << "  field: " << error.field() << "\n  value: " << error.value() << "\n  rule:  " << error.rule()
              << "\n";
  } catch (const std::exception &error) {
    std::cerr << "nsa_example_decode: " << error.what() << "\n";
  }
  return 2;
}
