/* The C interface of libnsa_compiler.so.
 *
 * The runtime opens libnsa_compiler.so only if it finds no compiled kernel for a call, with
 * dlopen(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE). The runtime never closes libnsa_compiler.so,
 * because LLVM keeps static state. No type of C++, LLVM or CUDA is in this header.
 *
 * Conventions: strings are UTF-8 and end with NUL; the library reads them during the call only.
 * nsa_compiler_request, nsa_compiler_check_request and nsa_compiler_api begin with their own size
 * in bytes. An nsa_compiler_result owns all that its accessors return. The caller must destroy
 * each nsa_compiler_result, on success and on failure. All functions of nsa_compiler_api may be
 * called from several threads at once.
 */
#ifndef NSA_COMPILER_H
#define NSA_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NSA_COMPILER_ABI_VERSION 1

/* A named value as text: either a value of the problem (dtype, qk_dim, ...) or a value of a
 * kernel's config (query_tile, ...). */
typedef struct nsa_compiler_value {
  const char *name;
  const char *value;
} nsa_compiler_value;

/* The stages of a compile; a request names the stage after which the compiler stops. `nsa
 * compile --emit` uses the names of these stages in lower case. */
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
  const char *op;                  /* operator name, e.g. "window"; of a program of one's own any word */
  const nsa_compiler_value *fixed; /* the problem's compiled-in values */
  size_t fixed_count;
  const char *template_name;        /* NULL or "": any template that serves the operator */
  const nsa_compiler_value *config; /* values of choices; other choices take the cheapest admissible value */
  size_t config_count;
  const char *template_dir; /* NULL or "": the embedded templates; else a templates/ folder */
  const char *nvrtc_path;   /* NULL or "": search; else the file of NVRTC */
  int32_t
      driver_version; /* version of the CUDA driver (12040 means 12.4), 0: no driver; limits NVRTC's major version */
  nsa_compiler_stage stage;
  const char *cpu_features; /* NULL or "": the host's; else "x86-64-v3", "x86-64-v4" */
  /* A program of one's own, which the request is for instead of the templates of an operator. */
  const char *program_name;            /* what messages call the text */
  const char *program_text;            /* NULL: the request is for an operator */
  const nsa_compiler_value *libraries; /* names and texts; all other libraries are the templates' */
  size_t library_count;
} nsa_compiler_request;

/* A file of the tile language that is to be checked. */
typedef struct nsa_compiler_check_request {
  size_t size;
  const char *path;
  const nsa_compiler_value *values; /* of the problem, and of choices; other values are chosen by the check */
  size_t value_count;
  const char *target; /* NULL or "": all targets that the file names */
  int32_t explain;    /* not 0: the output says what is known of each value of one program */
} nsa_compiler_check_request;

typedef struct nsa_compiler_result nsa_compiler_result;

/* An nsa_compiler_status is 0 on success, else the number of an nsa_status (nsa/nsa.h). If a
 * call fails, its result holds the text of the error. */
typedef int32_t nsa_compiler_status;

typedef struct nsa_compiler_api {
  size_t size;
  uint32_t abi_version;
  const char *source_id; /* digest of the compiler's sources and embedded templates; a kernel stores it as evidence */

  /* Lists the candidates that fit the request, the candidate with the lowest predicted time
   * first. A candidate is a template together with a config. */
  nsa_compiler_status (*list)(const nsa_compiler_request *request, nsa_compiler_result **result);
  /* Renders the candidate with the lowest predicted time and compiles it as far as
   * request->stage. */
  nsa_compiler_status (*compile)(const nsa_compiler_request *request, nsa_compiler_result **result);

  /* Accessors of the list of candidates that `list` returned. The config of a candidate is a
   * text such as "key_tile=64 query_tile=64", sorted by name. The cost of a candidate is a
   * predicted time without a unit: costs can only be compared with each other. */
  size_t (*candidate_count)(const nsa_compiler_result *result);
  const char *(*candidate_template)(const nsa_compiler_result *result, size_t index);
  const char *(*candidate_config)(const nsa_compiler_result *result, size_t index);
  double (*candidate_cost)(const nsa_compiler_result *result, size_t index);

  /* Accessors of the result of `compile`: the output of the requested stage, and the kernel's
   * manifest, which exists only for the stage binary. */
  const void *(*output)(const nsa_compiler_result *result, size_t *size);
  const char *(*manifest)(const nsa_compiler_result *result);
  /* Returns the time of each step of a compile in milliseconds, as a text such as "render=0.1
   * passes=3.0 emit=0.4 nvrtc=220.1". */
  const char *(*timings)(const nsa_compiler_result *result);

  /* Accessors of the error of a failed call: the field, the value, the rule, the message and the
   * hint. An accessor returns "" for a part that the error does not have. */
  const char *(*error_field)(const nsa_compiler_result *result);
  const char *(*error_value)(const nsa_compiler_result *result);
  const char *(*error_rule)(const nsa_compiler_result *result);
  const char *(*error_message)(const nsa_compiler_result *result);
  const char *(*error_hint)(const nsa_compiler_result *result);

  void (*destroy)(nsa_compiler_result *result);

  /* Checks a file of the tile language for all targets. If a program is wrong, `check` returns
   * the status compile_failed, and `messages` says what is wrong. */
  nsa_compiler_status (*check)(const nsa_compiler_check_request *request, nsa_compiler_result **result);
  /* Lays out a text of the tile language; `output` is the layout. `name` is what messages call the
   * text. If the text has errors, `format` returns the status compile_failed. */
  nsa_compiler_status (*format)(const char *name, const char *text, size_t bytes, nsa_compiler_result **result);

  /* Returns the errors and warnings of `check` and `format`, written as clang does: with the line
   * and a caret. Also a good program may have warnings. Of a program that `compile` has compiled,
   * `messages` returns the first line of each warning. */
  const char *(*messages)(const nsa_compiler_result *result);
} nsa_compiler_api;

/* nsa_compiler_get_api is the only function that libnsa_compiler.so exports. nsa_compiler_get_api
 * returns NULL if the library does not implement version `abi_version` of the interface. */
const nsa_compiler_api *nsa_compiler_get_api(uint32_t abi_version);

#ifdef __cplusplus
}
#endif
#endif
