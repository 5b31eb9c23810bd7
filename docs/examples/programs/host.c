/* y = x * scale + b in host memory, by a program in the tile language, in C11. With TREE, an installed tree or an
 * unpacked bundle: cc host.c -I$TREE/include -L$TREE/lib -lnsa -Wl,-rpath,$TREE/lib -o host && ./host scaled_sum.tile
 */
#include <nsa/nsa.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100, COLUMNS = 1000 };
static float x[ROWS * COLUMNS], b[COLUMNS], y[ROWS * COLUMNS];
static nsa_error error;
#define MUST(call)                                                                                                     \
  if ((call) != NSA_OK)                                                                                                \
  return fprintf(stderr, "%s\n%s\n%s\n", #call, error.message, error.hint), 1

int main(int argc, char **argv) {
  for (int i = 0; i < ROWS * COLUMNS; ++i)
    x[i] = (float)i;
  for (int i = 0; i < COLUMNS; ++i)
    b[i] = 1;
  nsa_engine_options options = {.size = sizeof options, .device = "cpu"}; /* "cuda:0" takes device pointers */
  nsa_engine *engine;
  MUST(nsa_engine_create(&options, &engine, &error));

  nsa_program_source source = {.size = sizeof source, .path = argc > 1 ? argv[1] : "scaled_sum.tile"};
  nsa_program_value values[] = {{"dtype", "fp32"}, {"columns", "1000"}, {"rows", "100"}};
  nsa_program *program;
  MUST(nsa_program_tune(engine, &source, values, 3, 1.0, NULL, &error)); /* takes a second, and may be left out */
  MUST(nsa_program_create(engine, &source, values, 3, NULL, &program, &error));
  size_t bytes;
  MUST(nsa_program_workspace_size(program, &bytes, &error));
  void *workspace = aligned_alloc(256, (bytes + 255) / 256 * 256);

  nsa_program_tensor tensors[] = {{"x", NSA_ROWS(x, NSA_FP32, ROWS, COLUMNS)},
                                  {"b", NSA_ROWS(b, NSA_FP32, 1, COLUMNS)},
                                  {"y", NSA_ROWS(y, NSA_FP32, ROWS, COLUMNS)}};
  nsa_program_scalar scalars[] = {{"scale", 0.5}}; /* the extents of x say how many rows there are */
  MUST(nsa_program_run(program, tensors, 3, scalars, 1, workspace, bytes, NULL, &error));
  printf("The last element is %.1f * 0.5 + 1 = %.1f\n", x[ROWS * COLUMNS - 1], y[ROWS * COLUMNS - 1]);
  free(workspace), nsa_program_destroy(program), nsa_engine_destroy(engine);
}
