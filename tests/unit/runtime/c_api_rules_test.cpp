// Every rule of docs/specification.md 1-2 with the field, value and rule that its error names.
#include "tests/unit/runtime/c_api_fixture.h"

#include <limits>
#include <sstream>

namespace nsa::test::c_api {
namespace {

// One row: what is spoiled, and what the error must name.
struct Rule {
  const char *field;
  const char *value;
  const char *rule;
  std::function<void(Call &)> spoil;
};

void checkRules(Plan &plan, nsa_layout layout, const std::vector<Rule> &rules) {
  for (const Rule &rule : rules) {
    Call call(layout);
    rule.spoil(call);
    EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT) << rule.field << ": " << rule.rule;
    EXPECT_STREQ(plan.error.field, rule.field);
    EXPECT_NE(std::string(plan.error.value).find(rule.value), std::string::npos)
        << rule.field << ": " << plan.error.value;
    EXPECT_NE(std::string(plan.error.rule).find(rule.rule), std::string::npos) << rule.field << ": " << plan.error.rule;
    EXPECT_STRNE(plan.error.message, "");
    EXPECT_EQ(call.memory[3][0], 0) << "a refused call must not write";
  }
}

TEST_F(CApi, RulesOfDenseTensors) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 64}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  checkRules(
      plan, NSA_LAYOUT_DENSE,
      {
          {"q", "absent", "must be bound", [](Call &c) { c.drop(NSA_Q); }},
          {"k", "absent", "must be bound", [](Call &c) { c.drop(NSA_K); }},
          {"v", "absent", "must be bound", [](Call &c) { c.drop(NSA_V); }},
          {"out", "absent", "must be bound", [](Call &c) { c.drop(NSA_OUT); }},
          {"q", "bound twice", "once", [](Call &c) { c.bindings.push_back({NSA_Q, &c.tensors[NSA_Q]}); }},
          {"q", "null", "point to a tensor", [](Call &c) { c.bindings[0].tensor = nullptr; }},
          {"bindings.name", "999", "nsa_name", [](Call &c) { c.bindings[0].name = static_cast<nsa_name>(999); }},
          {"q.size", "8", "must be", [](Call &c) { c.tensors[NSA_Q].size = 8; }},
          {"q.dtype", "9", "nsa_dtype", [](Call &c) { c.tensors[NSA_Q].dtype = static_cast<nsa_dtype>(9); }},
          {"q.dtype", "fp16", "must be bf16", [](Call &c) { c.tensors[NSA_Q].dtype = NSA_FP16; }},
          {"k.dtype", "fp32", "must be bf16", [](Call &c) { c.tensors[NSA_K].dtype = NSA_FP32; }},
          {"out.dtype", "fp32", "must be bf16", [](Call &c) { c.tensors[NSA_OUT].dtype = NSA_FP32; }},
          {"lse.dtype", "bf16", "must be fp32", [](Call &c) { c.tensors[NSA_LSE].dtype = NSA_BF16; }},
          {"q.rank", "0", "1 to 5", [](Call &c) { c.tensors[NSA_Q].rank = 0; }},
          {"q.rank", "6", "1 to 5", [](Call &c) { c.tensors[NSA_Q].rank = 6; }},
          {"q.rank", "3", "must be 4", [](Call &c) { c.tensors[NSA_Q].rank = 3; }},
          {"k.rank", "1", "must be 4", [](Call &c) { c.tensors[NSA_K].rank = 1; }},
          {"lse.rank", "4", "must be 3", [](Call &c) { c.tensors[NSA_LSE].rank = 4; }},
          {"q.shape", "[2, 16, 3, 8]", "query_heads", [](Call &c) { c.tensors[NSA_Q].shape[2] = 3; }},
          {"q.shape", "[2, 16, 4, 9]", "qk_dim", [](Call &c) { c.tensors[NSA_Q].shape[3] = 9; }},
          {"q.shape", "-1", "2^31", [](Call &c) { c.tensors[NSA_Q].shape[1] = -1; }},
          {"q.shape", "4611686018427387904", "2^31", [](Call &c) { c.tensors[NSA_Q].shape[1] = int64_t{1} << 62; }},
          {"k.shape", "[1, 32, 2, 8]", "batch of q", [](Call &c) { c.tensors[NSA_K].shape[0] = 1; }},
          {"k.shape", "[2, 32, 4, 8]", "kv_heads", [](Call &c) { c.tensors[NSA_K].shape[2] = 4; }},
          {"v.shape", "[2, 31, 2, 16]", "as k", [](Call &c) { c.tensors[NSA_V].shape[1] = 31; }},
          {"v.shape", "[2, 32, 2, 8]", "v_dim", [](Call &c) { c.tensors[NSA_V].shape[3] = 8; }},
          {"out.shape", "[2, 15, 4, 16]", "as q", [](Call &c) { c.tensors[NSA_OUT].shape[1] = 15; }},
          {"out.shape", "[2, 16, 4, 8]", "v_dim", [](Call &c) { c.tensors[NSA_OUT].shape[3] = 8; }},
          {"lse.shape", "[2, 17, 4]", "as q", [](Call &c) { c.tensors[NSA_LSE].shape[1] = 17; }},
          {"lse.shape", "[2, 16, 2]", "query_heads", [](Call &c) { c.tensors[NSA_LSE].shape[2] = 2; }},
          {"lse.shape", "[1, 16, 4]", "batch of q", [](Call &c) { c.tensors[NSA_LSE].shape[0] = 1; }},
          {"q.strides", "2", "contiguous", [](Call &c) { c.tensors[NSA_Q].strides[3] = 2; }},
          {"out.strides", "3", "contiguous", [](Call &c) { c.tensors[NSA_OUT].strides[3] = 3; }},
          {"k.strides", "-16", "negative", [](Call &c) { c.tensors[NSA_K].strides[1] = -16; }},
          {"k.strides", "4611686018427387904", "63 bits",
           [](Call &c) { c.tensors[NSA_K].strides[0] = int64_t{1} << 62; }},
          {"out.strides", "0", "share memory", [](Call &c) { c.tensors[NSA_OUT].strides[1] = 0; }},
          {"lse.strides", "0", "share memory", [](Call &c) { c.tensors[NSA_LSE].strides[2] = 0; }},
          {"out.strides", "[1024, 16, 16, 1]", "share memory", [](Call &c) { c.tensors[NSA_OUT].strides[1] = 16; }},
          {"q.data", "null", "must point to", [](Call &c) { c.tensors[NSA_Q].data = nullptr; }},
          {"lse.data", "null", "must point to", [](Call &c) { c.tensors[NSA_LSE].data = nullptr; }},
          {"v.data", "", "multiple of the element",
           [](Call &c) { c.tensors[NSA_V].data = reinterpret_cast<char *>(c.memory[2]) + 1; }},
          {"batch", "3", "max_batch = 2",
           [](Call &c) {
             for (nsa_name name : {NSA_Q, NSA_K, NSA_V, NSA_OUT, NSA_LSE})
               c.tensors[name].shape[0] = 3;
           }},
          {"seqlen_q", "21", "max_seqlen_q = 20",
           [](Call &c) {
             for (nsa_name name : {NSA_Q, NSA_OUT, NSA_LSE})
               c.tensors[name].shape[1] = 21;
           }},
          {"seqlen_k", "41", "max_seqlen_k = 40",
           [](Call &c) {
             for (nsa_name name : {NSA_K, NSA_V})
               c.tensors[name].shape[1] = 41;
           }},
          {"seqlen_q", "16", "at most seqlen_k = 15",
           [](Call &c) {
             for (nsa_name name : {NSA_K, NSA_V})
               c.tensors[name].shape[1] = 15;
           }},
          {"cu_seqlens_q", "bound", "packed layout",
           [](Call &c) { c.set(NSA_CU_SEQLENS_Q, c.offsetsQ, NSA_INT32, {3}); }},
          {"gates", "bound", "no tensor of operator window",
           [](Call &c) { c.set(NSA_GATES, c.offsetsQ, NSA_INT32, {3}); }},
      });

  EXPECT_EQ(nsa_run(plan.handle, nullptr, 2, nullptr, 0, nullptr, &plan.error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "bindings");
  EXPECT_EQ(nsa_run(plan.handle, call.bindings.data(), call.bindings.size(), nullptr, 0, nullptr, &plan.error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "workspace_bytes");
  EXPECT_EQ(nsa_run(plan.handle, call.bindings.data(), call.bindings.size(), nullptr, 64, nullptr, &plan.error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.message, "workspace = null: must point to 64 bytes");
  char *misaligned = static_cast<char *>(plan.workspace) + 8;
  EXPECT_EQ(nsa_run(plan.handle, call.bindings.data(), call.bindings.size(), misaligned, 64, nullptr, &plan.error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "workspace");
  std::ostringstream address;
  address << std::hex << "0x" << reinterpret_cast<uintptr_t>(misaligned);
  EXPECT_EQ(plan.error.value, address.str());

  const struct {
    const char *hint;
    std::function<void(Call &)> spoil;
  } hints[] = {{"NSA_INIT", [](Call &c) { c.tensors[NSA_Q].size = 0; }},
               {"strides are in elements, not bytes", [](Call &c) { c.tensors[NSA_Q].strides[3] = 2; }},
               {"strides are in elements, not bytes", [](Call &c) { c.tensors[NSA_OUT].strides[1] = 16; }}};
  for (const auto &row : hints) {
    Call spoiled(NSA_LAYOUT_DENSE);
    row.spoil(spoiled);
    EXPECT_EQ(plan.run(spoiled), NSA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(plan.error.hint).find(row.hint), std::string::npos) << plan.error.message;
  }
}

TEST_F(CApi, RowsAreContiguous) {
  float data = 0;
  const int64_t shape[] = {2, 3, 4, 5, 6, 7};
  nsa_tensor tensor;
  EXPECT_EQ(nsa_tensor_rows(&tensor, &data, NSA_FP16, 5, shape), &tensor);
  EXPECT_EQ(tensor.size, sizeof tensor);
  EXPECT_EQ(tensor.data, &data);
  EXPECT_EQ(tensor.dtype, NSA_FP16);
  EXPECT_EQ(tensor.rank, 5);
  EXPECT_TRUE(std::equal(shape, shape + 5, tensor.shape));
  EXPECT_EQ((std::vector<int64_t>(tensor.strides, tensor.strides + 5)), (std::vector<int64_t>{360, 120, 30, 6, 1}));
  nsa_tensor_rows(&tensor, &data, NSA_FP32, 2, shape);
  EXPECT_EQ(tensor.strides[0], 3);
  EXPECT_EQ(tensor.shape[2], 0) << "what a rank leaves out is zero";
  EXPECT_EQ(nsa_tensor_rows(nullptr, &data, NSA_FP32, 1, shape), nullptr);

  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 64}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  for (const int32_t rank : {-1, 0, 6, INT32_MAX}) {
    nsa_tensor_rows(&call.tensors[NSA_Q], call.memory[0], NSA_BF16, rank, shape);
    EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(plan.error.field, "q.rank");
    EXPECT_EQ(plan.error.value, std::to_string(rank));
  }
  const int64_t huge[][4] = {{2, int64_t{1} << 62, 4, 1}, {1, INT64_MAX, 2, 1}, {INT64_MAX, INT64_MAX, 1, 1}};
  for (const auto &each : huge) {
    nsa_tensor_rows(&call.tensors[NSA_Q], call.memory[0], NSA_BF16, 4, each);
    EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(plan.error.field, "q.rank") << "the number of elements does not fit 63 bits";
  }
  nsa_tensor_rows(&call.tensors[NSA_Q], call.memory[0], NSA_BF16, 4, nullptr);
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "q.rank");
}

TEST_F(CApi, ASpecWithoutDefaultsIsTold) {
  Engine engine(cache);
  Call call(NSA_LAYOUT_DENSE);
  nsa_spec bare = NSA_INIT(nsa_spec);
  bare.op = NSA_OP_NSA;
  bare.query_heads = bare.kv_heads = 1;
  bare.qk_dim = bare.v_dim = 64;
  call.spec = bare;
  const Plan plan(engine, call);
  EXPECT_EQ(plan.status, NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "window");
  EXPECT_STREQ(plan.error.hint, "nsa_spec_init sets the defaults");
  nsa_spec_init(&call.spec);
  call.spec.op = NSA_OP_NSA;
  call.spec.query_heads = call.spec.kv_heads = 1;
  call.spec.qk_dim = call.spec.v_dim = 64;
  call.spec.window = 0;
  const Plan other(engine, call);
  EXPECT_STREQ(other.error.field, "window");
  EXPECT_STREQ(other.error.hint, "") << "one field that is zero was set to zero";
}

TEST_F(CApi, RulesOfPackedTensors) {
  Call call(NSA_LAYOUT_PACKED);
  store(call, {}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  checkRules(
      plan, NSA_LAYOUT_PACKED,
      {
          {"cu_seqlens_q", "absent", "packed layout needs",
           [](Call &c) { c.drop(NSA_CU_SEQLENS_Q), c.drop(NSA_CU_SEQLENS_K); }},
          {"cu_seqlens_q.dtype", "fp32", "must be int32",
           [](Call &c) { c.tensors[NSA_CU_SEQLENS_Q].dtype = NSA_FP32; }},
          {"cu_seqlens_k.rank", "2", "must be 1", [](Call &c) { c.tensors[NSA_CU_SEQLENS_K].rank = 2; }},
          {"cu_seqlens_q.shape", "[0]", "batch + 1", [](Call &c) { c.tensors[NSA_CU_SEQLENS_Q].shape[0] = 0; }},
          {"cu_seqlens_k.shape", "[2]", "batch + 1", [](Call &c) { c.tensors[NSA_CU_SEQLENS_K].shape[0] = 2; }},
          {"cu_seqlens_q.data", "null", "must point to", [](Call &c) { c.tensors[NSA_CU_SEQLENS_Q].data = nullptr; }},
          {"q.rank", "4", "must be 3", [](Call &c) { c.tensors[NSA_Q].rank = 4; }},
          {"out.shape", "[15, 4, 16]", "as q", [](Call &c) { c.tensors[NSA_OUT].shape[0] = 15; }},
          {"v.shape", "[33, 2, 16]", "as k", [](Call &c) { c.tensors[NSA_V].shape[0] = 33; }},
          {"tokens_q", "41", "max_tokens_q = 40",
           [](Call &c) {
             for (nsa_name name : {NSA_Q, NSA_OUT, NSA_LSE})
               c.tensors[name].shape[0] = 41;
           }},
          {"batch", "3", "max_batch = 2",
           [](Call &c) {
             static int32_t four[4] = {};
             for (nsa_name name : {NSA_CU_SEQLENS_Q, NSA_CU_SEQLENS_K})
               c.set(name, four, NSA_INT32, {4});
           }},
          // Contents: the CPU reads them on the host and names the place.
          {"cu_seqlens_q[0]", "1", "must be 0", [](Call &c) { c.offsetsQ[0] = 1; }},
          {"cu_seqlens_q[2]", "4", "less than the one before, 5", [](Call &c) { c.offsetsQ[2] = 4; }},
          {"cu_seqlens_q[2]", "17", "rows of q = 16", [](Call &c) { c.offsetsQ[2] = 17; }},
          {"cu_seqlens_k[1]", "-9", "less than the one before", [](Call &c) { c.offsetsK[1] = -9; }},
          {"cu_seqlens_k[2]", "33", "rows of k = 32", [](Call &c) { c.offsetsK[2] = 33; }},
          {"seqlen_q of sequence 0", "5", "its seqlen_k = 4", [](Call &c) { c.offsetsK[1] = 4; }},
      });
}

TEST_F(CApi, LengthsBeyondTheMaximaAreNamedWithTheirSequence) {
  Call call(NSA_LAYOUT_PACKED);
  call.maxima.max_seqlen_q = 10;
  call.maxima.max_seqlen_k = 22;
  store(call, {}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "seqlen_q of sequence 1");
  EXPECT_STREQ(plan.error.value, "11");
  call.offsetsQ[1] = 7;
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "seqlen_k of sequence 1");
  EXPECT_STREQ(plan.error.value, "23");
  call.offsetsK[1] = 10;
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
}

TEST_F(CApi, RulesOfKeyOffsets) {
  for (const nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED}) {
    Call call(layout);
    store(call, {.scratchBytes = 64}, countingCode());
    Engine engine(cache);
    constexpr int32_t kFar = 1 << 30;
    static int32_t good[3] = {-kFar, kFar, 0}, low[2] = {0, -kFar - 1}, high[2] = {kFar + 1, 0};
    Plan without(engine, call);
    ASSERT_EQ(without.status, NSA_OK) << without.error.message;
    call.spec.key_offset = 1;
    call.set(NSA_K_OFFSET, good, NSA_INT32, {2});
    EXPECT_EQ(without.run(call), NSA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(without.error.rule).find("key_offset = 1"), std::string::npos) << without.error.rule;
    store(call, {.scratchBytes = 64}, countingCode());
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    checkRules(
        plan, layout,
        {
            {"k_offset.dtype", "fp32", "must be int32", [](Call &c) { c.set(NSA_K_OFFSET, good, NSA_FP32, {2}); }},
            {"k_offset.rank", "2", "must be 1", [](Call &c) { c.set(NSA_K_OFFSET, good, NSA_INT32, {2, 1}); }},
            {"k_offset.shape", "[3]", "2 (batch", [](Call &c) { c.set(NSA_K_OFFSET, good, NSA_INT32, {3}); }},
            {"k_offset.data", "null", "2] elements", [](Call &c) { c.set(NSA_K_OFFSET, nullptr, NSA_INT32, {2}); }},
            {"k_offset[1]", "-1073741825", "2^30", [](Call &c) { c.set(NSA_K_OFFSET, low, NSA_INT32, {2}); }},
            {"k_offset[0]", "1073741825", "2^30", [](Call &c) { c.set(NSA_K_OFFSET, high, NSA_INT32, {2}); }},
        });
    EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
    EXPECT_EQ(plan.run(Call(layout)), NSA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(plan.error.rule).find("key_offset is 1"), std::string::npos) << plan.error.rule;
    call.maxima.max_seqlen_k = kFar - 127;
    Plan longPlan(engine, call);
    EXPECT_NE(std::string(longPlan.error.rule).find("2^30 - 128"), std::string::npos) << longPlan.error.rule;
  }
}

TEST(Operators, TheHeaderHasTheNumbersOfTheTable) {
  const nsa_op numbers[] = {NSA_OP_DENSE,      NSA_OP_WINDOW,       NSA_OP_COMPRESS,  NSA_OP_CMP,        NSA_OP_SELECT,
                            NSA_OP_SEL,        NSA_OP_COMBINE,      NSA_OP_NSA,       NSA_OP_DECODE,     NSA_OP_ROTATE,
                            NSA_OP_ROTATE_BWD, NSA_OP_COMBINE_BWD,  NSA_OP_DENSE_BWD, NSA_OP_WINDOW_BWD, NSA_OP_CMP_BWD,
                            NSA_OP_INVERT,     NSA_OP_COMPRESS_BWD, NSA_OP_SEL_BWD,   NSA_OP_NSA_BWD};
  std::string names;
  for (const nsa_op number : numbers)
    names += std::string(findPublicOperator(number)->name) + " ";
  EXPECT_EQ(names, "dense window compress cmp select sel combine nsa decode rotate rotate_bwd combine_bwd dense_bwd "
                   "window_bwd cmp_bwd invert compress_bwd sel_bwd nsa_bwd ");
  EXPECT_EQ(std::size(numbers), publicOperators().size());
  EXPECT_EQ(findPublicOperator(-1), nullptr);
  EXPECT_EQ(findPublicOperator(NSA_OP_NSA_BWD + 1), nullptr) << "internal operators have no number";
}

TEST_F(CApi, RulesOfSpecAndMaxima) {
  Engine engine(cache);
  const struct {
    const char *field;
    const char *value;
    std::function<void(Call &)> spoil;
  } rows[] = {
      {"spec.size", "3", [](Call &c) { c.spec.size = 3; }},
      {"spec.reserved", "1", [](Call &c) { c.spec.reserved[3] = 1; }},
      {"op", "99", [](Call &c) { c.spec.op = static_cast<nsa_op>(99); }},
      {"gate_per_group", "2", [](Call &c) { c.spec.gate_per_group = 2; }},
      {"dtype", "int32", [](Call &c) { c.spec.dtype = NSA_INT32; }},
      {"dtype", "-1", [](Call &c) { c.spec.dtype = static_cast<nsa_dtype>(-1); }},
      {"layout", "2", [](Call &c) { c.spec.layout = static_cast<nsa_layout>(2); }},
      {"query_heads", "0", [](Call &c) { c.spec.query_heads = 0; }},
      {"query_heads", "5", [](Call &c) { c.spec.query_heads = 5; }},
      {"query_heads", "258", [](Call &c) { c.spec.query_heads = 258; }},
      {"kv_heads", "-2", [](Call &c) { c.spec.kv_heads = -2; }},
      {"qk_dim", "0", [](Call &c) { c.spec.qk_dim = 0; }},
      {"v_dim", "0", [](Call &c) { c.spec.v_dim = 0; }},
      {"window", "0", [](Call &c) { c.spec.window = 0; }},
      {"scale", "nan", [](Call &c) { c.spec.scale = std::numeric_limits<float>::quiet_NaN(); }},
      {"scale", "-1", [](Call &c) { c.spec.scale = -1; }},
      {"scale", "inf", [](Call &c) { c.spec.scale = std::numeric_limits<float>::infinity(); }},
      {"maxima.size", "0", [](Call &c) { c.maxima.size = 0; }},
      {"maxima.reserved", "5", [](Call &c) { c.maxima.reserved[0] = 5; }},
      {"max_batch", "0", [](Call &c) { c.maxima.max_batch = 0; }},
      {"max_tokens_q", "-1", [](Call &c) { c.maxima.max_tokens_q = -1; }},
      {"max_seqlen_q", "-1", [](Call &c) { c.maxima.max_seqlen_q = -1; }},
      {"max_seqlen_q", "20", [](Call &c) { c.maxima.max_seqlen_k = 19; }},
      {"max_seqlen_k", "2147483648", [](Call &c) { c.maxima.max_seqlen_k = int64_t{1} << 31; }},
  };
  for (const auto &row : rows) {
    Call call(NSA_LAYOUT_DENSE);
    row.spoil(call);
    Plan plan(engine, call);
    EXPECT_EQ(plan.status, NSA_INVALID_ARGUMENT) << row.field << " = " << row.value;
    EXPECT_EQ(plan.handle, nullptr);
    EXPECT_STREQ(plan.error.field, row.field);
    EXPECT_NE(std::string(plan.error.value).find(row.value), std::string::npos)
        << row.field << ": " << plan.error.value;
    EXPECT_STRNE(plan.error.rule, "");
  }
  EXPECT_EQ(engine.stats().plans_failed, 18u) << "requests that were readable but wrong";
}

TEST_F(CApi, RulesOfOptions) {
  const struct {
    const char *field;
    std::function<void(nsa_engine_options &)> spoil;
  } rows[] = {
      {"options.size", [](nsa_engine_options &o) { o.size = 1; }},
      {"options.reserved", [](nsa_engine_options &o) { o.reserved[0] = -1; }},
      {"device", [](nsa_engine_options &o) { o.device = "tpu"; }},
      {"device", [](nsa_engine_options &o) { o.device = "cuda:"; }},
      {"device", [](nsa_engine_options &o) { o.device = "cuda:-1"; }},
      {"unused", [](nsa_engine_options &o) { o.unused = 1; }},
      {"miss_policy", [](nsa_engine_options &o) { o.miss_policy = static_cast<nsa_miss_policy>(5); }},
      {"fallbacks", [](nsa_engine_options &o) { o.fallbacks = "some"; }},
      {"log_limit", [](nsa_engine_options &o) { o.log_limit = -2; }},
      {"force_branch", [](nsa_engine_options &o) { o.force_branch = "slc"; }},
      {"uniform_gate", [](nsa_engine_options &o) { o.uniform_gate = 2; }},
      {"uniform_gate",
       [](nsa_engine_options &o) {
         o.uniform_gate = 1;
         o.force_branch = "cmp";
       }},
      {"log_level", [](nsa_engine_options &o) { o.log_level = static_cast<nsa_log_level>(9); }},
      {"tune_budget_seconds", [](nsa_engine_options &o) { o.tune_budget_seconds = -2; }},
      {"tune_exhaustive", [](nsa_engine_options &o) { o.tune_exhaustive = 2; }},
      {"ignore_thresholds", [](nsa_engine_options &o) { o.ignore_thresholds = -2; }},
      {"decode_splits", [](nsa_engine_options &o) { o.decode_splits = 17; }},
      {"flags", [](nsa_engine_options &o) { o.flags = 1; }},
      {"cpu_threads", [](nsa_engine_options &o) { o.cpu_threads = -2; }},
      {"cpu_features", [](nsa_engine_options &o) { o.cpu_features = "sse2"; }},
      {"cache_packs", [](nsa_engine_options &o) { o.cache_packs = "a.nsapack::b.nsapack"; }},
      {"cache_keys", [](nsa_engine_options &o) { o.cache_keys = ":"; }},
      {"require_signature", [](nsa_engine_options &o) { o.require_signature = 2; }},
      {"cache_max_bytes", [](nsa_engine_options &o) { o.cache_max_bytes = -2; }},
      {"template_dir", [](nsa_engine_options &o) { o.template_dir = "/no/such/folder"; }},
      {"cache_path", [](nsa_engine_options &o) { o.cache_path = "/dev/null/kernels.db"; }},
      {"compiler_path", [](nsa_engine_options &o) { o.compiler_path = "/no/such/libnsa_compiler.so"; }},
      {"dump_dir", [](nsa_engine_options &o) { o.dump_dir = "/dev/null/dump"; }},
  };
  for (const auto &row : rows) {
    Engine engine(cache, row.spoil);
    EXPECT_EQ(engine.status, NSA_INVALID_ARGUMENT) << row.field;
    EXPECT_EQ(engine.handle, nullptr);
    EXPECT_STREQ(engine.error.field, row.field);
    EXPECT_STRNE(engine.error.rule, "");
  }
}

TEST_F(CApi, AMissSaysWhatIsMissing) {
  Engine engine(cache);
  Plan plan(engine, Call(NSA_LAYOUT_DENSE));
  EXPECT_EQ(plan.status, NSA_CACHE_MISS) << plan.error.message;
  EXPECT_TRUE(std::string(plan.error.message).starts_with("no stored kernel")) << "the code stands before the sentence";
}

TEST_F(CApi, RulesOfPlanOptions) {
  Engine engine(cache);
  Call call(NSA_LAYOUT_DENSE);
  const struct {
    const char *field;
    std::function<void(nsa_plan_options &)> spoil;
  } rows[] = {{"plan_options.size", [](nsa_plan_options &o) { o.size = 8; }},
              {"plan_options.reserved", [](nsa_plan_options &o) { o.reserved[5] = 1; }},
              {"compare", [](nsa_plan_options &o) { o.compare = 2; }},
              {"flags", [](nsa_plan_options &o) { o.flags = 1; }}};
  for (const auto &row : rows) {
    nsa_plan_options options = NSA_INIT(nsa_plan_options);
    row.spoil(options);
    nsa_plan *plan = nullptr;
    nsa_error error;
    EXPECT_EQ(nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, &options, nullptr, &plan, &error),
              NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(error.field, row.field);
    EXPECT_EQ(plan, nullptr);
  }
}

// Nothing may be compiled here, so a plan that compares is refused; one that does not has no report.
TEST_F(CApi, AComparisonIsAskedOfPlansThatCompare) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {}, countingCode());
  Engine engine(cache);
  nsa_plan_options options = NSA_INIT(nsa_plan_options);
  nsa_error error;
  nsa_plan *plan = nullptr;
  char *json = nullptr;
  ASSERT_EQ(nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, &options, nullptr, &plan, &error), NSA_OK);
  EXPECT_EQ(nsa_plan_compare_report(plan, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "plan");
  EXPECT_EQ(json, nullptr);
  EXPECT_EQ(nsa_plan_compare_report(nullptr, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_plan_compare_report(plan, nullptr, &error), NSA_INVALID_ARGUMENT);
  nsa_comparison comparison = {};
  size_t count = 1;
  EXPECT_EQ(nsa_plan_comparisons(plan, &comparison, 1, &count, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "plan");
  EXPECT_EQ(count, 0u);
  nsa_plan_destroy(plan);
  options.compare = 1;
  EXPECT_EQ(nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, &options, nullptr, &plan, &error),
            NSA_UNAVAILABLE);
  EXPECT_EQ(plan, nullptr);
  EXPECT_STRNE(error.hint, "");
}

TEST_F(CApi, RulesOfTuningASpec) {
  Engine engine(cache);
  Call call(NSA_LAYOUT_DENSE);
  const struct {
    const char *field;
    std::function<void(nsa_tune_options &)> spoil;
  } rows[] = {
      {"options.size", [](nsa_tune_options &o) { o.size = 8; }},
      {"options.reserved", [](nsa_tune_options &o) { o.reserved[2] = 1; }},
      {"direction", [](nsa_tune_options &o) { o.direction = NSA_TUNE_BOTH; }},
      {"kernel", [](nsa_tune_options &o) { o.kernel = "window"; }},
      {"kernel_seconds", [](nsa_tune_options &o) { o.kernel_seconds = -2; }},
      {"budget_seconds", [](nsa_tune_options &o) { o.budget_seconds = 1; }},
      {"operators", [](nsa_tune_options &o) { o.operators = "window"; }},
      {"again", [](nsa_tune_options &o) { o.again = 1; }},
      {"dry_run", [](nsa_tune_options &o) { o.dry_run = 1; }},
      {"progress", [](nsa_tune_options &o) { o.progress = [](void *, const nsa_tune_progress *) { return 0; }; }}};
  for (const auto &row : rows) {
    nsa_tune_options options = NSA_INIT(nsa_tune_options);
    row.spoil(options);
    char *json = nullptr;
    nsa_tune_counts counts = NSA_INIT(nsa_tune_counts);
    nsa_error error;
    EXPECT_EQ(nsa_tune_spec(engine.handle, &call.spec, &call.maxima, &options, &counts, &json, &error),
              NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(error.field, row.field);
    EXPECT_TRUE(!json && counts.kernels == 0);
  }
  EXPECT_EQ(nsa_tune_spec(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, nullptr, nullptr),
            NSA_INVALID_ARGUMENT)
      << "the policy is to fail";
  EXPECT_STREQ(lastFailure().field, "miss_policy");
  nsa_tune_options named = NSA_INIT(nsa_tune_options);
  named.kernel = "window";
  EXPECT_EQ(nsa_tune_spec(engine.handle, &call.spec, &call.maxima, &named, nullptr, nullptr, nullptr),
            NSA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lastFailure().hint).find("they are 'window "), std::string::npos) << lastFailure().hint;
}

} // namespace
} // namespace nsa::test::c_api
