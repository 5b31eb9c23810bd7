// Workload files: what they may hold, and every way in which they can be wrong.
#include "runtime/json/nearest_name.h"
#include "tests/harness/scratch.h"
#include "tools/nsa/files/find_workload.h"

#include <nlohmann/json.hpp>

namespace nsa::tools {
namespace {

using test::Scratch;

constexpr std::string_view kGood = R"({
  "name": "good", "description": "all of it",
  "heads": [{"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}},
            {"name": "b", "config": {"query_heads": 4, "kv_heads": 4, "qk_dim": 64, "v_dim": 32, "sel_block": 32}}],
  "dtypes": ["bf16", "fp32"],
  "prefill": {"batch": [1, 3], "lengths": {"from": 1024, "to": 4096}, "layouts": ["packed", "dense"]},
  "decode": {"batch": {"from": 1, "to": 4}, "lengths": [100, 5000], "page_sizes": [0, 64]}})";

// The file with one value replaced or, by null, taken out; `pointer` as in RFC 6901.
std::string changed(const char *pointer, const nlohmann::json &value) {
  nlohmann::json json = nlohmann::json::parse(kGood);
  json[nlohmann::json::json_pointer(pointer)] = value;
  return json.dump();
}
std::string without(const char *parent, const char *name) {
  nlohmann::json json = nlohmann::json::parse(kGood);
  json[nlohmann::json::json_pointer(parent)].erase(name);
  return json.dump();
}

void expectError(std::string_view text, const std::string &field, const std::string &rule) {
  const Scratch scratch;
  const Result<Workload> workload = readWorkload(scratch.write("w.json", text));
  ASSERT_FALSE(workload) << text;
  const std::string error = workload.status().toString();
  EXPECT_NE(error.find(scratch.file("w.json") + ": " + field + " = "), std::string::npos) << error;
  EXPECT_NE(error.find(rule), std::string::npos) << error;
}

TEST(Workload, TakesEveryField) {
  const Scratch scratch;
  const Result<Workload> workload = readWorkload(scratch.write("w.json", kGood));
  ASSERT_TRUE(workload) << workload.status().toString();
  EXPECT_EQ(workload->name, "good");
  EXPECT_EQ(workload->description, "all of it");
  ASSERT_EQ(workload->heads.size(), 2u);
  EXPECT_EQ(workload->heads[0].name, "a");
  EXPECT_EQ(workload->heads[0].spec.vDim, 64) << "v_dim is qk_dim when left out";
  EXPECT_EQ(workload->heads[1].spec.vDim, 32);
  EXPECT_EQ(workload->heads[1].spec.selBlock, 32);
  EXPECT_EQ(workload->dtypes, (std::vector{DType::kBf16, DType::kF32}));
  EXPECT_EQ(workload->prefill->batch, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(workload->prefill->lengths, (std::vector<int64_t>{1024, 2048, 4096}));
  EXPECT_EQ(workload->prefill->layouts, (std::vector{Layout::kPacked, Layout::kDense}));
  EXPECT_EQ(workload->decode->batch, (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(workload->decode->lengths, (std::vector<int64_t>{100, 5000}));
  EXPECT_EQ(workload->decode->pageSizes, (std::vector<int32_t>{0, 64}));
}

TEST(Workload, HasDefaults) {
  const Scratch scratch;
  const Result<Workload> workload = readWorkload(scratch.write("w.json", R"({"name": "w",
    "heads": [{"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}}],
    "decode": {"lengths": [64]}})"));
  ASSERT_TRUE(workload) << workload.status().toString();
  EXPECT_EQ(workload->dtypes, std::vector{DType::kBf16});
  EXPECT_FALSE(workload->prefill);
  EXPECT_EQ(workload->decode->batch, std::vector<int64_t>{1});
  EXPECT_EQ(workload->decode->pageSizes, std::vector<int32_t>{0});
}

TEST(Workload, NamesWhatIsWrong) {
  const std::string number = "must be a whole number from 1 to 4194304";
  expectError(without("", "name"), "name", "must be a text");
  expectError(changed("/name", 3), "name", "must be a text");
  expectError(changed("/name", ""), "name", "must be a text");
  expectError(changed("/name", "A name"), "name", "must be at most 64 of a-z");
  expectError(changed("/description", 1), "description", "must be a text");
  expectError(changed("/widgets", 1), "widgets", "is no field there; the fields are name, description, plans, heads");
  expectError(changed("/dtype", 1), "dtype", "did you mean dtypes?");
  expectError(changed("/prefil", 1), "prefil", "did you mean prefill?");

  expectError(without("", "heads"), "heads", "must be a list of {\"name\"");
  expectError(changed("/heads", nlohmann::json::array()), "heads", "must be a list of {\"name\"");
  expectError(changed("/heads/1", 5), "heads[1]", "must be an object");
  expectError(changed("/heads/1/name", "a"), "heads[1].name", "must be another one for each head");
  expectError(without("/heads/1", "name"), "heads[1].name", "must be a text");
  expectError(changed("/heads/0/shape", 1), "heads[0].shape", "is no field there; the fields are name, config");
  expectError(without("/heads/0", "config"), "heads[0].config", "must be an object with query_heads");
  expectError(changed("/heads/0/config", 1), "heads[0].config", "must be an object");
  expectError(changed("/heads/1/config/query_heads", 0), "heads[1].config.query_heads", "must be an integer from 1");
  expectError(changed("/heads/1/config/query_heads", 6), "heads[1].config.query_heads",
              "must be a multiple of kv_heads");
  expectError(changed("/heads/0/config/dtype", "bf16"), "heads[0].config.dtype", "the workload says it in dtypes");
  expectError(changed("/heads/0/config/layout", "dense"), "heads[0].config.layout", "in prefill.layouts");
  expectError(changed("/heads/0/config/page_size", 64), "heads[0].config.page_size", "in decode.page_sizes");

  expectError(changed("/dtypes", "bf16"), "dtypes", "must be a list of some of \"bf16\"");
  expectError(changed("/dtypes", nlohmann::json::array()), "dtypes", "must be a list of some of");
  expectError(changed("/dtypes/1", "fp64"), "dtypes[1]", "must be one of \"bf16\", \"fp16\", \"fp32\"");
  expectError(changed("/dtypes/1", "int32"), "dtypes[1]", "must be one of");
  expectError(changed("/dtypes/1", 1), "dtypes[1]", "must be one of");
  expectError(changed("/dtypes/1", "bf16"), "dtypes[1]", "stands there twice");

  expectError(changed("/prefill", 1), "prefill", "must be an object");
  expectError(without("/prefill", "lengths"), "prefill.lengths", "must be a list of whole numbers from 1 to 4194304");
  expectError(changed("/prefill/lengths", 1024), "prefill.lengths", "must be a list of whole numbers");
  expectError(changed("/prefill/lengths", nlohmann::json::array()), "prefill.lengths",
              "must be a list of whole numbers");
  expectError(changed("/prefill/lengths", {64, 0}), "prefill.lengths[1]", number);
  expectError(changed("/prefill/lengths", {64, 1.5}), "prefill.lengths[1]", number);
  expectError(changed("/prefill/lengths", {64, "128"}), "prefill.lengths[1]", number);
  expectError(changed("/prefill/lengths", {64, 4194305}), "prefill.lengths[1]", number);
  expectError(changed("/prefill/lengths", {64, 18446744073709551615U}), "prefill.lengths[1]", number);
  expectError(changed("/prefill/lengths", {64, 64}), "prefill.lengths[1]", "must be above the one before it, 64");
  expectError(changed("/prefill/lengths", std::vector<int>(65, 1)), "prefill.lengths",
              "must be a list of whole numbers");
  expectError(changed("/prefill/lengths/from", 1000), "prefill.lengths.from", "must be a power of two from 1");
  expectError(changed("/prefill/lengths/to", 512), "prefill.lengths.to", "must be at least from = 1024");
  expectError(without("/prefill/lengths", "to"), "prefill.lengths.to", "must be a power of two");
  expectError(changed("/prefill/lengths/step", 2), "prefill.lengths.step",
              "is no field there; the fields are from, to");
  expectError(changed("/prefill/batch", {0}), "prefill.batch[0]", "must be a whole number from 1 to 65536");
  expectError(changed("/prefill/crossover", "yes"), "prefill.crossover", "must be true or false");
  expectError(changed("/prefill/layouts", {"paged"}), "prefill.layouts[0]", "must be one of \"dense\", \"packed\"");
  expectError(changed("/prefill/page_sizes", {0}), "prefill.page_sizes", "is no field there");

  expectError(changed("/decode/batch", {3, 2}), "decode.batch[1]", "must be above the one before it, 3");
  expectError(changed("/decode/page_sizes", {-1}), "decode.page_sizes[0]", "must be a whole number from 0 to 65536");
  expectError(changed("/decode/page_size", {0}), "decode.page_size", "did you mean page_sizes?");
}

TEST(Workload, NeedsSomethingToTune) {
  expectError(R"({"name": "w", "heads": [{"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}}]})",
              "prefill", "must be there, or decode must");
}

// Errors of a head's configuration that name no field, and of the file itself.
TEST(Workload, TellsOfTheFileAndTheHead) {
  const Scratch scratch;
  const auto errorOf = [&](const std::string &text) {
    return readWorkload(scratch.write("w.json", text)).status().toString();
  };
  EXPECT_NE(errorOf(changed("/heads/0/config/wings", 2)).find("heads[0].config"), std::string::npos);
  EXPECT_NE(errorOf(changed("/heads/0/config/wings", 2)).find("unknown key \"wings\""), std::string::npos);
  EXPECT_NE(errorOf(without("/heads/0/config", "qk_dim")).find("lacks qk_dim"), std::string::npos);
  EXPECT_NE(errorOf("{").find("w.json is not valid JSON"), std::string::npos);
  EXPECT_NE(errorOf("[]").find("must be a JSON object"), std::string::npos);
  EXPECT_NE(errorOf(R"({"name": "a", "name": "b"})").find("stands there twice"), std::string::npos);
  EXPECT_NE(readWorkload(scratch.file("absent.json")).status().toString().find("absent.json"), std::string::npos);
}

TEST(Workload, IsFoundByItsName) {
  const Scratch scratch;
  scratch.write("small.json", kGood);
  scratch.write("large.json", kGood);
  scratch.write("notes.txt", "no workload");
  EXPECT_EQ(readyWorkloads(scratch.path()), (std::vector<std::string>{"large", "small"}));
  EXPECT_TRUE(findWorkload("small", scratch.path()));
  EXPECT_TRUE(findWorkload(scratch.file("small.json"), "/nowhere"));
  const std::string error = findWorkload("smal", scratch.path()).status().toString();
  EXPECT_NE(error.find("WORKLOAD = smal: must be a file or one of large, small"), std::string::npos) << error;
  EXPECT_NE(error.find("did you mean small?"), std::string::npos) << error;
  const std::string none = findWorkload("small", scratch.file("empty")).status().toString();
  EXPECT_NE(none.find("there are no ready-made workloads in"), std::string::npos) << none;
}

TEST(Workload, SeveralAreFoundByTheirNames) {
  const Scratch scratch;
  const auto named = [](const std::string &name) {
    return R"({"name": ")" + name +
           R"(", "heads": [{"name": "a", "config": {"query_heads": 8, "kv_heads": 2, "qk_dim": 64}}],
               "prefill": {"lengths": [64]}})";
  };
  scratch.write("one.json", named("one"));
  scratch.write("two.json", named("two"));
  const Result<std::vector<Workload>> all = findWorkloads({"all"}, scratch.path());
  ASSERT_TRUE(all) << all.status().toString();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "one");
  EXPECT_EQ((*all)[1].name, "two");
  const Scratch mine;
  const std::string other = mine.write("mine.json", named("mine"));
  EXPECT_EQ(findWorkloads({other, "all"}, scratch.path())->size(), 3u);

  const std::string twice = findWorkloads({"all", "two"}, scratch.path()).status().toString();
  EXPECT_NE(twice.find("WORKLOAD = two: must differ in its name, two, from " + scratch.path()), std::string::npos)
      << twice;
  const std::string none = findWorkloads({"all"}, scratch.file("empty")).status().toString();
  EXPECT_NE(none.find("WORKLOAD = all: there are no ready-made workloads in"), std::string::npos) << none;
  EXPECT_FALSE(findWorkloads({"one", "thre"}, scratch.path()));
}

TEST(Workload, IsLimitedToOperators) {
  std::vector<Workload> workloads(2);
  EXPECT_TRUE(workloads[0].wants(Operator::kSel));
  ASSERT_TRUE(limitTo({"window", "dense"}, workloads).isOk());
  for (const Workload &workload : workloads) {
    EXPECT_EQ(operatorsText(workload.operators), "dense, window");
    EXPECT_TRUE(workload.wants(Operator::kDense));
    EXPECT_FALSE(workload.wants(Operator::kSel));
  }
  const auto errorOf = [&](const std::vector<std::string> &names) { return limitTo(names, workloads).toString(); };
  const std::string unknown = errorOf({"dense", "windows"});
  EXPECT_NE(unknown.find("operators = windows: must be an operator of one kernel: dense, window, compress, cmp, "),
            std::string::npos)
      << unknown;
  EXPECT_NE(unknown.find("did you mean window?"), std::string::npos) << unknown;
  for (const std::string name : {"nsa", "decode", ""})
    EXPECT_NE(errorOf({name}).find("must be an operator of one kernel"), std::string::npos) << name;
  EXPECT_NE(errorOf({"cmp", "cmp"}).find("operators = cmp: must stand there once"), std::string::npos);
  EXPECT_EQ(operatorsText(workloads[1].operators), "dense, window") << "a bad list changes nothing";
  ASSERT_TRUE(limitTo({}, workloads).isOk());
  EXPECT_TRUE(workloads[1].wants(Operator::kSel));
}

TEST(NearestName, IsTheOneWithFewestEdits) {
  const std::string_view known[] = {"name", "heads", "lengths", "layouts"};
  EXPECT_EQ(nearestName("lenghts", known), "lengths");
  EXPECT_EQ(nearestName("layout", known), "layouts");
  EXPECT_EQ(nearestName("nam", known), "name");
  EXPECT_EQ(nearestName("xyzzy", known), "");
  EXPECT_EQ(nearestName("anything", {}), "");
}

TEST(NearestName, MayBeAbbreviated) {
  const std::string_view known[] = {"--seqlen-k", "--config", "--configuration"};
  EXPECT_EQ(nearestName("--cfg", known), "--config");
  EXPECT_EQ(nearestName("--nfg", known), "") << "the first letter is another one";
  EXPECT_EQ(nearestName("--gfc", known), "") << "the letters stand in another order";
  EXPECT_EQ(nearestName("sqk", known), "") << "without the dashes";
}

} // namespace
} // namespace nsa::tools
