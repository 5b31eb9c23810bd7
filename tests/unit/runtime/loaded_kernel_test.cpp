// What a kernel receives of a call: a CPU kernel that copies its slots shows them.
#include "runtime/device/loaded_kernel.h"

#include "runtime/cpu/cpu_device.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

class LoadedKernelTest : public testing::Test {
protected:
  void SetUp() override {
    Result<std::unique_ptr<Device>> opened = cpu::CpuDevice::open(1, "");
    ASSERT_TRUE(opened) << opened.status().toString();
    device = std::move(*opened);
    call.grid = {.batch = 1, .kvHeads = 1, .queryHeads = 1, .group = 1};
    call[View::kOut] = {received.data(), {1, 2, 3}, 0, nullptr, 0};
  }

  // The kernel of these parameters after `out`, whose slots it copies to where `out` lies.
  Status launch(const std::string &params) {
    const KernelText text = {.params = "param view out bf16 3\n" + params, .grid = "batch ; 1 ; 1"};
    Result<Manifest> manifest = Manifest::parse(manifestOf(text, {}));
    if (!manifest)
      return manifest.status();
    const int slots = manifest->slotCount();
    EXPECT_LE(static_cast<size_t>(slots), received.size());
    received.fill(0x5a5a);
    Result<std::shared_ptr<const LoadedKernel>> kernel =
        LoadedKernel::load(*device, "", std::make_shared<const Manifest>(std::move(*manifest)), copyingCode(slots));
    if (!kernel)
      return kernel.status();
    return (*kernel)->launch(call, nullptr, nullptr, nullptr);
  }

  static uint64_t bits(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

  std::unique_ptr<Device> device;
  KernelCall call;
  std::array<uint64_t, 32> received = {};
  int32_t table[4] = {};
};

TEST_F(LoadedKernelTest, ViewsAndScalarsFillTheirSlots) {
  call[View::kK] = {table, {4096, -64, 1}, kViewRowsAligned16, nullptr, 0};
  setScalar(call.scalars, Scalar::kWindow, 512);
  const Status status = launch("param view k bf16 3\nparam i32 window\n");
  ASSERT_TRUE(status.isOk()) << status.toString();
  const uint64_t expected[] = {bits(received.data()), 1, 2, 3, 0, bits(table), 4096, uint64_t(-64), 1, 1, 512, 0x5a5a};
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(received[i], expected[i]) << "slot " << i;
}

// A struct with maps has their alignment, so its end is passed as well.
TEST_F(LoadedKernelTest, SlotsUpToTheNextMultipleOfAMapAreZero) {
  const KernelText text = {.params = "param view out bf16 3\nparam i32 window\n", .grid = "batch ; 1 ; 1"};
  const Result<std::shared_ptr<const LoadedKernel>> kernel = LoadedKernel::load(
      *device, "", std::make_shared<const Manifest>(*Manifest::parse(manifestOf(text, {}))), copyingCode(6));
  ASSERT_TRUE(kernel) << kernel.status().toString();
  setScalar(call.scalars, Scalar::kWindow, 512);
  LoadedKernel::Slots slots;
  slots.fill(0x5a5a);
  ASSERT_TRUE((*kernel)->fillArguments(call, nullptr, slots).isOk());
  EXPECT_EQ(slots[5], 512u);
  for (size_t i = 6; i < ManifestParam::kMapSlots; ++i)
    EXPECT_EQ(slots[i], 0u) << i;
  EXPECT_EQ(slots[ManifestParam::kMapSlots], 0x5a5au);
}

TEST_F(LoadedKernelTest, MapsAreOfRowsOfQueriesKeysAndValues) {
  const auto errorOf = [&](const std::string &map) {
    const KernelText text = {.params = map + "\n", .grid = "batch ; 1 ; 1", .target = "sm_90a"};
    Result<Manifest> manifest = Manifest::parse(manifestOf(text, {}));
    EXPECT_TRUE(manifest) << manifest.status().toString();
    return LoadedKernel::load(*device, "", std::make_shared<const Manifest>(std::move(*manifest)), {})
        .status()
        .toString();
  };
  for (const std::string view : {"lse", "reads", "out", "o_split", "k_win_cache"}) {
    const std::string error = errorOf("param map m " + view + " bf16 64 1 16");
    EXPECT_NE(
        error.find("param m = map: must be of rows of queries, keys or values (q, k or v), not of '" + view + "'"),
        std::string::npos)
        << error;
  }
  EXPECT_NE(errorOf("param map m k fp32 64 1 16").find("param m = map: must be of dtype bf16"), std::string::npos);
  EXPECT_NE(errorOf("param map m nothing bf16 64 1 16").find("no operator has a tensor 'nothing'"), std::string::npos);
}

// The error of a name lists those that there are.
TEST_F(LoadedKernelTest, ANameThatNoOperatorHasIsRefused) {
  EXPECT_NE(
      launch("param i32 windo\n")
          .toString()
          .find("param windo = scalar: no operator has such a number (hint: the numbers of operators are seqlen_q, "
                "seqlen_k, "),
      std::string::npos);
  EXPECT_NE(launch("param view keys bf16 3\n")
                .toString()
                .find("param keys = view: no operator has such a tensor (hint: the tensors of operators are q, k, v, "),
            std::string::npos);
  EXPECT_EQ(launch("param f32 window\n").toString(),
            "invalid argument: param window = scalar: must be i32 (hint: nsa check says where a "
            "template of your own breaks the rule; a stored kernel was made by another version of the templates)");
}

// A plan binds nothing to it, so the kernel would read a null pointer.
TEST_F(LoadedKernelTest, ATensorOfAnotherOperatorIsRefused) {
  EXPECT_EQ(launch("param view o_cmp bf16 3\n").toString(),
            "invalid argument: param o_cmp = view: the operator 'window' has no such tensor (hint: the operator's "
            "tensors are "
            "q, k, v, out, lse, reads, sequences, k_offset, status)");
  const auto errorOf = [&](KernelText text) {
    Result<Manifest> manifest = Manifest::parse(manifestOf(text, {}));
    EXPECT_TRUE(manifest) << manifest.status().toString();
    if (text.templateName == "sequences")
      manifest->op = "sequences"; // an internal operator
    if (text.templateName == "nothing")
      manifest->op = "nothing";
    return LoadedKernel::load(*device, "", std::make_shared<const Manifest>(std::move(*manifest)), {})
        .status()
        .toString();
  };
  EXPECT_NE(errorOf({.templateName = "sequences", .params = "param view lse fp32 3\n", .grid = "1 ; 1 ; 1"})
                .find("param lse = view: the operator 'sequences' has no such tensor (hint: the operator's tensors are "
                      "sequences, cu_seqlens_q, cu_seqlens_k, k_offset, status, cache_seqlens, block_table)"),
            std::string::npos);
  EXPECT_NE(errorOf({.params = "param map m k_cmp bf16 64 1 16\n", .grid = "1 ; 1 ; 1", .target = "sm_90a"})
                .find("param m = map: "),
            std::string::npos);
  EXPECT_EQ(errorOf({.templateName = "nothing", .params = "", .grid = "1 ; 1 ; 1"}),
            "invalid argument: operator = nothing: must be an operator of this library");
}

TEST_F(LoadedKernelTest, AGradientIsAGradientOfTheOperator) {
  const auto errorOf = [&](const std::string &op, const std::string &params) {
    const KernelText text{.params = params, .grid = "1 ; 1 ; 1"};
    Result<Manifest> manifest = Manifest::parse(manifestOf(text, {}));
    EXPECT_TRUE(manifest) << manifest.status().toString();
    manifest->op = op;
    return LoadedKernel::load(*device, "", std::make_shared<const Manifest>(std::move(*manifest)), copyingCode(5))
        .status();
  };
  EXPECT_TRUE(errorOf("attention_dq", "param gradient d_q bf16 3\n").isOk());
  EXPECT_NE(errorOf("attention_dq", "param view d_q bf16 3\n").toString().find("param d_q = view: must be a gradient"),
            std::string::npos);
  EXPECT_NE(errorOf("attention_dq", "param gradient q bf16 3\n").toString().find("must not be a gradient"),
            std::string::npos);
  EXPECT_NE(errorOf("attention_dq", "param gradient d_q fp32 3\n").toString().find("must be of dtype bf16"),
            std::string::npos);
}

TEST_F(LoadedKernelTest, AViewHasATypeOfTheProblemAndTheOneThatIsBound) {
  EXPECT_NE(launch("param view k fp32 3\n").toString().find("param k = view: must be of dtype bf16"),
            std::string::npos);
  EXPECT_NE(launch("param view lse bf16 3\n").toString().find("must be of dtype fp32"), std::string::npos);
  EXPECT_NE(launch("param view k bf16 2\n").toString().find("must be of rank 3"), std::string::npos);
  const KernelText text = {.params = "param view out bf16 3\nparam view k bf16 3\n", .grid = "batch ; 1 ; 1"};
  const Result<std::shared_ptr<const LoadedKernel>> kernel = LoadedKernel::load(
      *device, "", std::make_shared<const Manifest>(*Manifest::parse(manifestOf(text, {}))), copyingCode(10));
  ASSERT_TRUE(kernel) << kernel.status().toString();
  EXPECT_TRUE((*kernel)->checkType(View::kK, DType::kBf16).isOk());
  EXPECT_TRUE((*kernel)->checkType(View::kLse, DType::kF32).isOk()) << "the kernel does not take it";
  EXPECT_EQ((*kernel)->checkType(View::kK, DType::kFp8E4M3).toString(),
            "invalid argument: param k = bf16: must be fp8_e4m3, as the tensor that the plan binds");
}

TEST_F(LoadedKernelTest, PagesBringTheirTable) {
  call[View::kK] = {received.data(), {4096, 64, 8}, kViewRowsAligned16, table + 1, -3};
  setScalar(call.scalars, Scalar::kWindow, 512);
  const Status status = launch("param view k bf16 3 64\nparam i32 window\n");
  ASSERT_TRUE(status.isOk()) << status.toString();
  const uint64_t expected[] = {bits(received.data()), 4096, 64, 8, 1, bits(table + 1), uint64_t(-3), 512, 0x5a5a};
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(received[5 + i], expected[i]) << "slot " << 5 + i;
}

TEST_F(LoadedKernelTest, AnAbsentViewNeedsNoTable) {
  const Status status = launch("param view k bf16 3 64\n");
  ASSERT_TRUE(status.isOk()) << status.toString();
  for (size_t i = 5; i < 12; ++i)
    EXPECT_EQ(received[i], 0u) << "slot " << i;
}

TEST_F(LoadedKernelTest, TablesAreTheKernels) {
  call[View::kK] = {received.data(), {4096, 64, 8}, 0, nullptr, 0};
  Status status = launch("param view k bf16 3 64\n");
  EXPECT_EQ(status.code(), ErrorCode::kInternal);
  EXPECT_NE(status.toString().find("param k: the kernel reads pages, but the call has no block table"),
            std::string::npos)
      << status.toString();

  call[View::kK] = {received.data(), {4096, 64, 8}, 0, table, 2};
  status = launch("param view k bf16 3\n");
  EXPECT_EQ(status.code(), ErrorCode::kInternal);
  EXPECT_NE(status.toString().find("param k: the call has a block table, but the kernel reads no pages"),
            std::string::npos)
      << status.toString();
  for (uint64_t slot : received)
    EXPECT_EQ(slot, 0x5a5au) << "it was launched";
}

// Whatever row of a store named it: its instructions would end the process.
TEST_F(LoadedKernelTest, CodeForMoreThanTheProcessorHasIsRefused) {
  Result<std::unique_ptr<Device>> narrow = cpu::CpuDevice::open(1, "x86-64-v3");
  ASSERT_TRUE(narrow) << narrow.status().toString();
  const auto load = [&](const std::string &features) {
    Result<Manifest> manifest = Manifest::parse(manifestOf({.grid = "batch ; 1 ; 1"}, {}));
    EXPECT_TRUE(manifest) << manifest.status().toString();
    manifest->evidence["features"] = features;
    return LoadedKernel::load(**narrow, "", std::make_shared<const Manifest>(std::move(*manifest)), countingCode())
        .status();
  };
  EXPECT_TRUE(load("x86-64-v3").isOk());
  for (const char *features : {"x86-64-v4", "x86-64-v9"}) {
    const Status status = load(features);
    ASSERT_FALSE(status.isOk()) << features;
    EXPECT_EQ(status.error().field, "features");
    EXPECT_EQ(status.error().value, features);
    EXPECT_NE(status.error().rule.find("x86-64-v3"), std::string::npos) << status.toString();
  }
}

} // namespace
