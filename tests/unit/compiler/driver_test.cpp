// libnsa_compiler.so through its C surface: candidates, stages, manifests, and every way a request can be wrong.
// Nothing here needs NVRTC; what does stands in tests/nvrtc.
#include "runtime/base/cpu_features.h"
#include "runtime/base/problem.h"
#include "tests/harness/template_folder.h"
#include "tests/unit/compiler/compile_call.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <thread>

using namespace nsa;
using namespace nsa::test;

namespace {

// ---- list ----

TEST(List, IsCheapestFirstAndRepeatable) {
  for (const char *target : {"cpu", "sm_80", "sm_90a"}) {
    CompileCall call;
    call.target = target;
    auto first = call.list();
    ASSERT_TRUE(first) << first.status().toString();
    EXPECT_GE(first->size(), 12u) << target << ": a tuner needs a choice";
    for (size_t i = 1; i < first->size(); ++i)
      EXPECT_LE((*first)[i - 1].cost, (*first)[i].cost);
    EXPECT_EQ(*first, *call.list());
  }
}

TEST(List, TheFirstIsWhatCompilesByDefault) {
  CompileCall call;
  auto listed = call.list();
  auto compiled = call.compile();
  ASSERT_TRUE(listed && compiled) << compiled.status().toString();
  auto manifest = Manifest::parse(compiled->manifest);
  ASSERT_TRUE(manifest) << manifest.status().toString();
  EXPECT_EQ(formatValues(manifest->config), listed->front().config);
  EXPECT_EQ(manifest->templateName, listed->front().templateName);
}

TEST(List, PinnedChoicesNarrow) {
  CompileCall call;
  call.target = "sm_80";
  call.config = {{"key_tile", "32"}};
  auto listed = call.list();
  ASSERT_TRUE(listed) << listed.status().toString();
  for (const CompileCall::Listed &candidate : *listed)
    EXPECT_NE(candidate.config.find("key_tile=32"), std::string::npos);
}

// One operator, three templates: a problem finds the one that was written for it, whatever its heads.
TEST(List, TheKindOfCompressionChoosesItsTemplate) {
  for (const char *target : {"cpu", "sm_86", "sm_90a"})
    for (const char *kind : {"mean", "linear", "mlp"})
      for (const char *dtype : {"bf16", "fp32"})
        for (int dim : {1, 33, 128, 640}) {
          CompileCall call;
          call.target = target;
          call.op = "compress";
          call.fixed = {
              {"dtype", dtype},      {"packed", "1"},           {"page_size", "0"},   {"qk_dim", std::to_string(dim)},
              {"v_dim", "64"},       {"cmp_block", "32"},       {"cmp_stride", "16"}, {"cmp_kind", kind},
              {"mlp_hidden", "300"}, {"mlp_activation", "gelu"}};
          auto listed = call.list();
          ASSERT_TRUE(listed) << listed.status().toString();
          for (const CompileCall::Listed &candidate : *listed)
            ASSERT_EQ(candidate.templateName, std::string("compress_") + kind);
        }
}

// Costs of one operator's templates are of one scale for few queries as for many: the tensor cores' comes first.
TEST(List, FewQueriesKeepTheirTemplate) {
  for (const char *target : {"sm_80", "sm_86", "sm_90a", "sm_120a"})
    for (const char *op : {"dense", "window"})
      for (const char *dtype : {"bf16", "fp32"})
        for (const char *many : {"0", "1"}) {
          CompileCall call;
          call.target = target;
          call.op = op;
          call.fixed["dtype"] = dtype;
          call.fixed["qk_dim"] = call.fixed["v_dim"] = "128";
          call.fixed["many_queries"] = many;
          auto listed = call.list();
          ASSERT_TRUE(listed) << listed.status().toString();
          const bool byHand = target == std::string("sm_90a") && dtype == std::string("bf16") && many[0] == '1';
          EXPECT_EQ(listed->front().templateName, byHand ? "attention_sm90" : "attention")
              << target << " " << op << " " << dtype << " " << many;
          const auto tiled = std::ranges::find(*listed, "attention", &CompileCall::Listed::templateName);
          ASSERT_NE(tiled, listed->end());
          EXPECT_TRUE(std::ranges::any_of(
              *listed, [](const CompileCall::Listed &candidate) { return candidate.templateName == "row_attention"; }));
          EXPECT_NE(tiled->config.find(many[0] == '0' ? "query_tile=64" : "query_tile=128"), std::string::npos)
              << target << " " << op << " " << dtype << " " << tiled->config;
        }
}

// The template is not offered where it cannot run: other architectures, floats, pages, few queries, heads that fill no
// box.
TEST(List, AttentionByHandIsForHopperAlone) {
  const auto offers = [](const char *target, const std::map<std::string, std::string> &fixed) {
    CompileCall call;
    call.target = target;
    call.fixed["qk_dim"] = call.fixed["v_dim"] = "128";
    call.fixed["group"] = "16";
    for (const auto &[name, value] : fixed)
      call.fixed[name] = value;
    const auto listed = call.list();
    EXPECT_TRUE(listed) << listed.status().toString();
    return listed && std::ranges::any_of(*listed, [](const CompileCall::Listed &candidate) {
             return candidate.templateName == "attention_sm90";
           });
  };
  const std::map<std::string, std::string> served = {{"dtype", "bf16"}, {"many_queries", "1"}};
  EXPECT_TRUE(offers("sm_90a", served));
  for (const char *target : {"sm_80", "sm_86", "sm_89", "sm_100a", "sm_120a"})
    EXPECT_FALSE(offers(target, served)) << target;
  for (const auto &[name, value] : std::map<std::string, std::string>{
           {"dtype", "fp32"}, {"many_queries", "0"}, {"page_size", "64"}, {"group", "12"}, {"qk_dim", "100"}}) {
    std::map<std::string, std::string> other = served;
    other[name] = value;
    EXPECT_FALSE(offers("sm_90a", other)) << name << "=" << value;
  }
  EXPECT_TRUE(offers("sm_90a", {{"dtype", "fp16"}, {"many_queries", "1"}, {"group", "1"}, {"qk_dim", "72"}}));
}

TEST(List, SmallerSharedMemoryLeavesFewer) {
  CompileCall call;
  call.fixed["qk_dim"] = call.fixed["v_dim"] = "256";
  call.target = "sm_90a";
  auto large = call.list();
  call.target = "sm_86";
  auto small = call.list();
  ASSERT_TRUE(large && small) << small.status().toString();
  EXPECT_LT(small->size(), large->size());
}

// ---- compile ----

TEST(Compile, CpuKernelHasACompleteManifest) {
  CompileCall call;
  call.fixed["dtype"] = "fp16";
  call.fixed["qk_dim"] = "33";
  auto compiled = call.compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  EXPECT_GT(compiled->bytes.size(), 1000u);
  auto manifest = Manifest::parse(compiled->manifest);
  ASSERT_TRUE(manifest) << manifest.status().toString();
  EXPECT_EQ(manifest->entry.front(), '+');
  EXPECT_EQ(manifest->op, "window");
  EXPECT_EQ(manifest->target, "cpu");
  EXPECT_EQ(manifest->fixed, call.fixed);
  EXPECT_EQ(manifest->revision.size(), 64u);
  EXPECT_EQ(manifest->evidence["content"].size(), 64u);
  EXPECT_EQ(manifest->evidence["features"], "x86-64-v3");
  EXPECT_GT(manifest->scratchBytes, 0);

  std::vector<std::string> names;
  for (const ManifestParam &param : manifest->params)
    names.push_back(param.name);
  EXPECT_EQ(names, (std::vector<std::string>{"q", "out", "k", "v", "lse", "reads", "window", "scale_log2", "seqlen_q",
                                             "seqlen_k", "query_begin", "query_end"}));
  EXPECT_EQ(manifest->params[0].dtype, "fp16");
  EXPECT_EQ(manifest->params[0].rank, 3);
  EXPECT_EQ(manifest->params[4].dtype, "fp32");
  EXPECT_EQ(manifest->params[5].dtype, "int32");
  EXPECT_EQ(manifest->params[7].kind, ManifestParam::Kind::kF32);
  // The launcher knows lengths, heads and batch; everything else was bound.
  for (const Expression &axis : manifest->grid)
    for (const std::string &name : axis.names())
      EXPECT_TRUE(name == "max_seqlen_q" || name == "kv_heads" || name == "batch") << name;
  EXPECT_NE(compiled->timings.find("render="), std::string::npos);
  EXPECT_NE(compiled->timings.find("codegen="), std::string::npos);
}

// A stored kernel without them does not serve (runtime/engine/choices/kernel_match.h).
TEST(Compile, AKernelTakesTheViewsThatItsOperatorSaysItTakes) {
  int operators = 0;
  for (const OperatorDef &def : operatorTable()) {
    if (!def.takesPlanViews)
      continue;
    ++operators;
    for (const CmpKind kind : {CmpKind::kLinear, CmpKind::kMlp}) {
      const bool isOther = kind == CmpKind::kLinear ? def.op == Operator::kCompressDz : !(def.fields & kPhi);
      if (isOther) // no kernel has this kind, or one has all kinds
        continue;
      Spec spec;
      spec.op = def.op;
      spec.queryHeads = spec.kvHeads = 2;
      spec.qkDim = spec.vDim = 16;
      spec.cmpKind = kind;
      spec.mlpHidden = 16;
      CompileCall call;
      call.op = def.name;
      call.fixed = Problem::make(spec, {.batch = 1, .tokensQ = 64, .seqlenQ = 64, .seqlenK = 64}).fixed();
      const auto compiled = call.compile();
      ASSERT_TRUE(compiled) << def.name << ": " << compiled.status().toString();
      const Result<Manifest> manifest = Manifest::parse(compiled->manifest);
      ASSERT_TRUE(manifest) << def.name << ": " << manifest.status().toString();
      for (const View view : def.planViews)
        EXPECT_EQ(std::ranges::count(manifest->params, viewRule(view).name, &ManifestParam::name), 1)
            << def.name << " " << viewRule(view).name;
    }
  }
  EXPECT_EQ(operators, 17);
}

TEST(Compile, EqualRequestsGiveEqualBytesOnAnyThread) {
  CompileCall call;
  auto first = call.compile();
  ASSERT_TRUE(first) << first.status().toString();
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (std::string &result : results)
    threads.emplace_back([&] {
      if (auto compiled = call.compile())
        result = compiled->bytes + compiled->manifest;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &result : results)
    EXPECT_TRUE(result == first->bytes + first->manifest);

  // A folder's name is no part of anything.
  TemplateFolder folder;
  folder.copyFrom(NSA_TEST_TEMPLATES);
  call.templateDir = folder.path();
  auto fromFolder = call.compile();
  ASSERT_TRUE(fromFolder) << fromFolder.status().toString();
  EXPECT_TRUE(fromFolder->bytes == first->bytes);
  EXPECT_EQ(fromFolder->manifest, first->manifest);
}

TEST(Compile, NothingOfThisMachineIsInTheImage) {
  CompileCall call;
  auto compiled = call.compile();
  ASSERT_TRUE(compiled);
  for (const std::string &text : {compiled->bytes, compiled->manifest})
    for (const char *trace : {NSA_TEST_TEMPLATES, "/tmp", "/home", "/usr", ".tile"})
      EXPECT_EQ(text.find(trace), std::string::npos) << trace;
}

struct StageCase {
  const char *target;
  nsa_compiler_stage stage;
  const char *holds; // part of the output; null: the stage does not exist there
};

class Stages : public testing::TestWithParam<StageCase> {};

TEST_P(Stages, GiveTheirTextOrSayThatTheyDoNotExist) {
  CompileCall call;
  call.target = GetParam().target;
  call.stage = GetParam().stage;
  auto compiled = call.compile();
  if (!GetParam().holds) {
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(compiled.status().error().field, "stage");
    EXPECT_NE(compiled.status().error().rule.find("does not exist for target"), std::string::npos);
    // The hint has the words of `nsa compile --emit`.
    EXPECT_EQ(compiled.status().error().hint, call.target == "cpu"
                                                  ? "the CPU has template, tile, scheduled, llvm, image"
                                                  : "a GPU has template, tile, scheduled, cuda, ptx, cubin");
    return;
  }
  ASSERT_TRUE(compiled) << compiled.status().toString();
  EXPECT_NE(compiled->bytes.find(GetParam().holds), std::string::npos) << compiled->bytes.substr(0, 2000);
  EXPECT_EQ(compiled->manifest, "") << "only a binary has a manifest";
}

INSTANTIATE_TEST_SUITE_P(All, Stages,
                         testing::Values(StageCase{"cpu", NSA_COMPILER_STAGE_TEMPLATE, "kernel attention serves"},
                                         StageCase{"cpu", NSA_COMPILER_STAGE_TILE, "tile.dot"},
                                         StageCase{"cpu", NSA_COMPILER_STAGE_SCHEDULED, "vector<8xf32>"},
                                         StageCase{"cpu", NSA_COMPILER_STAGE_LLVM, "<8 x float>"},
                                         StageCase{"cpu", NSA_COMPILER_STAGE_CUDA, nullptr},
                                         StageCase{"cpu", NSA_COMPILER_STAGE_PTX, nullptr},
                                         StageCase{"sm_80", NSA_COMPILER_STAGE_TEMPLATE, "kernel attention serves"},
                                         StageCase{"sm_80", NSA_COMPILER_STAGE_TILE, "tile.dot"},
                                         StageCase{"sm_80", NSA_COMPILER_STAGE_SCHEDULED, "tile.shared_bytes"},
                                         StageCase{"sm_80", NSA_COMPILER_STAGE_CUDA, "__global__"},
                                         StageCase{"sm_80", NSA_COMPILER_STAGE_LLVM, nullptr}));

TEST(Stages, OfATemplateByHandHaveTheWordsOfTheCommand) {
  CompileCall call;
  call.target = "sm_90a";
  call.fixed["qk_dim"] = call.fixed["v_dim"] = "128";
  call.fixed["many_queries"] = "1";
  call.templateName = "attention_sm90";
  call.stage = NSA_COMPILER_STAGE_TILE;
  const auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.status().error().hint, "it has template, cuda, ptx, cubin");
}

// The arguments of a hand-scheduled kernel whose header gives two of them a condition.
TEST(Compile, AnArgumentIsThereWhereItsConditionHolds) {
  const auto hasOffsets = [](const std::map<std::string, std::string> &fixed) {
    CompileCall call;
    call.target = "sm_80";
    call.templateName = "row_attention";
    call.stage = NSA_COMPILER_STAGE_TEMPLATE;
    for (const auto &[name, value] : fixed)
      call.fixed[name] = value;
    const auto compiled = call.compile();
    EXPECT_TRUE(compiled) << compiled.status().toString();
    if (!compiled)
      return false;
    const size_t begin = compiled->bytes.find("struct Arguments {");
    const std::string arguments = compiled->bytes.substr(begin, compiled->bytes.find("};", begin) - begin);
    EXPECT_NE(arguments.find(" scale_log2;"), std::string::npos) << arguments;
    EXPECT_EQ(arguments.find(" k_offset;") != std::string::npos, arguments.find(" status;") != std::string::npos);
    return arguments.find(" k_offset;") != std::string::npos;
  };
  EXPECT_FALSE(hasOffsets({}));
  EXPECT_TRUE(hasOffsets({{"key_offset", "1"}}));
  EXPECT_FALSE(hasOffsets({{"key_offset", "1"}, {"packed", "1"}})) << "the kernel of the sequences checks them";
}

TEST(Compile, EmittedCudaIsSelfContained) {
  CompileCall call;
  call.target = "sm_90a";
  call.stage = NSA_COMPILER_STAGE_CUDA;
  auto compiled = call.compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  EXPECT_EQ(compiled->bytes.find("#include"), std::string::npos);
  EXPECT_NE(compiled->bytes.find("// ---- device/types.cuh"), std::string::npos);
  EXPECT_NE(compiled->bytes.find("attention("), std::string::npos);
}

// ---- requests that are wrong ----

struct BadRequest {
  const char *name;
  void (*spoil)(CompileCall &);
  ErrorCode code;
  const char *field;
  const char *text; // part of the whole error
};

class BadRequests : public testing::TestWithParam<BadRequest> {};

TEST_P(BadRequests, NameTheFieldAndTheRule) {
  CompileCall call;
  GetParam().spoil(call);
  auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  Status status = compiled.status();
  EXPECT_EQ(status.code(), GetParam().code) << status.toString();
  EXPECT_EQ(status.error().field, GetParam().field) << status.toString();
  EXPECT_NE(status.toString().find(GetParam().text), std::string::npos) << status.toString();
}

constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;
INSTANTIATE_TEST_SUITE_P(
    Request, BadRequests,
    testing::Values(
        BadRequest{"Target", [](CompileCall &c) { c.target = "sm_90"; }, kInvalid, "target", "sm_90a, sm_100a"},
        BadRequest{"Operator", [](CompileCall &c) { c.op = "windows"; }, kInvalid, "op", "dense, window"},
        BadRequest{"Stage", [](CompileCall &c) { c.stage = static_cast<nsa_compiler_stage>(7); }, kInvalid, "stage",
                   "7"},
        BadRequest{"Dtype", [](CompileCall &c) { c.fixed["dtype"] = "int32"; }, kInvalid, "dtype",
                   "must be one of bf16, fp16, fp32"},
        BadRequest{"DtypeOfCaches", [](CompileCall &c) { c.fixed["dtype"] = "fp8_e4m3"; }, kInvalid, "dtype",
                   "must be one of bf16, fp16, fp32"},
        BadRequest{"NoDtype", [](CompileCall &c) { c.fixed.erase("dtype"); }, kInvalid, "dtype",
                   "must be one of bf16, fp16, fp32"},
        BadRequest{"ZeroHead", [](CompileCall &c) { c.fixed["qk_dim"] = "0"; }, kInvalid, "qk_dim", "from 1"},
        BadRequest{"TextHead", [](CompileCall &c) { c.fixed["v_dim"] = "64x"; }, kInvalid, "v_dim", "from 1"},
        BadRequest{"HugeHead", [](CompileCall &c) { c.fixed["v_dim"] = "2147483648"; }, kInvalid, "v_dim",
                   "2147483647"},
        BadRequest{"Packed", [](CompileCall &c) { c.fixed["packed"] = "2"; }, kInvalid, "packed", "0 or 1"},
        BadRequest{"MissingValue", [](CompileCall &c) { c.fixed.erase("group"); }, kInvalid, "group",
                   "needs this value"},
        BadRequest{"UnknownValue", [](CompileCall &c) { c.fixed["head"] = "3"; }, kInvalid, "head", "does not declare"},
        BadRequest{"ValueOfAnotherOperator", [](CompileCall &c) { c.fixed["cmp_block"] = "32"; }, kInvalid, "cmp_block",
                   "does not declare this value as fixed for operator window"},
        BadRequest{"Template", [](CompileCall &c) { c.templateName = "atention"; }, kInvalid, "template", "attention"},
        BadRequest{"UnknownChoice", [](CompileCall &c) { c.config["tile"] = "3"; }, kInvalid, "tile", "key_tile"},
        BadRequest{"ChoiceValue", [](CompileCall &c) { c.config["key_tile"] = "17"; }, kInvalid, "key_tile", "16 | 32"},
        BadRequest{"ChoiceValueOfOneTemplate",
                   [](CompileCall &c) {
                     c.target = "sm_80";
                     c.config["query_tile"] = "17";
                   },
                   kInvalid, "query_tile", "16 | 32"},
        BadRequest{"NotAdmissible", [](CompileCall &c) { c.config["warps"] = "4"; }, ErrorCode::kUnsupported, "config",
                   "require cpu ? warps == 1"},
        BadRequest{"Features", [](CompileCall &c) { c.cpuFeatures = "avx"; }, kInvalid, "cpu_features", "x86-64-v3"},
        BadRequest{"Folder", [](CompileCall &c) { c.templateDir = "/nonexistent"; }, kInvalid, "template_dir",
                   "existing folder"}),
    [](const auto &info) { return info.param.name; });

TEST(Request, MalformedStructsAreErrorsNotCrashes) {
  const nsa_compiler_api &api = CompileCall::api();
  EXPECT_EQ(api.compile(nullptr, nullptr), static_cast<int>(kInvalid));
  nsa_compiler_result *result = nullptr;
  EXPECT_EQ(api.compile(nullptr, &result), static_cast<int>(kInvalid));
  EXPECT_STREQ(api.error_field(result), "request");
  api.destroy(result);

  nsa_compiler_request request = {};
  EXPECT_EQ(api.list(&request, &result), static_cast<int>(kInvalid));
  EXPECT_STREQ(api.error_field(result), "size");
  api.destroy(result);

  request.size = sizeof request;
  EXPECT_EQ(api.list(&request, &result), static_cast<int>(kInvalid));
  EXPECT_STREQ(api.error_field(result), "target");
  api.destroy(result);

  request.target = "cpu";
  request.op = "window";
  request.fixed_count = 2;
  EXPECT_EQ(api.list(&request, &result), static_cast<int>(kInvalid));
  EXPECT_STREQ(api.error_field(result), "fixed");
  api.destroy(result);

  nsa_compiler_value twice[] = {{"group", "1"}, {"group", "2"}};
  request.fixed = twice;
  EXPECT_EQ(api.list(&request, &result), static_cast<int>(kInvalid));
  EXPECT_STREQ(api.error_field(result), "group");
  EXPECT_STREQ(api.candidate_config(result, 0), "") << "a failed result has no candidates";
  api.destroy(result);

  nsa_compiler_value half[] = {{"group", nullptr}};
  request.fixed = half;
  request.fixed_count = 1;
  EXPECT_EQ(api.list(&request, &result), static_cast<int>(kInvalid));
  api.destroy(result);
  api.destroy(nullptr);
}

TEST(Request, AnotherAbiVersionIsRefused) {
  EXPECT_EQ(nsa_compiler_get_api(NSA_COMPILER_ABI_VERSION + 1), nullptr);
  EXPECT_EQ(CompileCall::api().size, sizeof(nsa_compiler_api));
  EXPECT_EQ(std::string(CompileCall::api().source_id).size(), 64u);
}

// ---- NVRTC that is not there ----

TEST(MissingNvrtc, SaysWhatWasTriedAndWhatToInstall) {
  CompileCall call;
  call.target = "sm_90a";
  call.nvrtcPath = "/nonexistent/libnvrtc.so.13";
  auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(compiled.status().error().message.find("/nonexistent/libnvrtc.so.13"), std::string::npos);
  EXPECT_NE(compiled.status().error().hint.find("NSA_NVRTC"), std::string::npos);
}

TEST(MissingNvrtc, AForeignLibraryIsNotTaken) {
  CompileCall call;
  call.target = "sm_90a";
  call.nvrtcPath = "libm.so.6";
  auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(compiled.status().error().message.find("lacks nvrtc"), std::string::npos) << compiled.status().toString();
}

TEST(MissingNvrtc, AnOldDriverIsNamed) {
  CompileCall call;
  call.target = "sm_90a";
  call.driverVersion = 11080;
  auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(compiled.status().error().message.find("11.8"), std::string::npos);
}

} // namespace
