/* A compiler library that compiles nothing. Its list of candidates ends with the status NSA_FAKE_LIST_STATUS; if that
 * is NSA_OK, the list has a kernel of each of the two templates for attention. */
#include "compiler/api/nsa_compiler.h"
#include "runtime/include/nsa/nsa.h"

static nsa_compiler_status listCandidates(const nsa_compiler_request *request, nsa_compiler_result **result) {
  (void)request;
  (void)result;
  return NSA_FAKE_LIST_STATUS;
}
static nsa_compiler_status compile(const nsa_compiler_request *request, nsa_compiler_result **result) {
  (void)request;
  (void)result;
  return NSA_UNSUPPORTED;
}
static size_t candidateCount(const nsa_compiler_result *result) {
  (void)result;
  return 2;
}
static const char *candidateTemplate(const nsa_compiler_result *result, size_t index) {
  (void)result;
  return index == 0 ? "attention" : "row_attention";
}
static const char *candidateConfig(const nsa_compiler_result *result, size_t index) {
  (void)result;
  return index == 0 ? "key_tile=64" : "key_tile=32";
}
static double candidateCost(const nsa_compiler_result *result, size_t index) {
  (void)result;
  return (double)(index + 1);
}

__attribute__((visibility("default"))) const nsa_compiler_api *nsa_compiler_get_api(uint32_t abi_version) {
  static const nsa_compiler_api api = {.size = sizeof(nsa_compiler_api),
                                       .abi_version = NSA_COMPILER_ABI_VERSION,
                                       .source_id = "",
                                       .list = listCandidates,
                                       .compile = compile,
                                       .candidate_count = candidateCount,
                                       .candidate_template = candidateTemplate,
                                       .candidate_config = candidateConfig,
                                       .candidate_cost = candidateCost};
  return abi_version == NSA_COMPILER_ABI_VERSION ? &api : NULL;
}
