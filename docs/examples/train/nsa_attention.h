// The attention of the model by NSA Runtime, through its C ABI: `rotate` and `nsa` forward, `nsa_bwd` and `rotate_bwd`
// backward. Queries and keys of the selected branch and of the window are rotated by their positions. The compressed
// branch, whose scores select blocks, compares queries and keys as they are.
// Ownership: owns its plans and buffers. Thread-safety: one thread at a time. Throws std::runtime_error when the
// library refuses something.
#pragma once

#include "attention.h"
#include "bindings.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace example {

class NsaAttention final : public Attention<float> {
public:
  // `mostSequences`: the largest batch. Without `selectedGradient` the backward pass takes the output of the selected
  // branch for a constant.
  NsaAttention(std::int64_t mostSequences, bool selectedGradient);

  void forward(std::int64_t layer, std::int64_t batch, const float *projected, float *out) override;
  void backward(std::int64_t layer, std::int64_t batch, const float *projected, const float *dOut,
                float *dProjected) override;

  // The blocks that the last forward pass of a layer selected, [batch, kSequence, kKvHeads, kSelCount].
  const std::vector<std::int32_t> &blockList(std::int64_t layer) const;

private:
  // Queries, and keys of the selected branch and of the window, are neighbours in a row: `rotate` takes them for the
  // heads of one tensor.
  static constexpr std::int64_t kRotatedHeads = kHeads + 2 * kKvHeads;

  struct DestroyEngine {
    void operator()(nsa_engine *handle) const { nsa_engine_destroy(handle); }
  };
  struct DestroyPlan {
    void operator()(nsa_plan *handle) const { nsa_plan_destroy(handle); }
  };
  using Plan = std::unique_ptr<nsa_plan, DestroyPlan>;

  // What the forward pass of a layer leaves for its backward pass.
  struct Saved {
    std::vector<float> rotated;                         // [batch, kSequence, column::kKeyCmp]: what was rotated
    std::array<std::vector<float>, kBranches> out, lse; // [batch, kSequence, kQueryRow] and [.., kHeads]
    std::vector<float> kComp, vComp;                    // [batch, kCompressed, kKeyRow]
    std::vector<std::int32_t> blockList;
  };

  // The model's geometry. `kvHeads`: for `rotate` the heads of its only tensor.
  static nsa_spec specOf(nsa_op op, std::int64_t kvHeads);
  Plan plan(const nsa_spec &spec) const;
  void planBackward();
  void run(const Plan &plan, const Bindings &bindings);
  // What both passes name: the inputs of `nsa`, and what its forward pass writes besides `out`.
  static void addInputs(Bindings &to, const float *projected, const Saved &own, bool selected);
  static void addSaved(Bindings &to, const Saved &own, bool selected);

  const std::int64_t mostSequences;
  const bool selectedGradient;
  std::unique_ptr<nsa_engine, DestroyEngine> engine;
  Plan rotatePlan, forwardPlan, backwardPlan, rotateBackPlan;
  std::array<Saved, kLayers> saved;
  std::vector<float> dRotated, dQueryCmp; // [batch, kSequence, column::kKeyCmp] and [.., kQueryRow]
  std::vector<std::byte> workspace;
};

} // namespace example
