// The backward half of NsaAttention.
#include "nsa_attention.h"

#include <algorithm>

namespace example {

void NsaAttention::planBackward() {
  nsa_spec spec = specOf(NSA_OP_NSA_BWD, kKvHeads);
  if (!selectedGradient)
    spec.branches = NSA_BRANCH_CMP | NSA_BRANCH_WIN;
  backwardPlan = plan(spec);
  rotateBackPlan = plan(specOf(NSA_OP_ROTATE_BWD, kRotatedHeads));
}

void NsaAttention::backward(std::int64_t layer, std::int64_t batch, const float *projected, const float *dOut,
                            float *dProjected) {
  const Saved &own = saved[static_cast<std::size_t>(layer)];
  // The columns behind the gates are not read, so their gradient is 0.
  std::fill(dProjected, dProjected + batch * kSequence * column::kEnd, 0.0f);

  Bindings call(batch);
  addInputs(call, projected, own, selectedGradient);
  addSaved(call, own, selectedGradient);
  call.add(NSA_D_OUT, dOut, kSequence, kQueryRow, kHeads, kHeadDim);
  call.add(NSA_D_Q, dRotated.data() + column::kQuery, kSequence, column::kKeyCmp, kHeads, kHeadDim);
  call.add(NSA_D_Q_CMP, dQueryCmp.data(), kSequence, kQueryRow, kHeads, kHeadDim);
  call.add(NSA_D_K_WIN, dRotated.data() + column::kKeyWin, kSequence, column::kKeyCmp, kKvHeads, kHeadDim);
  call.add(NSA_D_K_CMP, dProjected + column::kKeyCmp, kSequence, column::kEnd, kKvHeads, kHeadDim);
  call.add(NSA_D_V_WIN, dProjected + column::kValueWin, kSequence, column::kEnd, kKvHeads, kHeadDim);
  call.add(NSA_D_V_CMP, dProjected + column::kValueCmp, kSequence, column::kEnd, kKvHeads, kHeadDim);
  // Where the backward plan has no selected branch, the call binds nothing else of it, and these gradients become 0.
  call.add(NSA_D_K_SEL, dRotated.data() + column::kKeySel, kSequence, column::kKeyCmp, kKvHeads, kHeadDim);
  call.add(NSA_D_V_SEL, dProjected + column::kValueSel, kSequence, column::kEnd, kKvHeads, kHeadDim);
  call.add(NSA_D_GATES, dProjected + column::kGates, kSequence, column::kEnd, kHeads, kBranches);
  run(backwardPlan, call);

  Bindings rotation(batch);
  rotation.add(NSA_X, dRotated.data(), kSequence, column::kKeyCmp, kRotatedHeads, kHeadDim);
  rotation.add(NSA_OUT, dProjected + column::kQuery, kSequence, column::kEnd, kRotatedHeads, kHeadDim);
  run(rotateBackPlan, rotation);
  // The queries were read twice: rotated, and as they are by the compressed branch.
  for (std::int64_t token = 0; token < batch * kSequence; ++token)
    for (std::int64_t i = 0; i < kQueryRow; ++i)
      dProjected[token * column::kEnd + column::kQuery + i] +=
          dQueryCmp[static_cast<std::size_t>(token * kQueryRow + i)];
}

} // namespace example
