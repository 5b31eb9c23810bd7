// What the tuner does to a GPU that its host is using, against a driver that computes nothing.
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine/decode_trial.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/stored_kernel.h"

using namespace nsa;

namespace {

class CudaTrial : public testing::Test {
protected:
  void SetUp() override {
    Result<std::unique_ptr<Device>> opened = cuda::CudaDevice::open(0);
    ASSERT_TRUE(opened) << opened.status().toString();
    device = std::move(*opened);
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = spec.vDim = 16;
    spec.window = 16;
  }

  // A kernel that asks for its status word alone.
  Result<std::shared_ptr<const KernelCore>> kernelFor(const Spec &step) {
    const test::KernelText text{.params = "param view status int32 1\n", .grid = "batch ; 1 ; 1", .target = "sm_90a"};
    Result<Manifest> manifest = Manifest::parse(test::manifestOf(text, step));
    if (!manifest)
      return manifest.status();
    Result<std::shared_ptr<const LoadedKernel>> loaded =
        LoadedKernel::load(*device, "content", std::move(*manifest), test::codeOf({1}));
    if (!loaded)
      return loaded.status();
    auto core = std::make_shared<KernelCore>();
    core->kernel = std::move(*loaded);
    return std::shared_ptr<const KernelCore>(std::move(core));
  }
  Result<std::unique_ptr<Trial>> makeKernelTrial() { return KernelTrial::make(*device, spec, maxima, 1); }
  Result<std::unique_ptr<Trial>> makeDecodeTrial(Operator part) {
    spec.op = part;
    return DecodeTrial::make(*device, spec, maxima, 1,
                             [this](const Spec &step, const Maxima &) { return kernelFor(step); });
  }

  std::unique_ptr<Device> device;
  Spec spec;
  Maxima maxima = {2, 64, 32, 64};
};

// The legacy stream waits for the host's blocking ones, holds them up, and breaks their captures.
TEST_F(CudaTrial, NothingIsDoneOnTheLegacyStream) {
  ASSERT_NE(device->ownStream(), nullptr);
  const long launches = fake_gpu_launches(), uses = fake_gpu_legacy_uses();
  spec.op = Operator::kWindow;
  Result<std::unique_ptr<Trial>> trial = makeKernelTrial();
  ASSERT_TRUE(trial) << trial.status().toString();
  Result<std::shared_ptr<const KernelCore>> core = kernelFor(spec);
  ASSERT_TRUE(core) << core.status().toString();
  ASSERT_TRUE((*trial)->check(*(*core)->kernel));
  EXPECT_EQ(fake_gpu_launches() - launches, 1);
  EXPECT_EQ(fake_gpu_legacy_uses(), uses) << "one kernel";

  maxima = {2, 2, 1, 300};
  Result<std::unique_ptr<Trial>> decode = makeDecodeTrial(Operator::kMerge);
  ASSERT_TRUE(decode) << decode.status().toString();
  core = kernelFor(spec);
  ASSERT_TRUE(core) << core.status().toString();
  ASSERT_TRUE((*decode)->check(*(*core)->kernel));
  EXPECT_GT(fake_gpu_launches() - launches, 20);
  EXPECT_EQ(fake_gpu_legacy_uses(), uses) << "all of decode's";
}

} // namespace
