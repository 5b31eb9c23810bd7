// The road of a pack whose compiler was changed (docs/shipping_a_cache.md): merged, its kernels compiled again, some
// operators measured anew, and exported with what was measured before.
#include "cache/cache_file.h"
#include "cache/kernel_store.h"
#include "tests/harness/template_folder.h"
#include "tests/harness/xml_check.h"

#include <nlohmann/json.hpp>
#include <set>
#include <sys/wait.h>

namespace nsa::tools {
namespace {

class TuneOperatorsTest : public ::testing::Test {
protected:
  void SetUp() override {
    templates.copyFrom(NSA_TEMPLATES);
    templates.keepFewChoices();
  }

  std::string run(const std::string &arguments, const std::string &packs = "none", int expected = 0) const {
    const std::string command =
        "env -u NSA_MISS -u NSA_CACHE_DIR NSA_DEVICE=cpu NSA_CPU_THREADS=1 NSA_TEMPLATE_DIR=" + templates.path() +
        " NSA_CACHE_PACKS=" + packs + " '" NSA_PROGRAM "' " + arguments + " >" + scratch.file("log") + " 2>&1";
    const int status = std::system(command.c_str());
    const std::string output = scratch.read("log");
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == expected) << command << "\n" << output;
    return output;
  }
  nlohmann::json runJson(const std::string &arguments) const {
    const std::string output = run(arguments + " --json");
    const nlohmann::json json = nlohmann::json::parse(output, nullptr, false);
    EXPECT_TRUE(json.is_object()) << output;
    return json;
  }
  std::string path(const std::string &name) const { return scratch.file(name); }

  // As if another revision of the compiler had made and measured all of it.
  void makeOlder(const std::string &database, const std::string &revision) const {
    Result<CacheFile> file = CacheFile::open(database);
    ASSERT_TRUE(file) << file.status().toString();
    std::string warning;
    const std::unique_ptr<KernelStore> store = std::move(*KernelStore::open({.path = database}, warning));
    const std::vector<StoredChoice> choices = *file->choices();
    for (StoredChoice choice : choices) {
      StoredKernel kernel = **file->kernel(choice.content);
      if (kernel.manifest.find("compiler=older") == std::string::npos)
        test::replaceOnce(kernel.manifest, "compiler=" + revision, "compiler=older");
      test::replaceOnce(choice.provenance, "compiler=" + revision, "compiler=older");
      ASSERT_TRUE(store->put(kernel, &choice).isOk());
    }
  }

  test::Scratch scratch;
  test::TemplateFolder templates;
  const std::string tiny = NSA_TEST_DATA "/tune_tiny.json ";
};

TEST_F(TuneOperatorsTest, ARenewedPackIsMeasuredAnewInPart) {
  run("tune " + tiny + "--cache " + path("old.db"));
  const std::string revision = runJson("cache renew --cache " + path("old.db")).value("compiler", "");
  makeOlder(path("old.db"), revision);
  run("cache export " + path("old.nsapack") + " --cache " + path("old.db"));

  // The release: compiled again, not measured.
  run("cache merge " + path("old.nsapack") + " --cache " + path("new.db"));
  EXPECT_EQ(runJson("cache renew --cache " + path("new.db")).value("current", 1), 0);
  run("cache export " + path("shipped.nsapack") + " --brief --cache " + path("new.db"));

  // On the device: three operators of the twelve kernels.
  const std::string tune = "tune " + tiny + "--operators dense,window,cmp --cache " + path("t.db");
  run("cache merge " + path("shipped.nsapack") + " --cache " + path("t.db"));
  const std::string plan = run(tune + " --dry-run");
  EXPECT_NE(plan.find("\nkernels of dense, window, cmp alone\n"), std::string::npos) << plan;
  EXPECT_NE(plan.find(": 5 to measure in "), std::string::npos) << plan;
  EXPECT_EQ(plan.find("combine"), std::string::npos) << plan;
  const std::string tuned = run(tune + " --budget 60");
  EXPECT_NE(tuned.find("5 kernels: 5 tuned, in "), std::string::npos) << tuned;
  EXPECT_NE(run(tune).find("Nothing was measured"), std::string::npos);
  EXPECT_NE(run("tune " + tiny + "--dry-run --cache " + path("t.db")).find(": 7 to measure in "), std::string::npos)
      << "what was only compiled again still is to be measured";

  // One pack of both.
  run("cache export " + path("both.nsapack") + " --brief --cache " + path("t.db"));
  run("cache verify " + path("both.nsapack"));
  const nlohmann::json listing = runJson("cache list --cache " + path("both.nsapack"));
  ASSERT_EQ(listing["choices"].size(), 12u);
  for (const nlohmann::json &choice : listing["choices"]) {
    const std::string op = choice.value("problem", "").substr(0, choice.value("problem", "").find(' '));
    const bool isNew = std::set<std::string>{"dense", "window", "cmp"}.contains(op);
    const std::string provenance = choice.value("provenance", "");
    EXPECT_TRUE(choice.value("tuned", false)) << op;
    EXPECT_EQ(provenance.starts_with("compiler=" + revision), isNew) << op << ": " << provenance;
    EXPECT_EQ(provenance.ends_with(" remade=" + revision), !isNew) << op << ": " << provenance;
    EXPECT_EQ(choice["evidence"].size(), 0u) << "what was measured stays where it was";
  }
  Result<CacheFile> pack = CacheFile::open(path("both.nsapack"));
  ASSERT_TRUE(pack) << pack.status().toString();
  for (const nlohmann::json &kernel : listing["kernels"])
    EXPECT_NE((*pack->kernel(kernel.value("key", "")))->manifest.find("compiler=" + revision), std::string::npos)
        << "all are this compiler's: " << kernel;
  // Measured is measured, with its lines of evidence or without; a report shows what it has.
  EXPECT_NE(run("tune " + tiny + "--operators dense,window,cmp --cache " + path("empty.db") +
                    " --json=" + path("report.json") + " --report " + path("report.html"),
                path("both.nsapack"))
                .find("Nothing was measured"),
            std::string::npos);
  EXPECT_EQ(test::XmlCheck::problemOf(test::readFile(path("report.html"))), "");
}

// A step of training from a pack alone.
TEST_F(TuneOperatorsTest, BothDirectionsAreTunedExportedAndServed) {
  const std::string text = test::readFile(NSA_TEST_DATA "/tune_tiny.json");
  const std::string workload = scratch.write("both.json", text) + " ";
  const std::string tune = "tune " + workload + "--direction both --cache " + path("k.db");
  const nlohmann::json plan = runJson(tune + " --dry-run");
  EXPECT_EQ(plan.value("direction", ""), "both");
  EXPECT_EQ(plan.value("workload", ""), "tiny, forward and backward");
  const auto kernels = static_cast<size_t>(plan["kernels"].size());
  const nlohmann::json report = runJson(tune);
  EXPECT_EQ(report["counts"].value("failed", 1), 0) << report["kernels"];
  EXPECT_EQ(report["counts"].value("tuned", 0) + report["counts"].value("made", 0), static_cast<int>(kernels));
  std::set<std::string> tuned;
  for (const nlohmann::json &kernel : report["kernels"])
    if (kernel.value("status", "") == "tuned")
      tuned.insert(kernel.value("operator", ""));
  for (const char *op : {"combine_bwd", "attention_dq", "attention_dkv", "sel_dq_slots", "sel_dkv", "cmp", "sel"})
    EXPECT_TRUE(tuned.contains(op)) << op;
  EXPECT_NE(run(tune).find("Nothing was measured"), std::string::npos);
  EXPECT_EQ(runJson("tune " + workload + "--direction backward --dry-run --cache " + path("k.db"))["devices"][0].value(
                "measure", 1),
            0);

  run("cache export " + path("k.nsapack") + " --tuned-only --brief --cache " + path("k.db"));
  const std::string config =
      R"( --config '{"dtype": "fp32", "query_heads": 2, "kv_heads": 1, "qk_dim": 16, "v_dim": 16, "window": 32,)"
      R"( "cmp_block": 8, "cmp_stride": 4, "sel_block": 16, "sel_count": 4}')";
  for (const std::string op : {"nsa", "nsa_bwd"}) {
    const std::string call = " --op " + op + config, input = path(op + ".safetensors");
    run("generate" + call + " --seqlen-k 128 --output " + input);
    const nlohmann::json served =
        nlohmann::json::parse(run("run" + call + " --input " + input + " --output " + path("out") +
                                      " --check --json --miss fail --cache " + path("none.db"),
                                  path("k.nsapack")),
                              nullptr, false);
    ASSERT_TRUE(served.is_object());
    EXPECT_GE(served["plan"]["launches"].size(), 6u) << served;
    const nlohmann::json explained = nlohmann::json::parse(
        run("explain" + call + " --seqlen-k 128 --json --cache " + path("none.db"), path("k.nsapack")), nullptr, false);
    ASSERT_TRUE(explained.is_object());
    EXPECT_GE(explained["kernels"].size(), 6u);
    for (const nlohmann::json &kernel : explained["kernels"])
      EXPECT_TRUE(kernel.value("tuned", false)) << kernel;
  }
}

TEST_F(TuneOperatorsTest, ReportsSayWhatTheyAreLimitedTo) {
  const std::string limit = "--operators window --cache " + path("k.db");
  const nlohmann::json plan = runJson("tune " + tiny + limit + " --dry-run");
  EXPECT_EQ(plan["operators"], nlohmann::json::array({"window"}));
  EXPECT_EQ(plan.value("workload", ""), "tiny (window alone)");
  EXPECT_EQ(plan["kernels"].size(), 2u);
  EXPECT_NE(run("tune " + tiny + limit + " --compile-only --target cpu").find("2 kernels: 2 compiled"),
            std::string::npos);
  EXPECT_TRUE(runJson("tune " + tiny + "--dry-run --cache " + path("k.db"))["operators"].empty());
  EXPECT_NE(run("tune " + tiny + "--operators append --dry-run", "none", 1)
                .find("--operators = append: must be of kernels that the workloads have: "),
            std::string::npos);
}

} // namespace
} // namespace nsa::tools
