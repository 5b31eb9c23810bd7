// The C interface (compiler/api/nsa_compiler.h) over Compiler.h. Only this file of the library is built with
// exceptions: it turns every exception of the standard library, mostly out of memory, into a status.
#include "compiler/api/nsa_compiler.h"

#include "compiler/check/Check.h"
#include "compiler/driver/Compiler.h"
#include "runtime/base/compiler_revision.h"

#include <new>

using namespace nsa;

struct nsa_compiler_result {
  ErrorInfo error; // kOk: none
  std::vector<CandidateSummary> candidates;
  CompileOutput output;
  std::string messages;
};

namespace {

// Runs `body` with a new result object. The object exists on failure too.
template <typename Body> nsa_compiler_status produce(nsa_compiler_result **result, Body body) noexcept {
  if (!result)
    return static_cast<nsa_compiler_status>(ErrorCode::kInvalidArgument);
  *result = nullptr;
  ErrorCode code = ErrorCode::kInternal;
  try {
    *result = new nsa_compiler_result;
    Status status = body(**result);
    (*result)->error.code = ErrorCode::kOk;
    if (!status.isOk())
      (*result)->error = status.error();
    return static_cast<nsa_compiler_status>(status.code());
  } catch (const std::bad_alloc &) {
    code = ErrorCode::kOutOfMemory;
  } catch (...) {
    code = ErrorCode::kInternal;
  }
  if (*result) {
    (*result)->error = ErrorInfo();
    (*result)->error.code = code;
  }
  return static_cast<nsa_compiler_status>(code);
}

nsa_compiler_status list(const nsa_compiler_request *request, nsa_compiler_result **result) {
  return produce(result, [&](nsa_compiler_result &out) -> Status {
    Result<CompilerRequest> parsed = CompilerRequest::parse(request);
    if (!parsed)
      return parsed.status();
    Result<std::vector<CandidateSummary>> candidates = listCandidates(*parsed);
    if (!candidates)
      return candidates.status();
    out.candidates = std::move(*candidates);
    return Status::ok();
  });
}

nsa_compiler_status compile(const nsa_compiler_request *request, nsa_compiler_result **result) {
  return produce(result, [&](nsa_compiler_result &out) -> Status {
    Result<CompilerRequest> parsed = CompilerRequest::parse(request);
    if (!parsed)
      return parsed.status();
    Result<CompileOutput> output = compileCandidate(*parsed);
    if (!output)
      return output.status();
    out.output = std::move(*output);
    out.messages = std::move(out.output.warnings);
    return Status::ok();
  });
}

Result<CheckRequest> checkRequestOf(const nsa_compiler_check_request *request) {
  if (!request || request->size < sizeof(nsa_compiler_check_request))
    return Status::invalid("size", std::to_string(request ? request->size : 0),
                           "must be sizeof(nsa_compiler_check_request) = " +
                               std::to_string(sizeof(nsa_compiler_check_request)));
  if (!request->path || !*request->path)
    return Status::invalid("path", "", "must name a file");
  CheckRequest result;
  result.path = request->path;
  result.target = request->target ? request->target : "";
  result.explains = request->explain != 0;
  for (size_t i = 0; i < request->value_count; ++i)
    if (!request->values || !request->values[i].name || !request->values[i].value)
      return Status::invalid("values", "NULL", "every value needs a name and a text");
    else if (!result.values.emplace(request->values[i].name, request->values[i].value).second)
      return Status::invalid(request->values[i].name, request->values[i].value, "stands twice in values");
  return result;
}

Status programStatus(bool isGood) {
  return isGood ? Status::ok() : Status::error(ErrorCode::kCompileFailed, "the program has errors");
}

nsa_compiler_status check(const nsa_compiler_check_request *request, nsa_compiler_result **result) {
  return produce(result, [&](nsa_compiler_result &out) -> Status {
    NSA_ASSIGN_OR_RETURN(const CheckRequest checked, checkRequestOf(request));
    NSA_ASSIGN_OR_RETURN(CheckReport report, checkProgram(checked));
    out.messages = std::move(report.messages);
    out.output.bytes = std::move(report.text);
    return programStatus(report.isGood);
  });
}

nsa_compiler_status format(const char *name, const char *text, size_t bytes, nsa_compiler_result **result) {
  return produce(result, [&](nsa_compiler_result &out) -> Status {
    if (!name || (!text && bytes))
      return Status::invalid(name ? "text" : "name", "NULL", "must point to a text");
    FormatReport report = formatProgram(name, {text, bytes});
    out.messages = std::move(report.messages);
    out.output.bytes = std::move(report.text);
    return programStatus(report.isGood);
  });
}

size_t candidateCount(const nsa_compiler_result *result) { return result ? result->candidates.size() : 0; }

const CandidateSummary *candidateAt(const nsa_compiler_result *result, size_t index) {
  return index < candidateCount(result) ? &result->candidates[index] : nullptr;
}
const char *candidateTemplate(const nsa_compiler_result *result, size_t index) {
  const CandidateSummary *candidate = candidateAt(result, index);
  return candidate ? candidate->templateName.c_str() : "";
}
const char *candidateConfig(const nsa_compiler_result *result, size_t index) {
  const CandidateSummary *candidate = candidateAt(result, index);
  return candidate ? candidate->config.c_str() : "";
}
double candidateCost(const nsa_compiler_result *result, size_t index) {
  const CandidateSummary *candidate = candidateAt(result, index);
  return candidate ? candidate->cost : 0;
}

const char *messages(const nsa_compiler_result *result) { return result ? result->messages.c_str() : ""; }

const void *output(const nsa_compiler_result *result, size_t *size) {
  if (size)
    *size = result ? result->output.bytes.size() : 0;
  return result ? result->output.bytes.data() : nullptr;
}
const char *manifest(const nsa_compiler_result *result) { return result ? result->output.manifest.c_str() : ""; }
const char *timings(const nsa_compiler_result *result) { return result ? result->output.timings.c_str() : ""; }

template <std::string ErrorInfo::*Member> const char *errorText(const nsa_compiler_result *result) {
  return result ? (result->error.*Member).c_str() : "";
}
void destroy(nsa_compiler_result *result) { delete result; }

} // namespace

extern "C" __attribute__((visibility("default"))) const nsa_compiler_api *nsa_compiler_get_api(uint32_t version) {
  if (version != NSA_COMPILER_ABI_VERSION)
    return nullptr;
  static const nsa_compiler_api api = {
      sizeof(nsa_compiler_api),
      NSA_COMPILER_ABI_VERSION,
      compilerRevision().data(), // NOLINT(bugprone-suspicious-stringview-data-usage): a literal
      list,
      compile,
      candidateCount,
      candidateTemplate,
      candidateConfig,
      candidateCost,
      output,
      manifest,
      timings,
      errorText<&ErrorInfo::field>,
      errorText<&ErrorInfo::value>,
      errorText<&ErrorInfo::rule>,
      errorText<&ErrorInfo::message>,
      errorText<&ErrorInfo::hint>,
      destroy,
      check,
      format,
      messages};
  return &api;
}
