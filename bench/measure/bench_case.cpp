#include "bench/measure/bench_case.h"

#include "bench/measure/fma_peak.h"
#include "bench/measure/stream_bandwidth.h"

#include <algorithm>
#include <thread>

namespace nsa::bench {
namespace {

struct Geometry {
  const char *name;
  int32_t queryHeads, kvHeads, qkDim, vDim;
};

BenchCase makeCase(Operator op, const Geometry &geometry, int64_t tokens) {
  Spec spec;
  spec.op = op;
  spec.queryHeads = geometry.queryHeads;
  spec.kvHeads = geometry.kvHeads;
  spec.qkDim = geometry.qkDim;
  spec.vDim = geometry.vDim;
  spec.window = 512;
  return promptCase(geometry.name, spec, tokens);
}

} // namespace

std::vector<BenchCase> benchCases(bool cuda, bool quick) {
  // nsa192 has the paper's heads; nsa128 and gqa4 are what other implementations publish.
  constexpr Geometry kNsa192 = {"nsa192", 64, 4, 192, 128}, kNsa128 = {"nsa128", 64, 4, 128, 128},
                     kGqa4 = {"gqa4", 32, 8, 128, 128}, kMha1 = {"mha1", 16, 16, 128, 128},
                     kSmall = {"small", 8, 1, 64, 64};
  std::vector<BenchCase> cases;
  if (quick)
    return {makeCase(Operator::kWindow, kSmall, 256)};
  if (!cuda) {
    for (Operator op : {Operator::kWindow, Operator::kDense, Operator::kDenseBwd})
      for (int64_t tokens : {2048, 4096})
        cases.push_back(makeCase(op, kSmall, tokens));
    return cases;
  }
  for (const Geometry &geometry : {kNsa128, kNsa192, kGqa4, kMha1})
    for (int64_t tokens : {4096, 16384, 32768, 65536})
      for (Operator op : {Operator::kWindow, Operator::kCmp, Operator::kDense, Operator::kWindowBwd, Operator::kCmpBwd,
                          Operator::kDenseBwd, Operator::kSelBwd})
        cases.push_back(makeCase(op, geometry, tokens));
  return cases;
}

Spec usualForward(int32_t qkDim) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 64;
  spec.kvHeads = 4;
  spec.qkDim = qkDim;
  spec.vDim = 128;
  return spec;
}

BenchCase promptCase(std::string name, const Spec &spec, int64_t tokens) {
  return {std::move(name), spec, {.batch = 1, .tokensQ = tokens, .seqlenQ = tokens, .seqlenK = tokens}};
}

tools::OperatorInputs drawInputs(const BenchCase &benchCase) {
  return tools::drawInputs(benchCase.spec, tools::SequenceLengths::largest(benchCase.maxima), 1,
                           tools::Saved::kByCaller);
}

std::vector<int64_t> checkedQueries(const Spec &spec, const Maxima &maxima) {
  constexpr int64_t kKeys = 131072, kFewest = 4, kMost = 64;
  const int64_t keys = std::max<int64_t>(spec.keysMet(maxima.seqlenK), 1);
  const int64_t count = std::clamp(kKeys / keys, kFewest, kMost);
  std::vector<int64_t> queries;
  for (int64_t i = 0; i < count; ++i)
    queries.push_back(i * (maxima.seqlenQ - 1) / (count - 1));
  queries.erase(std::unique(queries.begin(), queries.end()), queries.end());
  return queries;
}

nlohmann::ordered_json caseFields(const BenchCase &benchCase) {
  const Spec &spec = benchCase.spec;
  return {{"op", operatorName(spec.op)},
          {"dtype", dtypeName(spec.dtype)},
          {"heads", benchCase.name},
          {"query_heads", spec.queryHeads},
          {"kv_heads", spec.kvHeads},
          {"qk_dim", spec.qkDim},
          {"v_dim", spec.vDim},
          {"tokens", benchCase.maxima.seqlenK},
          {"window", definitionOf(spec.op).keys == MetKeys::kWindow ? spec.window : 0}};
}

std::optional<Roof> roofOf(const std::string &deviceName, DType dtype) {
  if (deviceName != "NVIDIA H200")
    return std::nullopt;
  // 16 bit products: 132 multiprocessors, 4096 operations a clock, at the 1.46 GHz that the power limit leaves to a
  // long matrix product (docs/measuring.md, The roof). fp32 runs without tensor cores: 128 fused multiply-adds a clock
  // at 1.98 GHz. Bytes: what a copy within memory was measured to reach.
  return Roof{.tflops = dtype == DType::kF32 ? 66.9 : 790, .terabytesPerSecond = 4.3};
}

Roof processorRoof() {
  constexpr int kRepeats = 3;
  const auto threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  return {.tflops = measureFmaPeak(threads, kRepeats).gflops * 1e-3,
          .terabytesPerSecond = StreamBandwidth(threads).gigabytesPerSecond() * 1e-3};
}

double floorMs(const BenchCase &benchCase, double flops, const Roof &roof) {
  const Spec &spec = benchCase.spec;
  const double tokens = static_cast<double>(benchCase.maxima.batch) * static_cast<double>(benchCase.maxima.seqlenK);
  const double keys = definitionOf(spec.op).keys == MetKeys::kBlocks ? tokens / spec.cmpStride : tokens;
  // Gradients read queries, outputs and their gradients, keys and values, and write the gradients of three of them.
  const bool isGradient = definitionOf(spec.op).isAttentionGradient();
  const double elements =
      (tokens * spec.queryHeads + keys * spec.kvHeads) * (spec.qkDim + spec.vDim) * (isGradient ? 2 : 1);
  const double bytes = elements * dtypeBytes(spec.dtype);
  return std::max(flops / (roof.tflops * 1e12), bytes / (roof.terabytesPerSecond * 1e12)) * 1e3;
}

} // namespace nsa::bench
