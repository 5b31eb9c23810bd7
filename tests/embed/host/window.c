/* A C host: window attention in fp32 on the CPU, compared with the definition. `window_c CACHE cold|warm`: a cold run
 * may compile; a warm one must find its kernel in CACHE without the compiler, LLVM or NVRTC in its memory map. */
#include <nsa/nsa.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 2, SEQLEN_Q = 37, SEQLEN_K = 101, HEADS = 6, KV_HEADS = 2, QK_DIM = 24, V_DIM = 20, WINDOW = 13 };

static float q[BATCH][SEQLEN_Q][HEADS][QK_DIM];
static float k[BATCH][SEQLEN_K][KV_HEADS][QK_DIM];
static float v[BATCH][SEQLEN_K][KV_HEADS][V_DIM];
static float out[BATCH][SEQLEN_Q][HEADS][V_DIM];
static float lse[BATCH][SEQLEN_Q][HEADS];

static void fail(const char *what, const nsa_error *error) {
  fprintf(stderr, "%s: %s (hint: %s)\n", what, error->message, error->hint);
  exit(1);
}

static void fill(float *values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = 2.0f * (float)rand() / (float)RAND_MAX - 1.0f;
}

/* Relative RMS of the output against the definition in double; NaN when anything is NaN. */
static double measure_error(double *lse_error) {
  double errors = 0, squares = 0;
  *lse_error = 0;
  for (int b = 0; b < BATCH; ++b)
    for (int i = 0; i < SEQLEN_Q; ++i)
      for (int h = 0; h < HEADS; ++h) {
        const int g = h / (HEADS / KV_HEADS), last = SEQLEN_K - SEQLEN_Q + i;
        const int first = last - WINDOW + 1 > 0 ? last - WINDOW + 1 : 0;
        double sum = 0, result[V_DIM] = {0};
        for (int t = first; t <= last; ++t) {
          double score = 0;
          for (int d = 0; d < QK_DIM; ++d)
            score += (double)q[b][i][h][d] * k[b][t][g][d];
          const double weight = exp(score / sqrt((double)QK_DIM));
          sum += weight;
          for (int d = 0; d < V_DIM; ++d)
            result[d] += weight * v[b][t][g][d];
        }
        for (int d = 0; d < V_DIM; ++d) {
          const double expected = result[d] / sum, difference = out[b][i][h][d] - expected;
          errors += difference * difference;
          squares += expected * expected;
        }
        const double difference = fabs(lse[b][i][h] - log(sum));
        if (!(difference <= *lse_error))
          *lse_error = difference;
      }
  return sqrt(errors / squares);
}

static int maps_a_compiler(void) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "nsa_compiler") || strstr(line, "LLVM") || strstr(line, "nvrtc")) {
      fprintf(stderr, "mapped: %s", line);
      found = 1;
    }
  if (maps)
    fclose(maps);
  return found || !maps;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: window_c CACHE cold|warm\n");
    return 2;
  }
  const int warm = strcmp(argv[2], "warm") == 0;
  const unsigned seed = (unsigned)time(NULL);
  printf("seed %u\n", seed);
  srand(seed);
  fill(&q[0][0][0][0], sizeof q / sizeof(float));
  fill(&k[0][0][0][0], sizeof k / sizeof(float));
  fill(&v[0][0][0][0], sizeof v / sizeof(float));
  memset(out, 0xff, sizeof out); /* NaN */
  memset(lse, 0xff, sizeof lse);

  nsa_error error;
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = argv[1];
  options.miss_policy = warm ? NSA_MISS_FAIL : NSA_MISS_DEFAULT;
  nsa_engine *engine = NULL;
  if (nsa_engine_create(&options, &engine, &error) != NSA_OK)
    fail("engine", &error);

  nsa_spec spec = NSA_INIT(nsa_spec);
  spec.op = NSA_OP_WINDOW;
  spec.dtype = NSA_FP32;
  spec.query_heads = HEADS;
  spec.kv_heads = KV_HEADS;
  spec.qk_dim = QK_DIM;
  spec.v_dim = V_DIM;
  spec.window = WINDOW;
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  maxima.max_batch = BATCH;
  maxima.max_seqlen_q = SEQLEN_Q;
  maxima.max_seqlen_k = SEQLEN_K;
  nsa_plan *plan = NULL;
  if (nsa_plan_create_with(engine, &spec, &maxima, NULL, NULL, &plan, &error) != NSA_OK)
    fail("plan", &error);

  size_t workspace_bytes = 0;
  if (nsa_plan_workspace_size(plan, &workspace_bytes, &error) != NSA_OK)
    fail("workspace", &error);
  /* aligned_alloc wants a multiple of the alignment. */
  void *workspace = aligned_alloc(256, (workspace_bytes + 256) / 256 * 256);
  const nsa_binding bindings[] = {{NSA_Q, NSA_ROWS(q, NSA_FP32, BATCH, SEQLEN_Q, HEADS, QK_DIM)},
                                  {NSA_K, NSA_ROWS(k, NSA_FP32, BATCH, SEQLEN_K, KV_HEADS, QK_DIM)},
                                  {NSA_V, NSA_ROWS(v, NSA_FP32, BATCH, SEQLEN_K, KV_HEADS, V_DIM)},
                                  {NSA_OUT, NSA_ROWS(out, NSA_FP32, BATCH, SEQLEN_Q, HEADS, V_DIM)},
                                  {NSA_LSE, NSA_ROWS(lse, NSA_FP32, BATCH, SEQLEN_Q, HEADS)}};
  if (nsa_run(plan, bindings, sizeof bindings / sizeof bindings[0], workspace, workspace_bytes, NULL, &error) != NSA_OK)
    fail("run", &error);

  double lse_error = 0;
  const double relative = measure_error(&lse_error);
  printf("relative RMS %.3g, lse %.3g\n%s\n", relative, lse_error, nsa_plan_describe(plan));
  int good = relative <= 1e-5 && lse_error <= 1e-3;
  if (strstr(nsa_plan_describe(plan), "\"template\": \"attention\"") == NULL) {
    fprintf(stderr, "another template ran\n");
    good = 0;
  }
  nsa_plan_info info = NSA_INIT(nsa_plan_info);
  if (nsa_plan_get_info(plan, &info, &error) != NSA_OK)
    fail("info", &error);
  if (warm && (info.source != NSA_FROM_DATABASE || maps_a_compiler()))
    good = 0;
  free(workspace);
  nsa_plan_destroy(plan);
  nsa_engine_destroy(engine);
  return good ? 0 : 1;
}
