#include "bench/compile_time.h"

#include "bench/measure/median.h"
#include "bench/measure/processor_time.h"
#include "runtime/engine/compile/compiler_library.h"

#include <chrono>
#include <vector>

namespace nsa::bench {
namespace {

double wallMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

Result<CompileTime> measureCompileTime(const std::string &compilerPath, const Spec &spec, int samples) {
  const double begin = wallMs();
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const CompilerLibrary> library, CompilerLibrary::open(compilerPath));
  const Problem problem = Problem::make(spec, {.batch = 1, .tokensQ = 4096, .seqlenQ = 4096, .seqlenK = 4096});
  CompileRequest request;
  request.target = "cpu";
  request.op = problem.opName();
  request.fixed = problem.fixed();
  NSA_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, library->list(request));
  CompileTime result;
  result.templateName = request.templateName = candidates.front().templateName;
  result.config = candidates.front().config;
  NSA_ASSIGN_OR_RETURN(request.config, parseValues(result.config));
  std::vector<double> wall, cpu;
  for (int i = 0; i <= samples; ++i) {
    const double wallBefore = wallMs(), cpuBefore = processorSeconds();
    if (Result<CompiledKernel> kernel = library->compile(request); !kernel)
      return kernel.status();
    if (i == 0) {
      result.openMs = wallMs() - begin;
      continue;
    }
    wall.push_back(wallMs() - wallBefore);
    cpu.push_back((processorSeconds() - cpuBefore) * 1e3);
  }
  result.wallMs = median(std::move(wall));
  result.cpuMs = median(std::move(cpu));
  return result;
}

} // namespace nsa::bench
