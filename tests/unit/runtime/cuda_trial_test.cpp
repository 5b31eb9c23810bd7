// What the tuner does to a GPU that its host is using, against a driver that computes nothing.
#include "runtime/base/key_splits.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine/tune/decode_trial.h"
#include "runtime/engine/tune/kernel_trial.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/stored_kernel.h"

using namespace nsa;

namespace {

class CudaTrial : public testing::Test {
protected:
  ~CudaTrial() override { fake_gpu_have_memory(1ul << 30, 1ul << 30); }
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
  Result<std::shared_ptr<const LoadedKernel>> kernelFor(const Spec &step) {
    const test::KernelText text{.params = "param view status int32 1\n", .grid = "batch ; 1 ; 1", .target = "sm_90a"};
    Result<Manifest> manifest = Manifest::parse(test::manifestOf(text, step));
    if (!manifest)
      return manifest.status();
    return LoadedKernel::load(*device, "content", std::make_shared<const Manifest>(std::move(*manifest)),
                              test::codeOf({1}));
  }
  Result<std::unique_ptr<Trial>> makeKernelTrial(double mostBytes = 1e9) {
    return KernelTrial::make(*device, spec, maxima, 1, mostBytes);
  }
  Result<std::unique_ptr<Trial>> makeDecodeTrial(Operator part, double mostBytes = 1e9) {
    spec.op = part;
    return DecodeTrial::make(*device, spec, maxima, 1, mostBytes,
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
  Result<std::shared_ptr<const LoadedKernel>> kernel = kernelFor(spec);
  ASSERT_TRUE(kernel) << kernel.status().toString();
  ASSERT_TRUE((*trial)->check(**kernel));
  EXPECT_EQ(fake_gpu_launches() - launches, 1);
  EXPECT_EQ(fake_gpu_legacy_uses(), uses) << "one kernel";

  maxima = {2, 2, 1, 300};
  Result<std::unique_ptr<Trial>> decode = makeDecodeTrial(Operator::kMerge);
  ASSERT_TRUE(decode) << decode.status().toString();
  kernel = kernelFor(spec);
  ASSERT_TRUE(kernel) << kernel.status().toString();
  ASSERT_TRUE((*decode)->check(**kernel));
  EXPECT_GT(fake_gpu_launches() - launches, 20);
  EXPECT_EQ(fake_gpu_legacy_uses(), uses) << "all of decode's";
}

// The timed call of a kernel of keys has as many programs for each tile as a plan has. The checked call has one: its
// results are compared, and parts are not yet results.
TEST_F(CudaTrial, SeveralProgramsShareTheQueriesOfFewKeys) {
  spec.op = Operator::kAttentionDkv;
  spec.cmpBlock = spec.cmpStride = 1;
  const test::KernelText text{.params = "param view dk_parts fp32 3\nparam gradient d_k bf16 3\nparam i32 splits\n",
                              .grid = "splits ; 1 ; 1",
                              .target = "sm_90a"};
  Result<Manifest> manifest = Manifest::parse(test::manifestOf(text, spec));
  ASSERT_TRUE(manifest) << manifest.status().toString();
  const Result<std::shared_ptr<const LoadedKernel>> kernel =
      LoadedKernel::load(*device, "content", std::make_shared<const Manifest>(std::move(*manifest)), test::codeOf({1}));
  ASSERT_TRUE(kernel) << kernel.status().toString();
  constexpr int kWhole = 5; // behind the address, strides and flags of the parts
  fake_gpu_keep_slots(kWhole + 1);
  for (const int64_t tokens : {64, 4096, 65536}) {
    maxima = {1, tokens, tokens, tokens};
    const Result<std::unique_ptr<Trial>> trial = makeKernelTrial();
    ASSERT_TRUE(trial) << trial.status().toString();
    ASSERT_EQ((*trial)->cut(), "") << "the timed call is smaller";
    Spec whole = spec;
    whole.op = Operator::kWindowBwd;
    const int64_t parts = GradientParts::make(whole, maxima).own;
    ASSERT_TRUE((*trial)->launchTimed(**kernel, device->ownStream()).isOk());
    EXPECT_EQ(fake_gpu_last_grid()[0], parts) << tokens;
    const unsigned long *slots = fake_gpu_last_slots();
    EXPECT_EQ(slots[0] != 0, parts > 1) << tokens;
    EXPECT_EQ(slots[1], parts > 1 ? static_cast<unsigned long>(tokens * spec.kvHeads * spec.qkDim) : 0) << tokens;
    EXPECT_EQ(slots[kWhole] != 0, parts == 1) << "the whole gradient of " << tokens;
    ASSERT_TRUE((*trial)->check(**kernel));
    EXPECT_EQ(fake_gpu_last_grid()[0], 1) << tokens;
    EXPECT_EQ(fake_gpu_last_slots()[0], 0) << tokens;
    EXPECT_NE(fake_gpu_last_slots()[kWhole], 0) << tokens;
  }
  fake_gpu_keep_slots(0);
}

TEST_F(CudaTrial, TakesAShareOfWhatIsFree) {
  fake_gpu_have_memory(64ul << 20, 1ul << 30);
  EXPECT_EQ(*trialBytes(*device, false), 16 << 20);
  EXPECT_EQ(*trialBytes(*device, true), 4 << 20) << "the host allocates meanwhile";
  fake_gpu_have_memory(1ul << 40, 1ul << 30);
  EXPECT_EQ(*trialBytes(*device, false), 10e9);
}

TEST_F(CudaTrial, HasFewerSequencesWhereBytesAreFew) {
  maxima = {64, 64, 1, 8192};
  Result<std::unique_ptr<Trial>> decode = makeDecodeTrial(Operator::kMerge);
  ASSERT_TRUE(decode) << decode.status().toString();
  EXPECT_EQ((*decode)->shapeText(), "batch=64 seqlen_q=1 seqlen_k=8192");
  // A sequence's cache takes about a megabyte.
  decode = makeDecodeTrial(Operator::kMerge, 9e6);
  ASSERT_TRUE(decode) << decode.status().toString();
  EXPECT_EQ((*decode)->shapeText(), "batch=8 seqlen_q=1 seqlen_k=8192");

  spec.op = Operator::kWindow;
  maxima = {64, 64 * 256, 256, 256};
  Result<std::unique_ptr<Trial>> kernel = makeKernelTrial(1e6);
  ASSERT_TRUE(kernel) << kernel.status().toString();
  EXPECT_EQ((*kernel)->shapeText(), "batch=8 seqlen_q=256 seqlen_k=256");
}

// What is free may be in pieces, or gone a moment later.
TEST_F(CudaTrial, OutOfMemoryItTriesHalf) {
  maxima = {64, 64, 1, 8192};
  fake_gpu_have_memory(1ul << 30, 5 << 20);
  double bytes = *trialBytes(*device, false);
  const auto make = [this](double most) { return makeDecodeTrial(Operator::kMerge, most); };
  EXPECT_EQ(make(bytes).status().code(), ErrorCode::kOutOfMemory);
  const Result<std::unique_ptr<Trial>> trial = makeTrialThatFits(bytes, make);
  ASSERT_TRUE(trial) << trial.status().toString();
  EXPECT_EQ((*trial)->shapeText(), "batch=8 seqlen_q=1 seqlen_k=8192");
  EXPECT_TRUE(make(bytes)) << "the next one is as large";

  fake_gpu_have_memory(1ul << 30, 0);
  EXPECT_EQ(makeTrialThatFits(bytes, make).status().code(), ErrorCode::kOutOfMemory) << "not for ever";
}

} // namespace
