// A step of training: native sparse attention of one sequence in host memory, and its gradients. With TREE, an
// installed tree or an unpacked bundle:
// c++ -std=c++17 gradient.cpp -I$TREE/include -L$TREE/lib -lnsa -Wl,-rpath,$TREE/lib -o gradient && ./gradient
#include <nsa/nsa.hpp>

#include <algorithm>
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
  // The loss is the sum of all elements of `out`, so its gradient is 1.
  std::vector<float> dOut(out.size(), 1.0f), dQ(q.size()), dK(k.size()), dV(v.size()), dGates(gates.size());

  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu"; // "cuda:0" takes device pointers, and a CUDA stream in `plan` and `run`
  nsa::Engine engine(options);
  nsa::Spec spec; // the defaults of blocks, window and scale
  spec.op = NSA_OP_NSA;
  spec.dtype = NSA_FP32;
  spec.query_heads = heads;
  spec.kv_heads = kvHeads;
  spec.qk_dim = spec.v_dim = dim;
  std::vector<float> lse[3] = {std::vector<float>(tokens * heads), std::vector<float>(tokens * heads),
                               std::vector<float>(tokens * heads)};
  std::vector<std::int32_t> lists(static_cast<std::size_t>(tokens * kvHeads * spec.sel_count));

  const nsa::Maxima maxima = {/*batch*/ 1, /*seqlenQ*/ tokens, /*seqlenK*/ tokens};
  nsa::Plan forward = engine.plan(spec, maxima);
  spec.op = NSA_OP_NSA_BWD; // all other fields must stay as they are
  nsa::Plan backward = engine.plan(spec, maxima);
  nsa::HostWorkspace workspace(std::max(forward.workspaceSize(), backward.workspaceSize()));

  const nsa::Extents ofQueries = {1, tokens, heads, dim}, ofKeys = {1, tokens, kvHeads, dim};
  const nsa::Tensor qTensor(q, ofQueries), kTensor(k, ofKeys), vTensor(v, ofKeys),
      gateTensor(gates, {1, tokens, heads, 3});
  // What the forward pass saves for the backward pass.
  const nsa::Tensor cmpLse(lse[0], {1, tokens, heads}), selLse(lse[1], {1, tokens, heads}),
      winLse(lse[2], {1, tokens, heads});
  const nsa::Tensor blockList(lists, {1, tokens, kvHeads, spec.sel_count});
  forward.run({{NSA_Q, qTensor},
               {NSA_K, kTensor},
               {NSA_V, vTensor},
               {NSA_GATES, gateTensor},
               {NSA_OUT, nsa::Tensor(out, ofQueries)},
               {NSA_LSE_CMP, cmpLse},
               {NSA_LSE_SEL, selLse},
               {NSA_LSE_WIN, winLse},
               {NSA_BLOCK_LIST, blockList}},
              workspace.data(), workspace.size());
  // Here the host computes d_out, the gradient of its loss.
  backward.run({{NSA_Q, qTensor},
                {NSA_K, kTensor},
                {NSA_V, vTensor},
                {NSA_GATES, gateTensor},
                {NSA_D_OUT, nsa::Tensor(dOut, ofQueries)},
                {NSA_LSE_CMP, cmpLse},
                {NSA_LSE_SEL, selLse},
                {NSA_LSE_WIN, winLse},
                {NSA_BLOCK_LIST, blockList},
                {NSA_D_Q, nsa::Tensor(dQ, ofQueries)},
                {NSA_D_K, nsa::Tensor(dK, ofKeys)},
                {NSA_D_V, nsa::Tensor(dV, ofKeys)},
                {NSA_D_GATES, nsa::Tensor(dGates, {1, tokens, heads, 3})}},
               workspace.data(), workspace.size());

  // The weights of a softmax have the sum 1, so the gates are the sum of what a query adds to the gradients of the
  // values. The first 31 queries see no compressed block.
  double sum = 0;
  for (std::size_t row = 0; row < dV.size(); row += kvHeads * dim)
    sum += dV[row];
  const double expected = (heads / kvHeads) * (tokens * 1.5 - (spec.cmp_block - 1) * 0.5);
  std::printf("The gradients of the values have the sum %.1f, the gates that reach them %.1f\n", sum, expected);
} catch (const nsa::Error &error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
