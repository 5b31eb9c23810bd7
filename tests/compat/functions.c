/* A C host of a kept nsa.h: the functions that later headers do not declare, and those that write the host's structs.
 * Nothing may be written behind a struct of the host's size. `functions_c FOLDER`, a folder that is empty. */
#include <nsa/nsa.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 32, DIM = 16, GUARD = 0x5a };
static float q[TOKENS * DIM], k[TOKENS * DIM], v[TOKENS * DIM], out[TOKENS * DIM];
static nsa_error error;
static int faults = 0, lines[8];

static void expect(int is_good, const char *what) {
  if (is_good)
    return;
  fprintf(stderr, "%s: %s [%s] (hint: %s)\n", what, error.message, error.field, error.hint);
  faults = 1;
}

static int is_guard(const void *memory, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (((const unsigned char *)memory)[i] != GUARD)
      return 0;
  return 1;
}

static void log_line(void *user, nsa_log_level level, const char *tag, const char *message) {
  (void)user, (void)tag, (void)message;
  ++lines[(int)level >= 0 && (int)level < 8 ? (int)level : 7];
}

static nsa_spec spec_of_window(void) {
  struct {
    nsa_spec spec;
    unsigned char behind[256];
  } guarded;
  memset(&guarded, GUARD, sizeof guarded);
  nsa_spec_init(&guarded.spec);
  expect(guarded.spec.size == sizeof(nsa_spec) && guarded.spec.window == 512, "nsa_spec_init");
  expect(is_guard(guarded.behind, sizeof guarded.behind), "behind nsa_spec");
  nsa_spec spec = guarded.spec;
  spec.op = NSA_OP_WINDOW;
  spec.dtype = NSA_FP32;
  spec.query_heads = spec.kv_heads = 1;
  spec.qk_dim = spec.v_dim = DIM;
  spec.window = 8;
  return spec;
}

/* DLPack's DLTensor. */
struct dl_tensor {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

static nsa_tensor tensor_of(float *data) {
  static int64_t shape[4] = {1, TOKENS, 1, DIM};
  const struct dl_tensor from = {data, 1, 0, 4, 2, 32, 1, shape, NULL, 0};
  struct {
    nsa_tensor tensor;
    unsigned char behind[256];
  } guarded;
  memset(&guarded, GUARD, sizeof guarded);
  expect(nsa_tensor_from_dlpack(&from, &guarded.tensor, &error) == NSA_OK, "nsa_tensor_from_dlpack");
  expect(guarded.tensor.size == sizeof(nsa_tensor) && guarded.tensor.strides[1] == DIM, "the tensor of DLPack");
  expect(is_guard(guarded.behind, sizeof guarded.behind), "behind nsa_tensor");
  nsa_tensor tensor = guarded.tensor;
  struct dl_tensor back;
  expect(nsa_tensor_to_dlpack(&tensor, "cpu", &back, &error) == NSA_OK && back.data == data && back.bits == 32 &&
             back.shape == tensor.shape,
         "nsa_tensor_to_dlpack");
  return tensor;
}

static void *workspace_of(const nsa_plan *plan, size_t *bytes) {
  expect(nsa_plan_workspace_size(plan, bytes, &error) == NSA_OK, "nsa_plan_workspace_size");
  return aligned_alloc(256, (*bytes + 256) / 256 * 256);
}

static void check_runs(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima) {
  nsa_tensor tensors[4] = {tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(out)};
  const nsa_binding bindings[4] = {
      {NSA_Q, &tensors[0]}, {NSA_K, &tensors[1]}, {NSA_V, &tensors[2]}, {NSA_OUT, &tensors[3]}};
  nsa_plan *plan = NULL;
  size_t bytes = 0, count = 0;
  expect(nsa_plan_create(engine, spec, maxima, NULL, &plan, &error) == NSA_OK, "nsa_plan_create");
  void *workspace = workspace_of(plan, &bytes);
  expect(nsa_run(plan, bindings, 4, workspace, bytes, NULL, &error) == NSA_OK, "nsa_run");
  expect(fabsf(out[0] - v[0]) <= 1e-6f, "the first token attends itself alone");
  expect(nsa_plan_status(plan, NULL, &error) == NSA_OK, "nsa_plan_status");
  nsa_part_time times[2];
  memset(times, GUARD, sizeof times);
  expect(nsa_run_timed(plan, bindings, 4, workspace, bytes, NULL, times, 2, &count, &error) == NSA_OK, "nsa_run_timed");
  expect(count == 1 && strcmp(times[0].name, "window") == 0 && times[0].launches == 1 && times[0].milliseconds > 0,
         "the time of a part");
  expect(is_guard(&times[1], sizeof times[1]), "behind the last time");
  free(workspace);
  nsa_plan_destroy(plan);

  nsa_plan_options options = NSA_INIT(nsa_plan_options);
  options.compare = 1;
  char *json = NULL;
  expect(nsa_plan_create_with(engine, spec, maxima, &options, NULL, &plan, &error) == NSA_OK, "nsa_plan_create_with");
  workspace = workspace_of(plan, &bytes);
  expect(nsa_plan_compare_report(plan, &json, &error) == NSA_INVALID_ARGUMENT && !json, "a report before a run");
  expect(nsa_run(plan, bindings, 4, workspace, bytes, NULL, &error) == NSA_OK, "a run that compares");
  expect(nsa_plan_compare_report(plan, &json, &error) == NSA_OK && strstr(json, "\"compared\": true") &&
             strstr(json, "\"relative_rms\": "),
         "nsa_plan_compare_report");
  nsa_free(json);
  free(workspace);
  nsa_plan_destroy(plan);
}

static void check_tuning(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima) {
  char *json = NULL, problem[1024] = "";
  expect(nsa_explain(engine, spec, maxima, &json, &error) == NSA_OK && strstr(json, "\"would\": "), "nsa_explain");
  const char *begin = json ? strstr(json, "\"problem\": \"") : NULL;
  if (begin)
    sscanf(begin, "\"problem\": \"%1023[^\"]", problem);
  nsa_free(json);
  expect(nsa_tune(engine, spec, maxima, &json, &error) == NSA_OK && strstr(json, "\"winner\": "), "nsa_tune");
  nsa_free(json);
  expect(nsa_tune_kernel(engine, spec, maxima, problem, 0.5, &json, &error) == NSA_OK && strstr(json, problem),
         "nsa_tune_kernel");
  nsa_free(json);
  expect(nsa_tune_kernel(engine, spec, maxima, "none", 0.5, &json, &error) == NSA_INVALID_ARGUMENT && !json,
         "the kernel of another spec");
  expect(nsa_tune(engine, spec, maxima, NULL, &error) == NSA_INVALID_ARGUMENT, "no place for the text");
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: functions_c FOLDER\n");
    return 2;
  }
  for (int i = 0; i < TOKENS * DIM; ++i)
    q[i] = (float)(i * 37 % 101) / 101, k[i] = (float)(i * 53 % 97) / 97, v[i] = (float)(i * 29 % 89) / 89;
  char cache[2048];
  snprintf(cache, sizeof cache, "%s/kernels.db", argv[1]);
  setenv("NSA_MISS", "fail", 1);
  setenv("NSA_LOG", "off", 1);
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = cache;
  options.cache_packs = "none";
  options.miss_policy_set = 1; /* the default policy, which is 0, whatever NSA_MISS says */
  options.miss_policy = NSA_MISS_DEFAULT;
  options.tune_budget_seconds = 0.5;
  options.cpu_threads = 1;
  options.log = log_line;
  options.log_level = NSA_LOG_DEBUG; /* which is 0 too */
  nsa_engine *engine = NULL;
  expect(nsa_engine_create(&options, &engine, &error) == NSA_OK, "nsa_engine_create");
  const nsa_spec spec = spec_of_window();
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  maxima.max_batch = 1;
  maxima.max_seqlen_q = maxima.max_seqlen_k = TOKENS;
  check_runs(engine, &spec, &maxima);
  check_tuning(engine, &spec, &maxima);
  expect(lines[NSA_LOG_DEBUG] > 0 && lines[NSA_LOG_INFO] > 0, "lines of the lowest levels");
  expect(lines[NSA_LOG_OFF] == 0 && lines[7] == 0, "levels that the host does not know");
  nsa_stats stats = NSA_INIT(nsa_stats);
  expect(nsa_engine_stats(engine, &stats, &error) == NSA_OK && stats.plans_compiled > 0 && stats.runs == 3,
         "nsa_engine_stats");
  nsa_engine_destroy(engine);
  expect(nsa_abi_version() == NSA_ABI_VERSION && strcmp(nsa_status_name(NSA_CAPTURING), "") != 0, "the version");
  return faults;
}
