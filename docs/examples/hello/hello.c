/* Native sparse attention of one sequence in host memory, in C11. With TREE, an installed tree or an unpacked bundle:
 * cc hello.c -I$TREE/include -L$TREE/lib -lnsa -Wl,-rpath,$TREE/lib -o hello && ./hello */
#include <nsa/nsa.h>
#include <stdio.h>
#include <stdlib.h>

enum { T = 1024, H = 8, G = 2, D = 64 }; /* tokens, query heads, key/value heads, head size */
static float q[T * H * D], k[T * G * D], v[T * G * D], gates[T * H * 3], out[T * H * D];
static nsa_error error;
#define MUST(call)                                                                                                     \
  if ((call) != NSA_OK)                                                                                                \
  return fprintf(stderr, "%s\n%s\n%s\n", #call, error.message, error.hint), 1

int main(void) {
  for (int i = 0; i < T * H * D; ++i)
    q[i] = (float)rand() / (float)RAND_MAX;
  for (int i = 0; i < T * G * D; ++i)
    k[i] = (float)rand() / (float)RAND_MAX, v[i] = (float)rand() / (float)RAND_MAX;
  for (int i = 0; i < T * H * 3; ++i)
    gates[i] = 0.5f; /* of the compressed, the selected and the window branch */
  nsa_engine_options options = {.size = sizeof options, .device = "cpu"}; /* "cuda:0" takes device pointers */
  nsa_engine *engine;
  MUST(nsa_engine_create(&options, &engine, &error));
  nsa_spec spec = NSA_INIT(nsa_spec);
  nsa_spec_init(&spec); /* the defaults of blocks, window and scale */
  spec.op = NSA_OP_NSA, spec.dtype = NSA_FP32, spec.query_heads = H, spec.kv_heads = G, spec.qk_dim = spec.v_dim = D;
  nsa_maxima maxima = {.size = sizeof maxima, .max_batch = 1, .max_seqlen_q = T, .max_seqlen_k = T};
  nsa_plan *plan; /* finds its kernels in the cache or compiles them, and serves every call within the maxima */
  size_t bytes;
  MUST(nsa_plan_create_with(engine, &spec, &maxima, NULL, NULL, &plan, &error));
  MUST(nsa_plan_workspace_size(plan, &bytes, &error));
  void *workspace = aligned_alloc(256, (bytes + 255) / 256 * 256);
  nsa_binding bindings[] = {{NSA_Q, NSA_ROWS(q, NSA_FP32, 1, T, H, D)}, /* [batch, time, heads, dim], contiguous */
                            {NSA_K, NSA_ROWS(k, NSA_FP32, 1, T, G, D)},
                            {NSA_V, NSA_ROWS(v, NSA_FP32, 1, T, G, D)},
                            {NSA_GATES, NSA_ROWS(gates, NSA_FP32, 1, T, H, 3)},
                            {NSA_OUT, NSA_ROWS(out, NSA_FP32, 1, T, H, D)}};
  MUST(nsa_run(plan, bindings, sizeof bindings / sizeof *bindings, workspace, bytes, NULL, &error));
  printf("The first token attends itself alone: out %.6f is its value %.6f\n", out[0], v[0]);
  free(workspace), nsa_plan_destroy(plan), nsa_engine_destroy(engine);
}
