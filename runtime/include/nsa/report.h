/* NSA Runtime: what an engine and its plans do, would do and have done. A part of nsa.h, which includes it. */
#ifndef NSA_REPORT_H
#define NSA_REPORT_H

#include "nsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A JSON text that says what the plan runs: `operator`, `problem`, `device`, `source` (memory, database, pack,
 * compiled), `tuned`, `fallbacks` (kernels that were tried first, and why they did not serve), `milliseconds` of
 * lookup, render, compile, tune and load, and `launches` in their order, each with operator, template, config, content,
 * target and grid. The text of nsa_plan_describe is valid as long as the plan. */
NSA_API const char *nsa_plan_describe(const nsa_plan *plan) NSA_NOEXCEPT;

typedef enum nsa_source { NSA_FROM_MEMORY, NSA_FROM_DATABASE, NSA_FROM_PACK, NSA_FROM_COMPILER } nsa_source;
/* What the text of nsa_plan_describe says, for programs: the fields have the same names and values. */
typedef struct nsa_plan_info {
  size_t size;
  nsa_source source;
  int32_t tuned; /* 1: every kernel that has a choice was tuned */
  uint64_t workspace_bytes;
  double lookup_ms, render_ms, compile_ms, tune_ms, load_ms; /* 0 for a plan from memory */
} nsa_plan_info;
NSA_API nsa_status nsa_plan_get_info(const nsa_plan *plan, nsa_plan_info *info, nsa_error *error) NSA_NOEXCEPT;

/* Says what would run for a spec, without compiling or storing anything. The JSON of nsa_explain is freed with
 * nsa_free. For an operator with several tuned kernels the JSON texts of nsa_explain and nsa_tune have the array
 * `kernels`, in the order of the launches. The field `fails` of a kernel is true where a plan would fail because the
 * kernel is missing. nsa_explain lists a kernel that is never tuned only if the kernel's field `fails` is true. */
NSA_API nsa_status nsa_explain(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                               nsa_error *error) NSA_NOEXCEPT;

/* Counters since the engine opened. A host that was built with an earlier nsa.h gets the fields of nsa_stats that it
 * knows. */
typedef struct nsa_stats {
  size_t size;
  uint64_t plans_from_memory, plans_from_database, plans_compiled, plans_failed;
  uint64_t kernels_compiled, kernels_measured, kernels_rejected, kernels_loaded;
  uint64_t cache_damaged_rows, cache_failed_writes;
  uint64_t runs;
  uint64_t cache_pack_hits, cache_refused_packs; /* kernels that packs served; packs that were refused */
  /* Kernels that were used as fallbacks (docs/embedding.md). fallback_cpu: 1 if no GPU could be used. */
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
NSA_API nsa_status nsa_engine_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) NSA_NOEXCEPT;

/* Returns a JSON text, which the caller frees with nsa_free: the device, the cache file, the compiler library and the
 * options that were set, and why a device, a file or a library cannot be used. */
NSA_API nsa_status nsa_engine_describe(nsa_engine *engine, char **json, nsa_error *error) NSA_NOEXCEPT;

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

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
