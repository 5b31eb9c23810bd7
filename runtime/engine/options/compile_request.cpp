#include "runtime/engine/options/compile_request.h"

namespace nsa {

CompileRequest requestOf(const ProblemKey &problem, const EngineOptions &options, const std::string &target) {
  CompileRequest request;
  request.target = target;
  request.op = problem.op;
  request.fixed = problem.fixed;
  request.templateDir = options.templateDir;
  request.nvrtcPath = options.nvrtcPath;
  request.cpuFeatures = options.cpuFeatures;
  return request;
}

CompileRequest requestOf(const Manifest &stored, const EngineOptions &options) {
  CompileRequest request;
  request.target = stored.target;
  request.op = stored.op;
  request.fixed = stored.fixed;
  request.templateName = stored.templateName;
  request.config = stored.config;
  request.templateDir = options.templateDir;
  request.nvrtcPath = options.nvrtcPath;
  if (const auto features = stored.evidence.find("features"); features != stored.evidence.end())
    request.cpuFeatures = features->second;
  return request;
}

} // namespace nsa
