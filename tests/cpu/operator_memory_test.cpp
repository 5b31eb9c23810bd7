// Memory of whole operators on the CPU device: what lies behind a tensor's last byte is never touched, whatever lists
// hold, and elements more than 2^31 apart are addressed.
#include "runtime/base/signature.h"
#include "tests/cpu/host_memory.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace nsa::test {
namespace {

using T = TensorName;

class CpuOperatorMemory : public OperatorTestPerType {
protected:
  // All tensors between pages that must not be touched. Outputs come back.
  NamedTensors runGuarded(const OperatorInputs &inputs, Status *status = nullptr) {
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    const std::set<T> wanted = tools::allOutputs(inputs.spec.op);
    Result<tools::DeviceOperator> job = tools::DeviceOperator::upload(session->accelerator(), inputs, wanted);
    EXPECT_TRUE(job.isOk() && job->allocateWorkspace(made.get()).isOk());
    std::map<T, std::unique_ptr<GuardedMemory>> guarded;
    NamedTensors outputs;
    auto guard = [&](T name, const tools::HostTensor &content) {
      const nsa_tensor &tensor = job->tensor(name);
      guarded[name] = std::make_unique<GuardedMemory>(content.bytes);
      job->rebind(name, guarded[name]->data(), {tensor.strides, tensor.strides + tensor.rank});
    };
    for (const auto &[name, tensor] : inputs.tensors)
      guard(name, tensor);
    for (const T name : wanted)
      if (takes(inputs.spec, name)) {
        outputs[name] = tools::HostTensor::make(tools::dtypeOf(inputs.spec, name),
                                                tools::shapeOf(inputs.spec, name, inputs.extents));
        guard(name, outputs[name]);
      }
    const Status ran = job->enqueue(made.get());
    if (status)
      *status = ran;
    else
      EXPECT_TRUE(ran.isOk()) << ran.toString();
    for (auto &[name, tensor] : outputs)
      std::memcpy(tensor.bytes.data(), guarded[name]->data(), tensor.bytes.size());
    return outputs;
  }
};
NSA_INSTANTIATE_PER_TYPE(CpuOperatorMemory);

TEST_P(CpuOperatorMemory, NothingBehindAnyTensorIsTouched) {
  std::mt19937_64 random(freshSeed());
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const auto &[qkDim, vDim] : {std::pair{5, 33}, std::pair{64, 64}, std::pair{72, 9}}) {
      Spec spec = smallSpec(Operator::kNsa, dtype());
      spec.layout = layout;
      spec.qkDim = qkDim;
      spec.vDim = vDim;
      const OperatorInputs inputs = tools::drawInputs(spec, {{61, 61}, {109, 109}}, random());
      checkOutputs(inputs, runGuarded(inputs));
    }
}

// Numbers of blocks far outside, in every list of the call.
TEST_P(CpuOperatorMemory, MalformedListsReachNoOtherMemory) {
  for (const int32_t block : {8, 1000, std::numeric_limits<int32_t>::max(), -2, std::numeric_limits<int32_t>::min()}) {
    SCOPED_TRACE(block);
    // In the gradient a group of 2 has slots, and a group of 8 walks query by query.
    for (const auto &[op, group, zeros] : {std::tuple{Operator::kSel, 4, std::set{T::kReads, T::kOut}},
                                           {Operator::kSelBwd, 2, {T::kDQ, T::kDKSel, T::kDVSel}},
                                           {Operator::kSelBwd, 8, {T::kDQ, T::kDKSel, T::kDVSel}}}) {
      SCOPED_TRACE(std::string(operatorName(op)) + ", group of " + std::to_string(group));
      Spec spec = smallSpec(op, dtype());
      spec.queryHeads = group * spec.kvHeads;
      OperatorInputs inputs = tools::drawInputs(spec, {{60}, {125}}, freshSeed());
      tools::HostTensor &lists = inputs.tensors.at(T::kBlockList);
      auto *blocks = reinterpret_cast<int32_t *>(lists.bytes.data());
      std::fill_n(blocks, lists.elements(), block);
      Status status;
      const NamedTensors outputs = runGuarded(inputs, &status);
      EXPECT_EQ(status.code(), ErrorCode::kDeviceError) << status.toString();
      EXPECT_EQ(status.error().value, std::to_string(block));
      for (const T name : zeros)
        for (int64_t i = 0; i < outputs.at(name).elements(); ++i)
          ASSERT_TRUE(reference::isZero(elementOf(outputs.at(name), i))) << tensorName(name);
    }
  }
}

// K and V of all branches with 2^25 elements from one key to the next: the last ones begin behind element 2^31.
TEST_P(CpuOperatorMemory, KeysBeyondTwoToThe31ElementsAreAddressed) {
  constexpr int64_t kTimeStride = int64_t{1} << 25, kTokens = 100;
  const Spec spec = smallSpec(Operator::kNsa, dtype());
  const OperatorInputs inputs = tools::drawInputs(spec, {{kTokens}, {kTokens}}, freshSeed());
  const tools::PlanHandle made = plan(spec, inputs.maxima);
  Result<tools::DeviceOperator> job =
      tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(spec.op));
  ASSERT_TRUE(job.isOk() && job->allocateWorkspace(made.get()).isOk());
  std::vector<std::unique_ptr<SparseMemory>> far;
  for (const T name : {T::kKCmp, T::kVCmp, T::kKSel, T::kVSel, T::kKWin, T::kVWin}) {
    tools::HostTensor near = inputs[name];
    const int64_t element = dtypeBytes(spec.dtype);
    far.push_back(std::make_unique<SparseMemory>(kTokens * kTimeStride * element));
    ASSERT_TRUE(far.back()->data()) << "no address space";
    for (int64_t time = 0; time < kTokens; ++time) {
      const std::span<const std::byte> row = timeOf(spec, near, 0, time);
      std::memcpy(far.back()->data() + time * kTimeStride * element, row.data(), row.size());
    }
    job->rebind(name, far.back()->data(), {kTokens * kTimeStride, kTimeStride, near.shape[3], 1});
  }
  const Status status = job->enqueue(made.get());
  ASSERT_TRUE(status.isOk()) << status.toString();
  Result<NamedTensors> outputs = job->download();
  ASSERT_TRUE(outputs.isOk());
  checkOutputs(inputs, *outputs);
}

} // namespace
} // namespace nsa::test
