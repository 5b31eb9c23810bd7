/* A C host that loads the library by a path of its own and then goes to another folder: what stands beside the library
 * must still be found. `loaded LIBRARY FOLDER CACHE compiled|stored`: a plan is made in FOLDER; a stored one comes from
 * a pack, as nothing may be compiled. */
#include <nsa/nsa.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what, const nsa_error *error) {
  fprintf(stderr, "%s: %s (hint: %s)\n", what, error->message, error->hint);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: loaded LIBRARY FOLDER CACHE compiled|stored\n");
    return 2;
  }
  const int stored = strcmp(argv[4], "stored") == 0;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library || chdir(argv[2]) != 0) {
    fprintf(stderr, "%s\n", library ? argv[2] : dlerror());
    return 2;
  }
  nsa_status (*engine_create)(const nsa_engine_options *, nsa_engine **, nsa_error *);
  nsa_status (*plan_create)(nsa_engine *, const nsa_spec *, const nsa_maxima *, const nsa_plan_options *, void *,
                            nsa_plan **, nsa_error *);
  const char *(*describe)(const nsa_plan *);
  *(void **)&engine_create = dlsym(library, "nsa_engine_create");
  *(void **)&plan_create = dlsym(library, "nsa_plan_create_with");
  *(void **)&describe = dlsym(library, "nsa_plan_describe");

  nsa_error error;
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = argv[3];
  options.cache_packs = stored ? NULL : "none";
  options.miss_policy = stored ? NSA_MISS_FAIL : NSA_MISS_DEFAULT;
  nsa_engine *engine = NULL;
  if (engine_create(&options, &engine, &error) != NSA_OK)
    return fail("engine", &error);
  nsa_spec spec = NSA_INIT(nsa_spec);
  spec.op = NSA_OP_WINDOW;
  spec.dtype = NSA_FP32;
  spec.query_heads = spec.kv_heads = 1;
  spec.qk_dim = spec.v_dim = 16;
  spec.window = 13;
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  maxima.max_batch = 1;
  maxima.max_seqlen_q = maxima.max_seqlen_k = 64;
  nsa_plan *plan = NULL;
  if (plan_create(engine, &spec, &maxima, NULL, NULL, &plan, &error) != NSA_OK)
    return fail("plan", &error);
  const char *source = stored ? "\"source\": \"pack\"" : "\"source\": \"compiled\"";
  if (strstr(describe(plan), source) == NULL) {
    fprintf(stderr, "expected %s: %s\n", source, describe(plan));
    return 1;
  }
  return 0;
}
