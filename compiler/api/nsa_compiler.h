/* The C surface of libnsa_compiler.so: one exported function, nsa_compiler_get_api.
 *
 * The runtime opens the library on a miss only (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) and never
 * closes it: LLVM keeps static state. Nothing of C++, LLVM or CUDA crosses this header.
 *
 * Conventions: strings are UTF-8 and NUL-terminated, borrowed for the length of the call. Every
 * struct begins with its own size. A result object owns what its accessors return and must be
 * destroyed, on success and on failure. All functions may be called from several threads at once.
 */
#ifndef NSA_COMPILER_H
#define NSA_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NSA_COMPILER_ABI_VERSION 1

/* `name = value` pairs: problem values (dtype, qk_dim, ...), a config (query_tile, ...). */
typedef struct nsa_compiler_value {
  const char *name;
  const char *value;
} nsa_compiler_value;

/* What a compile shall stop at. The names are those of `nsa compile --emit`. */
typedef enum nsa_compiler_stage {
  NSA_COMPILER_STAGE_TEMPLATE = 0,  /* rendered template text */
  NSA_COMPILER_STAGE_TILE = 1,      /* verified tile program, options folded */
  NSA_COMPILER_STAGE_SCHEDULED = 2, /* after layouts, stages, shared memory (GPU) or CPU loops */
  NSA_COMPILER_STAGE_CUDA = 3,      /* emitted CUDA C++, device library included (GPU) */
  NSA_COMPILER_STAGE_LLVM = 4,      /* LLVM IR (CPU) */
  NSA_COMPILER_STAGE_PTX = 5,       /* PTX (GPU) */
  NSA_COMPILER_STAGE_BINARY = 6     /* cubin, or the CPU's position-independent image */
} nsa_compiler_stage;

typedef struct nsa_compiler_request {
  size_t size;
  const char *target;              /* "cpu", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a" */
  const char *op;                  /* operator name, e.g. "window" */
  const nsa_compiler_value *fixed; /* the problem's compiled-in values */
  size_t fixed_count;
  const char *template_name;        /* NULL or "": any template that serves the operator */
  const nsa_compiler_value *config; /* choices; those left out take the cheapest admissible value */
  size_t config_count;
  const char *template_dir; /* NULL or "": the embedded templates; else a templates/ folder */
  const char *nvrtc_path;   /* NULL or "": search; else the library's file name */
  int32_t driver_version;   /* CUDA driver version (12040 = 12.4), 0 = none: picks NVRTC's major */
  nsa_compiler_stage stage;
  const char *cpu_features; /* NULL or "": the host's; else "x86-64-v3", "x86-64-v4" */
} nsa_compiler_request;

typedef struct nsa_compiler_result nsa_compiler_result;

/* 0 on success, else an nsa_status number (nsa/nsa.h); the result then holds the error's texts. */
typedef int32_t nsa_compiler_status;

typedef struct nsa_compiler_api {
  size_t size;
  uint32_t abi_version;
  const char *source_id; /* digest of the compiler's sources and embedded templates; kernels carry it as evidence */

  /* Lists the admissible candidates (template x config), cheapest predicted first. */
  nsa_compiler_status (*list)(const nsa_compiler_request *request, nsa_compiler_result **result);
  /* Renders and compiles one candidate down to request->stage. */
  nsa_compiler_status (*compile)(const nsa_compiler_request *request, nsa_compiler_result **result);

  /* Candidates of a `list` result. `config` is "key_tile=64 query_tile=64 ...", names ascending. */
  size_t (*candidate_count)(const nsa_compiler_result *result);
  const char *(*candidate_template)(const nsa_compiler_result *result, size_t index);
  const char *(*candidate_config)(const nsa_compiler_result *result, size_t index);
  double (*candidate_cost)(const nsa_compiler_result *result, size_t index);

  /* Of a `compile` result: the output of the asked stage, and the manifest (binary stage only). */
  const void *(*output)(const nsa_compiler_result *result, size_t *size);
  const char *(*manifest)(const nsa_compiler_result *result);
  /* Milliseconds spent: "render=0.1 passes=3.0 emit=0.4 nvrtc=220.1" */
  const char *(*timings)(const nsa_compiler_result *result);

  /* Of a failed result. Empty strings where nothing is known. */
  const char *(*error_field)(const nsa_compiler_result *result);
  const char *(*error_value)(const nsa_compiler_result *result);
  const char *(*error_rule)(const nsa_compiler_result *result);
  const char *(*error_message)(const nsa_compiler_result *result);
  const char *(*error_hint)(const nsa_compiler_result *result);

  void (*destroy)(nsa_compiler_result *result);
} nsa_compiler_api;

/* The library's only export. NULL when it cannot serve the asked ABI version. */
const nsa_compiler_api *nsa_compiler_get_api(uint32_t abi_version);

#ifdef __cplusplus
}
#endif
#endif
