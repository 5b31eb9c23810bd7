#include "compiler/driver/Request.h"

#include "runtime/base/cpu_features.h"
#include "runtime/base/text.h"

#include <cstdint>
#include <iterator>

namespace nsa {

namespace {

constexpr std::string_view kStageNames[] = {"template", "tile", "scheduled", "cuda", "llvm", "ptx", "binary"};

std::string textOf(const char *text) { return text ? text : ""; }

Status readPairs(const char *field, const nsa_compiler_value *pairs, size_t count,
                 std::map<std::string, std::string> &result) {
  if (count && !pairs)
    return Status::invalid(field, "NULL", "must point to " + std::to_string(count) + " values");
  for (size_t i = 0; i < count; ++i) {
    if (!pairs[i].name || !pairs[i].value)
      return Status::invalid(field, "NULL", "every value needs a name and a text");
    if (!result.emplace(pairs[i].name, pairs[i].value).second)
      return Status::invalid(pairs[i].name, pairs[i].value, "stands twice in " + std::string(field));
  }
  return Status::ok();
}

Status checkStage(nsa_compiler_stage stage, const Target &target) {
  auto number = static_cast<size_t>(stage);
  if (number >= std::size(kStageNames))
    return Status::invalid("stage", std::to_string(number), "must be a stage of nsa_compiler_stage");
  bool gpuOnly = stage == NSA_COMPILER_STAGE_CUDA || stage == NSA_COMPILER_STAGE_PTX;
  bool cpuOnly = stage == NSA_COMPILER_STAGE_LLVM;
  if ((gpuOnly && !target.isGpu) || (cpuOnly && target.isGpu))
    return Status::invalid("stage", std::string(stageName(stage)),
                           "does not exist for target " + std::string(target.name),
                           target.isGpu ? "a GPU has template, tile, scheduled, cuda, ptx, cubin"
                                        : "the CPU has template, tile, scheduled, llvm, image");
  return Status::ok();
}

} // namespace

std::string_view stageName(nsa_compiler_stage stage) { return kStageNames[static_cast<size_t>(stage)]; }

Result<CompilerRequest> CompilerRequest::parse(const nsa_compiler_request *request) {
  if (!request)
    return Status::invalid("request", "NULL", "must point to a request");
  if (request->size < sizeof(nsa_compiler_request))
    return Status::invalid("size", std::to_string(request->size),
                           "must be sizeof(nsa_compiler_request) = " + std::to_string(sizeof(nsa_compiler_request)));
  CompilerRequest result;
  Result<const Target *> target = Target::find(textOf(request->target));
  if (!target)
    return target.status();
  result.target = *target;
  result.op = textOf(request->op);
  if (request->program_text) {
    ProgramSource &program = result.program.emplace();
    program.name = textOf(request->program_name);
    program.text = request->program_text;
    NSA_RETURN_IF_ERROR(readPairs("libraries", request->libraries, request->library_count, program.libraries));
  } else {
    NSA_ASSIGN_OR_RETURN(result.serves, parseOperator(result.op));
  }

  NSA_RETURN_IF_ERROR(readPairs("fixed", request->fixed, request->fixed_count, result.fixed));
  NSA_RETURN_IF_ERROR(readPairs("config", request->config, request->config_count, result.config));
  if (result.serves)
    for (const auto &[name, text] : result.fixed)
      if (name != "dtype")
        NSA_RETURN_IF_ERROR(checkProblemValue(name, text));
  // A program without tensors of the call's element type has no dtype.
  if (const auto dtype = result.fixed.find("dtype"); dtype != result.fixed.end() || result.serves) {
    NSA_ASSIGN_OR_RETURN(result.dtype, parseIoDType(dtype == result.fixed.end() ? "" : dtype->second));
  }

  result.templateName = textOf(request->template_name);
  result.templateFolder = textOf(request->template_dir);
  result.nvrtc = {textOf(request->nvrtc_path), request->driver_version};
  result.stage = request->stage;
  NSA_RETURN_IF_ERROR(checkStage(result.stage, *result.target));
  if (!result.target->isGpu) {
    result.cpuFeatures = textOf(request->cpu_features);
    if (result.cpuFeatures.empty())
      result.cpuFeatures = std::string(hostCpuFeatures());
  }
  return result;
}

Result<Values> CompilerRequest::values() const {
  int lanes = 1;
  if (!target->isGpu) {
    Result<int> known = cpuVectorLanes(cpuFeatures);
    if (!known)
      return known.status();
    lanes = *known;
  }
  Values values = target->values(op, dtype, lanes);
  for (const auto &[name, text] : fixed)
    values.set(name, text);
  return values;
}

} // namespace nsa
