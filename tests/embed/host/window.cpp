// A C++17 host: packed window attention in bf16 on the CPU, with an empty sequence and a cached prefix, compared with
// the definition. `window_cpp CACHE cold|warm`, as window_c.
#include <nsa/nsa.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <vector>

namespace {

constexpr std::int64_t kHeads = 8, kKvHeads = 2, kQkDim = 64, kVDim = 48, kWindow = 29;

std::uint16_t toBf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double fromBf16(std::uint16_t value) {
  std::uint32_t bits = std::uint32_t{value} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

std::vector<std::uint16_t> draw(std::mt19937 &generator, std::int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::uint16_t &value : values)
    value = toBf16(normal(generator));
  return values;
}

bool mapsACompiler() {
  std::ifstream maps("/proc/self/maps");
  bool found = !maps;
  for (std::string line; std::getline(maps, line);)
    for (const char *part : {"nsa_compiler", "LLVM", "nvrtc"})
      if (line.find(part) != std::string::npos) {
        std::cerr << "mapped: " << line << "\n";
        found = true;
      }
  return found;
}

bool runWindow(const char *cache, bool warm) {
  const std::vector<std::int32_t> offsetsQ = {0, 33, 33, 40, 103};
  const std::vector<std::int32_t> offsetsK = {0, 33, 33, 140, 203};
  const std::int64_t tokensQ = offsetsQ.back(), tokensK = offsetsK.back();
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 generator(seed);
  auto q = draw(generator, tokensQ * kHeads * kQkDim);
  auto k = draw(generator, tokensK * kKvHeads * kQkDim);
  auto v = draw(generator, tokensK * kKvHeads * kVDim);
  std::vector<std::uint16_t> out(static_cast<std::size_t>(tokensQ * kHeads * kVDim), 0xffff); // NaN
  std::vector<float> lse(static_cast<std::size_t>(tokensQ * kHeads), NAN);

  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = cache;
  options.miss_policy = warm ? NSA_MISS_FAIL : NSA_MISS_DEFAULT;
  nsa::Engine engine(options);

  nsa::Spec spec;
  spec.layout = NSA_LAYOUT_PACKED;
  spec.query_heads = kHeads;
  spec.kv_heads = kKvHeads;
  spec.qk_dim = kQkDim;
  spec.v_dim = kVDim;
  spec.window = kWindow;
  nsa::Plan plan = engine.plan(spec, {4, 63, 107, tokensQ});
  nsa::HostWorkspace workspace(plan.workspaceSize());
  nsa::Tensor qTensor(q.data(), NSA_BF16, {tokensQ, kHeads, kQkDim});
  nsa::Tensor kTensor(k.data(), NSA_BF16, {tokensK, kKvHeads, kQkDim});
  nsa::Tensor vTensor(v.data(), NSA_BF16, {tokensK, kKvHeads, kVDim});
  nsa::Tensor outTensor(out.data(), NSA_BF16, {tokensQ, kHeads, kVDim});
  nsa::Tensor lseTensor(lse.data(), {tokensQ, kHeads});
  nsa::Tensor offsetsQTensor(offsetsQ.data(), {5});
  nsa::Tensor offsetsKTensor(offsetsK.data(), {5});
  plan.run({{NSA_Q, qTensor},
            {NSA_K, kTensor},
            {NSA_V, vTensor},
            {NSA_OUT, outTensor},
            {NSA_LSE, lseTensor},
            {NSA_CU_SEQLENS_Q, offsetsQTensor},
            {NSA_CU_SEQLENS_K, offsetsKTensor}},
           workspace.data(), workspace.size());
  plan.checkStatus();

  double errors = 0, squares = 0, lseError = 0;
  for (std::size_t s = 0; s + 1 < offsetsQ.size(); ++s)
    for (std::int64_t row = offsetsQ[s]; row < offsetsQ[s + 1]; ++row)
      for (std::int64_t h = 0; h < kHeads; ++h) {
        std::int64_t g = h / (kHeads / kKvHeads);
        std::int64_t last = offsetsK[s + 1] - (offsetsQ[s + 1] - row); // as many keys lie behind it as queries
        std::int64_t first = std::max<std::int64_t>(offsetsK[s], last - kWindow + 1);
        double sum = 0;
        std::vector<double> result(kVDim);
        for (std::int64_t t = first; t <= last; ++t) {
          double score = 0;
          for (std::int64_t d = 0; d < kQkDim; ++d)
            score += fromBf16(q[static_cast<std::size_t>((row * kHeads + h) * kQkDim + d)]) *
                     fromBf16(k[static_cast<std::size_t>((t * kKvHeads + g) * kQkDim + d)]);
          double weight = std::exp(score / std::sqrt(double{kQkDim}));
          sum += weight;
          for (std::int64_t d = 0; d < kVDim; ++d)
            result[static_cast<std::size_t>(d)] +=
                weight * fromBf16(v[static_cast<std::size_t>((t * kKvHeads + g) * kVDim + d)]);
        }
        for (std::int64_t d = 0; d < kVDim; ++d) {
          double expected = result[static_cast<std::size_t>(d)] / sum;
          double difference = fromBf16(out[static_cast<std::size_t>((row * kHeads + h) * kVDim + d)]) - expected;
          errors += difference * difference;
          squares += expected * expected;
        }
        double difference = std::fabs(lse[static_cast<std::size_t>(row * kHeads + h)] - std::log(sum));
        if (!(difference <= lseError))
          lseError = difference;
      }
  double relative = std::sqrt(errors / squares);
  std::string description = plan.describe();
  std::cout << "relative RMS " << relative << ", lse " << lseError << "\n" << description << "\n";
  bool good = relative <= 5e-3 && lseError <= 1e-3;
  good &= description.find("\"template\": \"attention\"") != std::string::npos;
  if (warm)
    good &= plan.info().source == NSA_FROM_DATABASE && !mapsACompiler();
  good &= engine.stats().runs == 1 && std::strcmp(engine.device().kind, "cpu") == 0;
  return good;
}

// Errors arrive as exceptions that carry the C struct's parts.
bool errorsAreThrown(const char *cache) {
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = cache;
  nsa::Engine engine(options);
  nsa::Spec spec;
  spec.query_heads = 7;
  spec.kv_heads = 2;
  spec.qk_dim = spec.v_dim = 16;
  try {
    engine.plan(spec, {1, 16, 16});
  } catch (const nsa::Error &error) {
    return error.code() == NSA_INVALID_ARGUMENT && std::string(error.field()) == "query_heads" &&
           std::string(error.value()) == "7" && std::string(error.rule()).find("multiple") != std::string::npos;
  }
  return false;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "usage: window_cpp CACHE cold|warm\n";
    return 2;
  }
  try {
    bool good = runWindow(argv[1], std::string(argv[2]) == "warm");
    if (!errorsAreThrown(argv[1])) {
      std::cerr << "an invalid spec was not refused as expected\n";
      good = false;
    }
    return good ? 0 : 1;
  } catch (const nsa::Error &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
