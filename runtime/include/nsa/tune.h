/* NSA Runtime: tuning kernels. A part of nsa.h, which includes it. */
#ifndef NSA_TUNE_H
#define NSA_TUNE_H

#include "nsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What nsa_tune_workload tells of a kernel. All events but the first end the work on the kernel. */
typedef enum nsa_tune_event {
  NSA_TUNE_BEGINS = 0,
  NSA_TUNE_TUNED = 1,  /* measured here, or by another process at the same time */
  NSA_TUNE_MADE = 2,   /* compiled, as it has one candidate */
  NSA_TUNE_FAILED = 3, /* `status` and `error` say why */
  NSA_TUNE_LEFT = 4    /* its share of the budget ended before anything was measured */
} nsa_tune_event;

/* Which passes nsa_tune_workload tunes of each call that the workload names. A call without a gradient, such as one of
 * decode, has no backward pass, and a call of a gradient is itself one. */
typedef enum nsa_tune_direction {
  NSA_TUNE_FORWARD = 0,  /* the call as it is named */
  NSA_TUNE_BACKWARD = 1, /* the call of its gradient */
  NSA_TUNE_BOTH = 2
} nsa_tune_direction;

/* The texts are valid during the call. */
typedef struct nsa_tune_progress {
  size_t size;
  nsa_tune_event event;
  nsa_status status;   /* of the kernel */
  const char *what;    /* the kernel in words */
  const char *problem; /* its problem key */
  const char *error;   /* "" unless the event is NSA_TUNE_FAILED */
  uint64_t done, total;
  double seconds_left; /* of the whole run; negative while it is unknown */
} nsa_tune_progress;

/* nsa_tune_workload calls this function of the host, one call at a time, on its own thread. An answer other than 0 ends
 * the run: nothing further begins. The function must not throw and must not destroy the engine. */
typedef int32_t (*nsa_tune_callback)(void *user, const nsa_tune_progress *progress);

/* nsa_tune_spec reads `kernel` and `kernel_seconds`. nsa_tune_workload reads all fields but `kernel`. Fields that are
 * not read must be zero. */
typedef struct nsa_tune_options {
  size_t size;
  double budget_seconds;      /* for the whole run. 0: no limit. A later run tunes what is left */
  double kernel_seconds;      /* for each kernel at most. 0: tune_budget_seconds of the engine; NSA_OFF: no limit */
  const char *operators;      /* "dense,window": kernels of these operators alone. NULL: all */
  const char *kernel;         /* the problem key of the only kernel of the spec that is tuned. NULL: all */
  int32_t again;              /* 1: also tunes what is stored already */
  int32_t dry_run;            /* 1: tunes nothing; the JSON text says what a run would do */
  nsa_tune_callback progress; /* NULL: no callback */
  void *user;
  int64_t direction; /* nsa_tune_direction */
  int64_t reserved[3];
} nsa_tune_options;

/* Numbers of kernels: all that were asked for; measured; compiled, as they have one candidate; stored before; failed;
 * left, as the budget or the callback ended the run. */
typedef struct nsa_tune_counts {
  size_t size;
  uint64_t kernels, tuned, made, stored, failed, left;
  double seconds;   /* that the run took */
  uint64_t stopped; /* 1: the callback ended the run */
  uint64_t reserved[4];
} nsa_tune_counts;

/* The functions below may get NULL as `options`, `counts` and `json`. The JSON report is freed with nsa_free. No tuning
 * can begin under the policy `fail`, without the compiler library, or for an engine with the option pin_path. */

/* Tunes the kernels of one spec now, even if tuned kernels are stored, and stores the winners. When another thread or
 * process is tuning the same kernel, nsa_tune_spec waits and takes the other's result (`tuned_elsewhere`). In the JSON
 * report `store_trouble` says why a winner was not stored ("" when it was), and only this engine uses it then. `tuned`
 * is false when the budget ended before anything was measured; an earlier winner then stays stored. The counts and the
 * report have the kernels with several candidates.
 *
 * With `kernel` set, nsa_tune_spec tunes this kernel alone and does not change the plans in memory: they keep their
 * kernels. This is for programs that tune many specs which share kernels. A kernel that has only one candidate is found
 * or made without tuning, and its report is {"kernels": []}. */
NSA_API nsa_status nsa_tune_spec(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                 const nsa_tune_options *options, nsa_tune_counts *counts, char **json,
                                 nsa_error *error) NSA_NOEXCEPT;

/* Tunes the kernels of a workload and stores the winners. `workload` is the text of a workload file or of a record of
 * plans (docs/tuning.md). A kernel that cannot be tuned does not end the run: the report has its error. The plans in
 * memory keep their kernels. A crossover with dense attention is not measured: its status is "left". */
NSA_API nsa_status nsa_tune_workload(nsa_engine *engine, const char *workload, const nsa_tune_options *options,
                                     nsa_tune_counts *counts, char **json, nsa_error *error) NSA_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
