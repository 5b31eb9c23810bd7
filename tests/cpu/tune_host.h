/* Tunes a workload with an engine of its own, on one thread of the CPU. tune_host.c is C. */
#pragma once

#include "runtime/include/nsa/nsa.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_host_calls {
  uint64_t calls, named, most_done, total;
  uint64_t events[NSA_TUNE_LEFT + 1];
  uint64_t faults;   /* calls whose status and error do not fit the event */
  nsa_status status; /* of the last kernel that failed */
  char error[512];
  uint64_t stop_after; /* ends the run with this call; 0: never */
};

nsa_status tune_in_c(const char *cache, const char *templates, const char *workload, double budget_seconds,
                     struct tune_host_calls *calls, nsa_tune_counts *counts, nsa_error *error);

#ifdef __cplusplus
}
#endif
