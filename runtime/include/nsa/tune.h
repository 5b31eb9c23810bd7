/* NSA Runtime: tuning kernels. A part of nsa.h, which includes it. */
#ifndef NSA_TUNE_H
#define NSA_TUNE_H

#include "nsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tunes the kernels of one spec now, even if tuned kernels are stored, and stores the winners. nsa_tune returns an
 * error under the policy `fail`, which opens no compiler, and for an engine with the option pin_path. When another
 * thread or process is tuning the same kernel, nsa_tune waits and takes the other's result (`tuned_elsewhere`). In the
 * JSON report, which is freed with nsa_free, `store_trouble` says why the winner was not stored ("" when it was): only
 * this engine uses it then. `tuned` is false when the budget ended before anything was measured; an earlier winner then
 * stays stored. */
NSA_API nsa_status nsa_tune(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                            nsa_error *error) NSA_NOEXCEPT;

/* Tunes one of the spec's kernels, named by its problem key, within `budget_seconds` (0: the engine's budget).
 * nsa_tune_kernel is for programs that tune many specs which share kernels. A kernel that has only one candidate is
 * found or made without tuning, and its report is {"kernels": []}. nsa_tune_kernel does not change the plans in memory:
 * they keep their kernels. */
NSA_API nsa_status nsa_tune_kernel(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                   const char *problem, double budget_seconds, char **json,
                                   nsa_error *error) NSA_NOEXCEPT;

/* nsa_tune_workload calls this function of the host, on its own thread, when a kernel begins and when it is done.
 * `what` names the kernel during the call; `seconds_left` is negative while it is unknown. An answer other than 0 ends
 * the run: nothing further begins. The function must not throw and must not destroy the engine. */
typedef int32_t (*nsa_tune_callback)(void *user, const char *what, uint64_t done, uint64_t total, double seconds_left);

typedef struct nsa_tune_options {
  size_t size;
  double budget_seconds;      /* for the whole run; 0: no limit. A later run tunes what is left */
  double kernel_seconds;      /* for each kernel at most; 0: tune_budget_seconds of the engine */
  const char *operators;      /* "dense,window": kernels of these operators alone; NULL: all */
  int32_t again;              /* 1: also tunes what is stored already */
  int32_t dry_run;            /* 1: tunes nothing; the JSON text says what a run would do */
  nsa_tune_callback progress; /* NULL: no callback */
  void *user;
  int64_t reserved[4];
} nsa_tune_options;

/* Numbers of kernels: all that a workload needs; measured; compiled, as they have one candidate; stored before; failed;
 * left, as the budget or the callback ended the run. */
typedef struct nsa_tune_counts {
  size_t size;
  uint64_t kernels, tuned, made, stored, failed, left;
  double seconds;   /* that the run took */
  uint64_t stopped; /* 1: the callback ended the run */
  uint64_t reserved[4];
} nsa_tune_counts;
/* Tunes the kernels of a workload and stores the winners. `workload` is the text of a workload file or of a record of
 * plans (docs/tuning.md). `options`, `counts` and `json` may be NULL; the JSON report is freed with nsa_free. A kernel
 * that cannot be tuned does not end the run: the report has its error. No tuning can begin under the policy `fail` or
 * without the compiler library. A crossover with dense attention is not measured: its status is "left". */
NSA_API nsa_status nsa_tune_workload(nsa_engine *engine, const char *workload, const nsa_tune_options *options,
                                     nsa_tune_counts *counts, char **json, nsa_error *error) NSA_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
