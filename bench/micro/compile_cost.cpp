// Compiling: what NVRTC takes for kernels of these kinds, one after the other with nothing beside it.
#include "bench/measure/timing.h"
#include "bench/micro/product_rate.h"
#include "bench/micro/tma_ring.h"

namespace nsa::bench {

std::vector<MicroJob> compileCostJobs() {
  std::vector<MicroJob> jobs;
  for (const auto &[text, source] : {std::pair<const char *, MicroSource>{"empty kernel", {"spin.cu", {}}},
                                     {"ring of TMA boxes", ringSource({})},
                                     {"two products and exponents of a tile",
                                      {"exponent_rate.cu", {{"kExponents", 64}, {"kProducts", 1}, {"kOverlap", 1}}}},
                                     {"wgmma N = 256 RS", productSource({.columns = 256, .registers = true})}})
    jobs.push_back(
        {text, "ms", source, {}, [source](MicroDevice &device, int samples) -> Result<std::vector<double>> {
           NSA_ASSIGN_OR_RETURN(const std::string text, microText(source, microKernelFolder()));
           std::vector<double> milliseconds;
           for (int i = 0; i < std::min(samples, 5); ++i) {
             const double start = wallMs();
             NSA_RETURN_IF_ERROR(
                 device.compiler().compile(text, source.name(), device.info().target, Nvrtc::Output::kCubin).status());
             milliseconds.push_back(wallMs() - start);
           }
           return milliseconds;
         }});
  return jobs;
}

} // namespace nsa::bench
