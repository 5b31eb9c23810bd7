// Compiling: what NVRTC takes for kernels of these kinds, one after the other with nothing beside it.
#include "bench/measure/timing.h"
#include "bench/micro/product_rate.h"
#include "bench/micro/tma_ring.h"

namespace nsa::bench {
namespace {

struct CompileJob {
  const char *text;
  MicroSource source;
};

std::vector<CompileJob> compileJobs() {
  return {{"empty kernel", {"spin.cu", {}}},
          {"ring of TMA boxes", ringSource({})},
          {"two products and exponents of a tile",
           {"exponent_rate.cu", {{"kExponents", 64}, {"kProducts", 1}, {"kOverlap", 1}}}},
          {"wgmma N = 256 RS", productSource({.columns = 256, .registers = true})}};
}

} // namespace

std::vector<MicroSource> compileCostSources() {
  std::vector<MicroSource> sources;
  for (CompileJob &job : compileJobs())
    sources.push_back(std::move(job.source));
  return sources;
}

Status measureCompileCosts(MicroDevice &device, MicroReport &report) {
  const int samples = std::min(report.samples(), 5);
  for (const CompileJob &job : compileJobs()) {
    NSA_ASSIGN_OR_RETURN(std::string text, microText(job.source, microKernelFolder()));
    std::vector<double> milliseconds;
    for (int i = 0; i < samples; ++i) {
      const double start = wallMs();
      NSA_RETURN_IF_ERROR(
          device.compiler().compile(text, job.source.name(), device.info().target, Nvrtc::Output::kCubin).status());
      milliseconds.push_back(wallMs() - start);
    }
    NSA_RETURN_IF_ERROR(report.add("compile", job.text, "ms", std::move(milliseconds)));
  }
  return Status::ok();
}

} // namespace nsa::bench
