/* A host in C that tunes a workload: what a program without C++ does with nsa_tune_workload. */
#include "tests/cpu/tune_host.h"

#include <stdio.h>

static int32_t count(void *user, const nsa_tune_progress *progress) {
  struct tune_host_calls *calls = user;
  ++calls->calls;
  ++calls->events[progress->event];
  calls->named += progress->size == sizeof *progress && progress->what[0] != '\0' && progress->problem[0] != '\0';
  if (progress->event == NSA_TUNE_FAILED) {
    calls->status = progress->status;
    snprintf(calls->error, sizeof calls->error, "%s", progress->error);
  }
  calls->faults += (progress->status != NSA_OK) != (progress->event == NSA_TUNE_FAILED) ||
                   (progress->error[0] != '\0') != (progress->event == NSA_TUNE_FAILED);
  calls->most_done = progress->done > calls->most_done ? progress->done : calls->most_done;
  calls->total = progress->total;
  return calls->stop_after != 0 && calls->calls >= calls->stop_after;
}

nsa_status tune_in_c(const char *cache, const char *templates, const char *workload, double budget_seconds,
                     struct tune_host_calls *calls, nsa_tune_counts *counts, nsa_error *error) {
  nsa_engine_options engine_options = NSA_INIT(nsa_engine_options);
  engine_options.device = "cpu";
  engine_options.cache_path = cache;
  engine_options.template_dir = templates;
  engine_options.cpu_threads = 1;
  nsa_engine *engine = NULL;
  nsa_status status = nsa_engine_create(&engine_options, &engine, error);
  if (status != NSA_OK)
    return status;
  nsa_tune_options options = NSA_INIT(nsa_tune_options);
  options.budget_seconds = budget_seconds;
  options.progress = count;
  options.user = calls;
  *counts = NSA_INIT(nsa_tune_counts);
  status = nsa_tune_workload(engine, workload, &options, counts, NULL, error);
  nsa_engine_destroy(engine);
  return status;
}
