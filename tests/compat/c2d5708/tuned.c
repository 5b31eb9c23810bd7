/* A C host of nsa.h at c2d5708 that copies the spec of its callback and plans with the copy, behind which lies memory
 * of its own. `tuned_c FOLDER`, a folder that is empty. */
#include <nsa/nsa.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static atomic_int calls, faults;

static void on_tuned(void *user, nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima) {
  struct {
    nsa_spec spec;
    unsigned char own[256];
  } copy;
  memset(&copy, 0x5a, sizeof copy);
  copy.spec = *spec;
  nsa_plan *plan = NULL;
  nsa_error error;
  if (user != &calls || nsa_plan_create(engine, &copy.spec, maxima, NULL, &plan, &error) != NSA_OK) {
    fprintf(stderr, "a plan with a copy of the spec: %s (%s)\n", error.message, error.hint);
    atomic_fetch_add(&faults, 1);
  }
  nsa_plan_destroy(plan);
  atomic_fetch_add(&calls, 1);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: tuned_c FOLDER\n");
    return 2;
  }
  char cache[2048];
  snprintf(cache, sizeof cache, "%s/kernels.db", argv[1]);
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = cache;
  options.cache_packs = "none";
  options.miss_policy = NSA_MISS_BACKGROUND;
  options.tune_budget_seconds = 0.2;
  options.cpu_threads = 1;
  options.tuned = on_tuned;
  options.tuned_user = &calls;
  nsa_engine *engine = NULL;
  nsa_plan *plan = NULL;
  nsa_error error;
  nsa_spec spec;
  nsa_spec_init(&spec);
  spec.op = NSA_OP_WINDOW;
  spec.dtype = NSA_FP32;
  spec.query_heads = spec.kv_heads = 1;
  spec.qk_dim = spec.v_dim = 16;
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  maxima.max_batch = 1;
  maxima.max_seqlen_q = maxima.max_seqlen_k = 32;
  if (nsa_engine_create(&options, &engine, &error) != NSA_OK ||
      nsa_plan_create(engine, &spec, &maxima, NULL, &plan, &error) != NSA_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  for (int i = 0; i < 6000 && atomic_load(&calls) == 0; ++i)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  nsa_plan_destroy(plan);
  nsa_engine_destroy(engine);
  if (atomic_load(&calls) != 1)
    fprintf(stderr, "%d calls\n", atomic_load(&calls));
  return atomic_load(&calls) != 1 || atomic_load(&faults) != 0;
}
