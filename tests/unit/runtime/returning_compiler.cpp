// A compiler library whose kernels return at once, so that a test compiles thousands of them. Attention has a kernel of
// each of its two templates, and any other operator two kernels of one template.
#include "compiler/api/nsa_compiler.h"

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

struct nsa_compiler_result {
  std::string op, manifest;
  std::string_view nameOf(size_t index) const {
    const bool isAttention = op == "window" || op == "dense" || op == "cmp";
    return !isAttention ? "plain" : index == 0 ? "attention" : "row_attention";
  }
};

namespace {

// The test says which revision it is, because the library does not link the runtime.
const char *revision() { return std::getenv("RETURNING_COMPILER_REVISION"); }

std::string textOf(const nsa_compiler_value *values, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += " " + std::string(values[i].name) + "=" + values[i].value;
  return text;
}

nsa_compiler_status list(const nsa_compiler_request *request, nsa_compiler_result **result) {
  *result = new nsa_compiler_result{request->op, ""};
  return 0;
}

nsa_compiler_status compile(const nsa_compiler_request *request, nsa_compiler_result **result) {
  const std::string fixed = textOf(request->fixed, request->fixed_count);
  const std::string config = textOf(request->config, request->config_count);
  const size_t content = std::hash<std::string>()(request->op + fixed + request->template_name + config);
  *result = new nsa_compiler_result{request->op, "manifest 1\nentry +0\ntemplate " +
                                                     std::string(request->template_name) + "\noperator " + request->op +
                                                     "\ntarget cpu\nfixed" + fixed + "\nconfig" + config +
                                                     "\nrevision 0\nparam view sequences int32 2\ngrid 1 ; 1 ; 1\n"
                                                     "threads 1\nscratch 0\nevidence compiler=" +
                                                     revision() + " content=" + std::to_string(content) + "\n"};
  return 0;
}

size_t candidateCount(const nsa_compiler_result *) { return 2; }
const char *candidateTemplate(const nsa_compiler_result *result, size_t index) { return result->nameOf(index).data(); }
const char *candidateConfig(const nsa_compiler_result *, size_t index) { return index == 0 ? "tile=64" : "tile=32"; }
double candidateCost(const nsa_compiler_result *, size_t index) { return static_cast<double>(index + 1); }

const void *output(const nsa_compiler_result *, size_t *size) {
  constexpr static char kReturn[] = {'\xc3'};
  *size = sizeof kReturn;
  return kReturn;
}
const char *manifest(const nsa_compiler_result *result) { return result->manifest.c_str(); }
const char *nothing(const nsa_compiler_result *) { return ""; }
void destroy(nsa_compiler_result *result) { delete result; }

} // namespace

extern "C" __attribute__((visibility("default"))) const nsa_compiler_api *nsa_compiler_get_api(uint32_t) {
  static const nsa_compiler_api api = {.size = sizeof(nsa_compiler_api),
                                       .abi_version = NSA_COMPILER_ABI_VERSION,
                                       .source_id = revision(),
                                       .list = list,
                                       .compile = compile,
                                       .candidate_count = candidateCount,
                                       .candidate_template = candidateTemplate,
                                       .candidate_config = candidateConfig,
                                       .candidate_cost = candidateCost,
                                       .output = output,
                                       .manifest = manifest,
                                       .timings = nothing,
                                       .error_field = nothing,
                                       .error_value = nothing,
                                       .error_rule = nothing,
                                       .error_message = nothing,
                                       .error_hint = nothing,
                                       .destroy = destroy,
                                       .check = nullptr,
                                       .format = nullptr,
                                       .messages = nothing};
  return &api;
}
