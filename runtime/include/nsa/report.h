/* NSA Runtime: what an engine and its plans do, would do and have done. A part of nsa.h, which includes it. */
#ifndef NSA_REPORT_H
#define NSA_REPORT_H

#include "nsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A person reads the JSON texts of the functions below, and a program reads their structs. A text that is too long for
 * its place in a struct is cut and ends with "...". */

typedef enum nsa_source {
  NSA_FROM_MEMORY = 0,
  NSA_FROM_DATABASE = 1,
  NSA_FROM_PACK = 2,
  NSA_FROM_COMPILER = 3
} nsa_source;

/* How near a kernel is to the problem that it serves (docs/deploying_without_a_compiler.md). */
typedef enum nsa_step {
  NSA_STEP_EXACT = 0,        /* made for this problem and this model of the device */
  NSA_STEP_NEAREST = 1,      /* for other lengths, batches or windows */
  NSA_STEP_MODEL = 2,        /* for another model of the architecture */
  NSA_STEP_ARCHITECTURE = 3, /* for an older architecture */
  NSA_STEP_COMPILED = 4      /* the default configuration, which was not measured */
} nsa_step;

/* A JSON text that says what the plan runs: `operator`, `problem`, `device`, `source` (memory, database, pack,
 * compiled), `tuned`, `fallbacks` (kernels that were tried first, and why they did not serve), `milliseconds` of
 * lookup, render, compile, tune and load, and `launches` in their order, each with operator, template, config, content,
 * target and grid. The text of nsa_plan_describe is valid as long as the plan. */
NSA_API const char *nsa_plan_describe(const nsa_plan *plan) NSA_NOEXCEPT;

/* What the text of nsa_plan_describe says, for programs: the fields have the same names and values. */
typedef struct nsa_plan_info {
  size_t size;
  nsa_source source;
  int32_t tuned; /* 1: every kernel that has a choice was tuned */
  uint64_t workspace_bytes;
  double lookup_ms, render_ms, compile_ms, tune_ms, load_ms; /* 0 for a plan from memory */
} nsa_plan_info;
NSA_API nsa_status nsa_plan_get_info(const nsa_plan *plan, nsa_plan_info *info, nsa_error *error) NSA_NOEXCEPT;

/* One launch of a plan: an entry of the array `launches` in the text of nsa_plan_describe. */
typedef struct nsa_launch {
  char operator_name[24], template_name[32], config[256], problem[512];
  char content[72];    /* the digest of the kernel */
  char target[16];     /* "sm_90a", "x86-64-v3" */
  char served_by[256]; /* how the problem that the kernel was stored for differs; "" for NSA_STEP_EXACT */
  nsa_source source;
  nsa_step step;
  int32_t tuned; /* 1: measured on this model of the device */
  int32_t grid[3], threads;
  int64_t shared_bytes, scratch_bytes;
} nsa_launch;
/* Fills up to `capacity` entries of `launches`, in their order, and sets *count to the number of launches.
 * `launch_bytes` is the distance from one entry to the next. */
NSA_API nsa_status nsa_plan_launches_sized(const nsa_plan *plan, nsa_launch *launches, size_t launch_bytes,
                                           size_t capacity, size_t *count, nsa_error *error) NSA_NOEXCEPT;
#define nsa_plan_launches(plan, launches, capacity, count, error)                                                      \
  nsa_plan_launches_sized(plan, launches, sizeof(nsa_launch), capacity, count, error)

/* Says what would run for a spec, without compiling or storing anything. The JSON of nsa_explain is freed with
 * nsa_free. For an operator with several tuned kernels the JSON text has the array `kernels`, in the order of the
 * launches. The field `fails` of a kernel is true where a plan would fail because the kernel is missing. nsa_explain
 * lists a kernel that is never tuned only if the kernel's field `fails` is true. */
NSA_API nsa_status nsa_explain(const nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                               nsa_error *error) NSA_NOEXCEPT;

typedef enum nsa_action {
  NSA_WOULD_LOAD = 0,    /* the stored kernel is used */
  NSA_WOULD_REMAKE = 1,  /* the configuration of the stored kernel is compiled again */
  NSA_WOULD_TUNE = 2,    /* candidates are compiled and measured */
  NSA_WOULD_COMPILE = 3, /* the first candidate is compiled */
  NSA_WOULD_FAIL = 4
} nsa_action;

typedef enum nsa_reason {
  NSA_AS_MEASURED = 0,  /* the winner of a tuning of this problem on this model of the device */
  NSA_AS_STORED = 1,    /* stored for this problem, but never measured */
  NSA_AS_OTHER = 2,     /* stored for another problem: `step` says how near */
  NSA_AS_SEARCHED = 3,  /* the first of the candidates that would be measured */
  NSA_AS_PREDICTED = 4, /* the first in the order of the cost model, as nothing that is stored may serve */
  NSA_AS_MISSING = 5,   /* nothing that is stored may serve, and nothing may be made */
  NSA_AS_ERROR = 6      /* `status` */
} nsa_reason;

/* What would serve one kernel of a spec: an entry of the array `kernels` in the text of nsa_explain. `source`, `step`,
 * `tuned`, `template_name` and `config` are those of the kernel that would serve; they are 0 and "" where none would.
 */
typedef struct nsa_choice {
  char part[24], template_name[32], config[256], problem[512];
  nsa_action action;
  nsa_reason reason;
  nsa_source source;
  nsa_step step;
  nsa_status status; /* of a plan, as far as this kernel decides it */
  int32_t tuned, in_memory, tunes_in_background;
} nsa_choice;
/* Fills up to `capacity` entries of `choices`, in the order of the text of nsa_explain, and sets *count to their
 * number. `choice_bytes` is the distance from one entry to the next. */
NSA_API nsa_status nsa_explain_choices_sized(const nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                             nsa_choice *choices, size_t choice_bytes, size_t capacity, size_t *count,
                                             nsa_error *error) NSA_NOEXCEPT;
#define nsa_explain_choices(engine, spec, maxima, choices, capacity, count, error)                                     \
  nsa_explain_choices_sized(engine, spec, maxima, choices, sizeof(nsa_choice), capacity, count, error)

/* Counters since the engine opened. */
typedef struct nsa_stats {
  size_t size;
  uint64_t plans_from_memory, plans_from_database, plans_compiled, plans_failed;
  uint64_t kernels_compiled, kernels_measured, kernels_rejected, kernels_loaded;
  uint64_t cache_damaged_rows, cache_failed_writes;
  uint64_t runs;
  uint64_t cache_pack_hits, cache_refused_packs; /* kernels that packs served; packs that were refused */
  /* Kernels that were used as fallbacks (docs/deploying_without_a_compiler.md). fallback_cpu: 1 if no GPU could be
   * used. */
  uint64_t fallback_nearest, fallback_model, fallback_architecture, fallback_compiled, fallback_cpu;
  /* Background tuning: the number of problems that wait or are being tuned (pending), of problems that were tuned
   * (done), and of problems that could not be tuned (failed). */
  uint64_t background_pending, background_done, background_failed;
  /* The milliseconds of looking up, rendering, compiling, tuning and loading kernels, summed over the kernels of all
   * plans, even if several kernels were made at the same time. */
  double lookup_ms, render_ms, compile_ms, tune_ms, load_ms;
  uint64_t log_dropped; /* log lines that the rate limit held back */
  uint64_t reserved[10];
} nsa_stats;
NSA_API nsa_status nsa_engine_get_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) NSA_NOEXCEPT;

/* Returns a JSON text, which the caller frees with nsa_free: the device, the cache file, the compiler library and the
 * options that were set, and why a device, a file or a library cannot be used. */
NSA_API nsa_status nsa_engine_describe(const nsa_engine *engine, char **json, nsa_error *error) NSA_NOEXCEPT;

/* What the object `device` in the text of nsa_engine_describe says, for programs: the fields have the same names and
 * values. A text that is too long is cut. A field that the device does not have is "" or 0. Choices are stored under
 * choice_key, which is `key`, and with a template_dir also names the content of this folder. */
typedef struct nsa_device_info {
  size_t size;
  char kind[8], key[128], choice_key[256], name[128], target[16], features[32]; /* kind: "gpu" or "cpu" */
  char compute_capability[16], driver[32];
  int64_t ordinal, threads, multiprocessors, memory_bytes, l2_bytes, bandwidth_gbs, shared_bytes_per_block;
} nsa_device_info;
NSA_API nsa_status nsa_engine_get_device(const nsa_engine *engine, nsa_device_info *info,
                                         nsa_error *error) NSA_NOEXCEPT;
/* Gives the report of the last run of a plan that was made with the option `compare`, as a JSON text, which the caller
 * frees with nsa_free. docs/embedding.md describes the report. */
NSA_API nsa_status nsa_plan_compare_report(const nsa_plan *plan, char **json, nsa_error *error) NSA_NOEXCEPT;

/* One kernel of such a plan: an entry of the array `parts` in the report. A kernel that writes block lists has numbers
 * of lists, and every other kernel has errors of elements. */
typedef struct nsa_comparison {
  char part[24], operator_name[24], template_name[32], config[256];
  char definition_template[32], definition_config[256]; /* of the kernel that defines the operator */
  int32_t compared;    /* 0: the kernel was not compared, and the following fields are 0 */
  int32_t same_kernel; /* 1: it defines the operator itself */
  int64_t lists, different_lists;
  int64_t elements;
  double max_abs, mean_abs, relative_rms; /* over the elements that are finite in both results */
  int64_t unequal_nan, unequal_inf;       /* elements that are NaN, or infinite, in one result alone */
} nsa_comparison;
/* Fills up to `capacity` entries of `comparisons`, in the order of the report, and sets *count to their number.
 * `comparison_bytes` is the distance from one entry to the next. */
NSA_API nsa_status nsa_plan_comparisons_sized(const nsa_plan *plan, nsa_comparison *comparisons,
                                              size_t comparison_bytes, size_t capacity, size_t *count,
                                              nsa_error *error) NSA_NOEXCEPT;
#define nsa_plan_comparisons(plan, comparisons, capacity, count, error)                                                \
  nsa_plan_comparisons_sized(plan, comparisons, sizeof(nsa_comparison), capacity, count, error)

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
