/* A C host of the kept nsa.h: every struct of it with the library that is built here. Each field of nsa_engine_options
 * is spoiled in its place of then, and the error must name it. No text of an error is written behind the host's
 * nsa_error. `structs_c FOLDER`, a folder that is empty. */
#include <nsa/nsa.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  nsa_error error;
  char behind[4096];
} guarded;
static int faults = 0;

static void expect(int isGood, const char *what) {
  for (size_t i = 0; i < sizeof guarded.behind; ++i)
    if (guarded.behind[i] != 0x5a) {
      fprintf(stderr, "%s: byte %zu behind nsa_error was written\n", what, i);
      exit(1);
    }
  if (isGood)
    return;
  fprintf(stderr, "%s: %s [%s] (hint: %s)\n", what, guarded.error.message, guarded.error.field, guarded.error.hint);
  faults = 1;
}

static nsa_engine_options options_of(const char *cache) {
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = cache;
  options.cache_packs = "none";
  options.miss_policy_set = 1;
  options.miss_policy = NSA_MISS_FAIL;
  return options;
}

/* Spoils one field and expects its name. */
#define REFUSED(member, value)                                                                                         \
  do {                                                                                                                 \
    nsa_engine_options spoiled = options_of(cache);                                                                    \
    nsa_engine *none = NULL;                                                                                           \
    spoiled.member = value;                                                                                            \
    const nsa_status status = nsa_engine_create(&spoiled, &none, &guarded.error);                                      \
    expect(status == NSA_INVALID_ARGUMENT && !none && strcmp(guarded.error.field, #member) == 0, #member);             \
  } while (0)

static void check_options(const char *cache) {
  REFUSED(device, "tpu");
  REFUSED(cache_path, "/dev/null/kernels.db");
  REFUSED(miss_policy_set, 2);
  REFUSED(miss_policy, (nsa_miss_policy)4);
  REFUSED(tune_budget_seconds, -7);
  REFUSED(compiler_path, "/no/such/library.so");
  REFUSED(nvrtc_path, "/no/such/library.so");
  REFUSED(template_dir, "/no/such/folder");
  REFUSED(dump_dir, "/dev/null/dump");
  REFUSED(cpu_threads, 5000);
  REFUSED(compile_threads, 5000);
  REFUSED(cpu_features, "sse2");
  REFUSED(cache_packs, "/no/such.nsapack");
  REFUSED(cache_keys, "/no/such.public");
  REFUSED(require_signature, 2);
  REFUSED(cache_max_bytes, -7);
  REFUSED(fallbacks, "some");
  REFUSED(log_limit, -7);
  REFUSED(uniform_gate, 2);
  REFUSED(force_branch, "slc");
  REFUSED(tune_exhaustive, 2);
  REFUSED(ignore_thresholds, 2);
  REFUSED(decode_splits, 17);
  REFUSED(flags, 1);
  /* Later headers have other fields where 0.1 has its reserved numbers. */
  for (size_t i = 0; i < sizeof((nsa_engine_options){0}.reserved) / sizeof(int64_t); ++i) {
    nsa_engine_options spoiled = options_of(cache);
    nsa_engine *none = NULL;
    spoiled.reserved[i] = 1;
    expect(nsa_engine_create(&spoiled, &none, &guarded.error) == NSA_INVALID_ARGUMENT && !none &&
               strcmp(guarded.error.field, "options.reserved") == 0,
           "reserved");
  }
}

static nsa_spec window_spec(void) {
  nsa_spec spec;
  memset(&spec, 0xff, sizeof spec);
  nsa_spec_init(&spec);
  expect(spec.size == sizeof spec && spec.window == 512 && spec.page_size == 0, "nsa_spec_init");
  spec.op = NSA_OP_WINDOW;
  spec.query_heads = spec.kv_heads = 1;
  spec.qk_dim = spec.v_dim = 16;
  return spec;
}

/* A miss has the longest hint, a command with the place of the cache in it. */
static void check_miss(nsa_engine *engine, const char *what) {
  const nsa_spec spec = window_spec();
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  maxima.max_batch = 1;
  maxima.max_seqlen_q = maxima.max_seqlen_k = 64;
  nsa_plan *plan = NULL;
  expect(nsa_plan_create(engine, &spec, &maxima, NULL, &plan, &guarded.error) == NSA_CACHE_MISS, what);
  expect(strlen(guarded.error.hint) == 383 && strcmp(guarded.error.hint + 380, "...") == 0, "a hint that is cut");
  char *json = NULL;
  expect(nsa_explain(engine, &spec, &maxima, &json, &guarded.error) == NSA_OK && strstr(json, "\"would\""), "explain");
  nsa_free(json);
  json = NULL;
  expect(nsa_tune(engine, &spec, &maxima, &json, &guarded.error) != NSA_OK && !json, "tune under the policy fail");
  expect(nsa_engine_describe(engine, &json, &guarded.error) == NSA_OK && strstr(json, "\"kind\": \"cpu\""), "describe");
  nsa_free(json);
  nsa_stats stats = NSA_INIT(nsa_stats);
  expect(nsa_engine_stats(engine, &stats, &guarded.error) == NSA_OK && stats.plans_failed == 1, "stats");
}

static void check_ranges(void) {
  int32_t list[2][2] = {{0, -1}, {0, -1}}, ranges[2][2][2];
  nsa_tensor block_list = NSA_INIT(nsa_tensor), token_ranges = NSA_INIT(nsa_tensor);
  nsa_range_options options = NSA_INIT(nsa_range_options);
  options.sel_block = 4;
  block_list.data = list;
  token_ranges.data = ranges;
  block_list.dtype = token_ranges.dtype = NSA_INT32;
  block_list.rank = token_ranges.rank = 4;
  const int64_t shape[4] = {1, 2, 1, 2}, strides[4] = {4, 2, 2, 1}, range_shape[4] = {1, 2, 2, 2},
                range_strides[4] = {8, 4, 2, 1};
  memcpy(block_list.shape, shape, sizeof shape);
  memcpy(block_list.strides, strides, sizeof strides);
  memcpy(token_ranges.shape, range_shape, sizeof shape);
  memcpy(token_ranges.strides, range_strides, sizeof strides);
  expect(nsa_ranges_from_block_list(&block_list, &options, &token_ranges, &guarded.error) == NSA_OK &&
             ranges[1][0][0] == 0 && ranges[1][0][1] == 2 && ranges[1][1][1] == 0,
         "ranges");
  list[1][0] = 9;
  expect(nsa_block_list_from_ranges(&token_ranges, &options, &block_list, &guarded.error) == NSA_OK && list[1][0] == 0,
         "block list");
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: structs_c FOLDER\n");
    return 2;
  }
  char cache[2048];
  memset(guarded.behind, 0x5a, sizeof guarded.behind);
  /* A folder whose name makes the hint of a miss longer than the host's nsa_error can hold. */
  snprintf(cache, sizeof cache, "%s/%0200d/%0200d/kernels.db", argv[1], 1, 2);
  check_options(cache);
  const nsa_engine_options options = options_of(cache);
  nsa_engine *engine = NULL;
  expect(nsa_engine_create(&options, &engine, &guarded.error) == NSA_OK, "engine");
  check_miss(engine, "a miss");
  nsa_engine_destroy(engine);

  /* Without options nothing says how old the host is. */
  setenv("NSA_DEVICE", "cpu", 1);
  setenv("NSA_MISS", "fail", 1);
  setenv("NSA_CACHE_PACKS", "none", 1);
  *strrchr(cache, '/') = '\0';
  setenv("NSA_CACHE_DIR", cache, 1);
  expect(nsa_engine_create(NULL, &engine, &guarded.error) == NSA_OK, "engine without options");
  check_miss(engine, "a miss without options");
  nsa_engine_destroy(engine);
  check_ranges();
  return faults;
}
