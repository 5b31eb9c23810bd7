#include "nsa_attention.h"

#include <memory>
#include <stdexcept>

namespace example {
namespace {

constexpr std::size_t kWorkspaceAlignment = 256; // bytes, as nsa_run asks

void check(nsa_status status, const nsa_error &error) {
  if (status != NSA_OK)
    throw std::runtime_error(std::string(error.message) +
                             (error.hint[0] == 0 ? "" : " (hint: " + std::string(error.hint) + ")"));
}

} // namespace

NsaAttention::NsaAttention(std::int64_t mostSequences, bool selectedGradient)
    : mostSequences(mostSequences), selectedGradient(selectedGradient) {
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  nsa_engine *opened = nullptr;
  nsa_error error{};
  check(nsa_engine_create(&options, &opened, &error), error);
  engine.reset(opened);
  rotatePlan = plan(specOf(NSA_OP_ROTATE, kRotatedHeads));
  forwardPlan = plan(specOf(NSA_OP_NSA, kKvHeads));
  planBackward();

  const auto rows = static_cast<std::size_t>(mostSequences * kSequence);
  for (Saved &layer : saved) {
    layer.rotated.resize(rows * column::kKeyCmp);
    for (std::vector<float> &out : layer.out)
      out.resize(rows * kQueryRow);
    for (std::vector<float> &lse : layer.lse)
      lse.resize(rows * kHeads);
    layer.kComp.resize(static_cast<std::size_t>(mostSequences * kCompressed * kKeyRow));
    layer.vComp.resize(layer.kComp.size());
    layer.blockList.resize(rows * kKvHeads * kSelCount);
  }
  dRotated.resize(rows * column::kKeyCmp);
  dQueryCmp.resize(rows * kQueryRow);
}

nsa_spec NsaAttention::specOf(nsa_op op, std::int64_t kvHeads) {
  nsa_spec spec;
  nsa_spec_init(&spec);
  spec.op = op;
  spec.dtype = NSA_FP32;
  spec.query_heads = kHeads;
  spec.kv_heads = static_cast<std::int32_t>(kvHeads);
  spec.qk_dim = spec.v_dim = kHeadDim;
  spec.window = kWindow;
  spec.cmp_block = kCmpBlock;
  spec.cmp_stride = kCmpStride;
  spec.sel_block = kSelBlock;
  spec.sel_count = kSelCount;
  spec.init_blocks = kInitBlocks;
  spec.local_blocks = kLocalBlocks;
  spec.gate = NSA_GATE_SIGMOID;
  return spec;
}

NsaAttention::Plan NsaAttention::plan(const nsa_spec &spec) const {
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  maxima.max_batch = mostSequences;
  maxima.max_seqlen_q = maxima.max_seqlen_k = kSequence;
  nsa_plan *made = nullptr;
  nsa_error error{};
  check(nsa_plan_create_with(engine.get(), &spec, &maxima, nullptr, nullptr, &made, &error), error);
  return Plan(made);
}

void NsaAttention::run(const Plan &plan, const Bindings &bindings) {
  nsa_error error{};
  std::size_t bytes = 0;
  check(nsa_plan_workspace_size(plan.get(), &bytes, &error), error);
  if (workspace.size() < bytes + kWorkspaceAlignment)
    workspace.resize(bytes + kWorkspaceAlignment);
  void *aligned = workspace.data();
  std::size_t room = workspace.size();
  std::align(kWorkspaceAlignment, bytes, aligned, room);
  check(nsa_run(plan.get(), bindings.data(), bindings.size(), aligned, bytes, nullptr, &error), error);
}

void NsaAttention::forward(std::int64_t layer, std::int64_t batch, const float *projected, float *out) {
  Saved &own = saved[static_cast<std::size_t>(layer)];
  Bindings rotation(batch);
  rotation.add(NSA_X, projected + column::kQuery, kSequence, column::kEnd, kRotatedHeads, kHeadDim);
  rotation.add(NSA_OUT, own.rotated.data(), kSequence, column::kKeyCmp, kRotatedHeads, kHeadDim);
  run(rotatePlan, rotation);

  Bindings call(batch);
  addInputs(call, projected, own, true);
  addSaved(call, own, true);
  call.add(NSA_OUT, out, kSequence, kQueryRow, kHeads, kHeadDim);
  run(forwardPlan, call);
}

void NsaAttention::addInputs(Bindings &to, const float *projected, const Saved &own, bool selected) {
  const float *rotated = own.rotated.data();
  to.add(NSA_Q, rotated + column::kQuery, kSequence, column::kKeyCmp, kHeads, kHeadDim);
  to.add(NSA_Q_CMP, projected + column::kQuery, kSequence, column::kEnd, kHeads, kHeadDim);
  to.add(NSA_K_CMP, projected + column::kKeyCmp, kSequence, column::kEnd, kKvHeads, kHeadDim);
  to.add(NSA_V_CMP, projected + column::kValueCmp, kSequence, column::kEnd, kKvHeads, kHeadDim);
  if (selected) {
    to.add(NSA_K_SEL, rotated + column::kKeySel, kSequence, column::kKeyCmp, kKvHeads, kHeadDim);
    to.add(NSA_V_SEL, projected + column::kValueSel, kSequence, column::kEnd, kKvHeads, kHeadDim);
  }
  to.add(NSA_K_WIN, rotated + column::kKeyWin, kSequence, column::kKeyCmp, kKvHeads, kHeadDim);
  to.add(NSA_V_WIN, projected + column::kValueWin, kSequence, column::kEnd, kKvHeads, kHeadDim);
  to.add(NSA_GATES, projected + column::kGates, kSequence, column::kEnd, kHeads, kBranches);
}

void NsaAttention::addSaved(Bindings &to, const Saved &own, bool selected) {
  constexpr std::array<nsa_name, kBranches> kOutNames = {NSA_O_CMP, NSA_O_SEL, NSA_O_WIN};
  constexpr std::array<nsa_name, kBranches> kLseNames = {NSA_LSE_CMP, NSA_LSE_SEL, NSA_LSE_WIN};
  for (std::size_t branch = 0; branch < kBranches; ++branch)
    if (selected || kOutNames[branch] != NSA_O_SEL) {
      to.add(kOutNames[branch], own.out[branch].data(), kSequence, kQueryRow, kHeads, kHeadDim);
      to.addNumbers(kLseNames[branch], own.lse[branch].data());
    }
  to.add(NSA_K_COMP, own.kComp.data(), kCompressed, kKeyRow, kKvHeads, kHeadDim);
  to.add(NSA_V_COMP, own.vComp.data(), kCompressed, kKeyRow, kKvHeads, kHeadDim);
  if (selected)
    to.addList(NSA_BLOCK_LIST, own.blockList.data());
}

const std::vector<std::int32_t> &NsaAttention::blockList(std::int64_t layer) const {
  return saved[static_cast<std::size_t>(layer)].blockList;
}

} // namespace example
