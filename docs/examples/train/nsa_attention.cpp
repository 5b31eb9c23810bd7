#include "nsa_attention.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

namespace example {
namespace {

constexpr std::int64_t kWorkspaceAlignment = 256; // bytes, as nsa_run asks
constexpr std::int64_t kRotatedHeads = kHeads + 2 * kKvHeads;

void check(nsa_status status, const nsa_error &error) {
  if (status != NSA_OK)
    throw std::runtime_error(std::string(error.message) + (error.hint[0] != 0 ? std::string(" (hint: ") + error.hint + ")" : ""));
}

nsa_spec specOf(nsa_op op) {
  nsa_spec spec;
  nsa_spec_init(&spec);
  spec.op = op;
  spec.dtype = NSA_FP32;
  spec.query_heads = kHeads;
  spec.kv_heads = op == NSA_OP_NSA ? kKvHeads : kRotatedHeads;
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

// The tensors of one call. A tensor is [batch, time, heads, columns]; its rows lie `row` elements apart.
class Bindings {
public:
  explicit Bindings(std::int64_t batch) : batch(batch) {}

  // Inputs are only read, but nsa_tensor has one pointer for inputs and outputs.
  void add(nsa_name name, const float *data, std::int64_t time, std::int64_t row, std::int64_t heads,
           std::int64_t columns) {
    add(name, const_cast<float *>(data), NSA_FP32, {batch, time, heads, columns}, {time * row, row, columns, 1});
  }
  // A log-sum-exp: one number for each head.
  void addNumbers(nsa_name name, const float *data) {
    add(name, const_cast<float *>(data), NSA_FP32, {batch, kSequence, kHeads}, {kSequence * kHeads, kHeads, 1});
  }
  void addList(nsa_name name, const std::int32_t *data) {
    add(name, const_cast<std::int32_t *>(data), NSA_INT32, {batch, kSequence, kKvHeads, kSelCount},
        {kSequence * kKvHeads * kSelCount, kKvHeads * kSelCount, kSelCount, 1});
  }
  const std::vector<nsa_binding> &get() const { return bindings; }

private:
  void add(nsa_name name, void *data, nsa_dtype dtype, const std::vector<std::int64_t> &shape,
           const std::vector<std::int64_t> &strides) {
    nsa_tensor &tensor = tensors.emplace_back(NSA_INIT(nsa_tensor));
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.rank = static_cast<std::int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.shape);
    std::copy(strides.begin(), strides.end(), tensor.strides);
    bindings.push_back({name, &tensor});
  }

  std::int64_t batch;
  std::deque<nsa_tensor> tensors; // whose addresses stay when more come
  std::vector<nsa_binding> bindings;
};

// What `nsa` reads, and its gradient reads again.
void addInputs(Bindings &to, const float *projected, const float *rotated) {
  to.add(NSA_Q, rotated + column::q, kSequence, column::kCmp, kHeads, kHeadDim);
  to.add(NSA_K_SEL, rotated + column::kSel, kSequence, column::kCmp, kKvHeads, kHeadDim);
  to.add(NSA_K_WIN, rotated + column::kWin, kSequence, column::kCmp, kKvHeads, kHeadDim);
  to.add(NSA_Q_CMP, projected + column::q, kSequence, column::end, kHeads, kHeadDim);
  to.add(NSA_K_CMP, projected + column::kCmp, kSequence, column::end, kKvHeads, kHeadDim);
  to.add(NSA_V_CMP, projected + column::vCmp, kSequence, column::end, kKvHeads, kHeadDim);
  to.add(NSA_V_SEL, projected + column::vSel, kSequence, column::end, kKvHeads, kHeadDim);
  to.add(NSA_V_WIN, projected + column::vWin, kSequence, column::end, kKvHeads, kHeadDim);
  to.add(NSA_GATES, projected + column::gates, kSequence, column::end, kHeads, kBranches);
}

constexpr std::array<nsa_name, kBranches> kOutNames = {NSA_O_CMP, NSA_O_SEL, NSA_O_WIN};
constexpr std::array<nsa_name, kBranches> kLseNames = {NSA_LSE_CMP, NSA_LSE_SEL, NSA_LSE_WIN};

} // namespace

NsaAttention::NsaAttention(std::int64_t mostSequences, bool selectedGradient)
    : mostSequences(mostSequences), selectedGradient(selectedGradient) {
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  nsa_engine *opened = nullptr;
  nsa_error error{};
  check(nsa_engine_create(&options, &opened, &error), error);
  engine.reset(opened);
  rotatePlan = plan(specOf(NSA_OP_ROTATE));
  forwardPlan = plan(specOf(NSA_OP_NSA));

  const auto rows = static_cast<std::size_t>(mostSequences * kSequence);
  for (Saved &layer : saved) {
    layer.rotated.resize(rows * column::kCmp);
    for (std::vector<float> &out : layer.out)
      out.resize(rows * kQueryRow);
    for (std::vector<float> &lse : layer.lse)
      lse.resize(rows * kHeads);
    layer.kComp.resize(static_cast<std::size_t>(mostSequences * kCompressed * kKeyRow));
    layer.vComp.resize(layer.kComp.size());
    layer.blockList.resize(rows * kKvHeads * kSelCount);
  }
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

void NsaAttention::run(const Plan &plan, const std::vector<nsa_binding> &bindings) {
  nsa_error error{};
  std::size_t bytes = 0;
  check(nsa_plan_workspace_size(plan.get(), &bytes, &error), error);
  if (workspace.size() * sizeof(float) < bytes + kWorkspaceAlignment)
    workspace.resize((bytes + kWorkspaceAlignment) / sizeof(float) + 1);
  void *aligned = workspace.data();
  std::size_t room = workspace.size() * sizeof(float);
  std::align(kWorkspaceAlignment, bytes, aligned, room);
  check(nsa_run(plan.get(), bindings.data(), bindings.size(), aligned, bytes, nullptr, &error), error);
}

void NsaAttention::forward(std::int64_t layer, std::int64_t batch, const float *projected, float *out) {
  Saved &own = saved[static_cast<std::size_t>(layer)];
  Bindings rotation(batch); // q, kSel and kWin are neighbours: to `rotate` they are heads of one tensor
  rotation.add(NSA_X, projected + column::q, kSequence, column::end, kRotatedHeads, kHeadDim);
  rotation.add(NSA_OUT, own.rotated.data(), kSequence, column::kCmp, kRotatedHeads, kHeadDim);
  run(rotatePlan, rotation.get());

  Bindings call(batch);
  addInputs(call, projected, own.rotated.data());
  call.add(NSA_OUT, out, kSequence, kQueryRow, kHeads, kHeadDim);
  for (std::size_t branch = 0; branch < kBranches; ++branch) {
    call.add(kOutNames[branch], own.out[branch].data(), kSequence, kQueryRow, kHeads, kHeadDim);
    call.addNumbers(kLseNames[branch], own.lse[branch].data());
  }
  call.add(NSA_K_COMP, own.kComp.data(), kCompressed, kKeyRow, kKvHeads, kHeadDim);
  call.add(NSA_V_COMP, own.vComp.data(), kCompressed, kKeyRow, kKvHeads, kHeadDim);
  call.addList(NSA_BLOCK_LIST, own.blockList.data());
  run(forwardPlan, call.get());
}

const std::vector<std::int32_t> &NsaAttention::blockList(std::int64_t layer) const {
  return saved[static_cast<std::size_t>(layer)].blockList;
}

} // namespace example
