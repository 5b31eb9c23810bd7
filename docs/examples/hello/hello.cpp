// Native sparse attention of one sequence in host memory. With TREE, an installed tree or an unpacked bundle:
// c++ -std=c++17 hello.cpp -I$TREE/include -L$TREE/lib -lnsa -Wl,-rpath,$TREE/lib -o hello && ./hello
#include <nsa/nsa.hpp>

#include <cstdio>
#include <random>
#include <vector>

int main() try {
  constexpr std::int64_t tokens = 1024, heads = 8, kvHeads = 2, dim = 64;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> q(tokens * heads * dim), k(tokens * kvHeads * dim), v(tokens * kvHeads * dim), out(q.size());
  for (std::vector<float> *values : {&q, &k, &v})
    for (float &value : *values)
      value = normal(generator);
  std::vector<float> gates(tokens * heads * 3, 0.5f); // of the compressed, the selected and the window branch

  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu"; // "cuda:0" takes device pointers, and a CUDA stream in `plan` and `run`
  nsa::Engine engine(options);
  nsa::Spec spec; // the defaults of blocks, window and scale
  spec.op = NSA_OP_NSA;
  spec.dtype = NSA_FP32;
  spec.query_heads = heads;
  spec.kv_heads = kvHeads;
  spec.qk_dim = spec.v_dim = dim;
  // Finds its kernels in the cache or compiles them, and serves every call within these maxima.
  nsa::Plan plan = engine.plan(spec, {/*batch*/ 1, /*seqlenQ*/ tokens, /*seqlenK*/ tokens});
  nsa::HostWorkspace workspace(plan.workspaceSize());
  plan.run({{NSA_Q, nsa::Tensor(q, {1, tokens, heads, dim})},
            {NSA_K, nsa::Tensor(k, {1, tokens, kvHeads, dim})},
            {NSA_V, nsa::Tensor(v, {1, tokens, kvHeads, dim})},
            {NSA_GATES, nsa::Tensor(gates, {1, tokens, heads, 3})},
            {NSA_OUT, nsa::Tensor(out, {1, tokens, heads, dim})}},
           workspace.data(), workspace.size());
  std::printf("The first token attends itself alone: out %.6f is its value %.6f\n", out[0], v[0]);
} catch (const nsa::Error &error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
