// `nsa tune` and `nsa bench` say how much of a call they timed, and where the results are. `nsa tune` says the same on
// a terminal and in a pipe.
#include "tests/cpu/program_job.h"
#include "tests/harness/on_terminal.h"
#include "tests/harness/template_folder.h"

#include <regex>

namespace nsa::tools {
namespace {

class TuneReportTest : public ProgramJob {
protected:
  void SetUp() override {
    templates.copyFrom(NSA_TEMPLATES);
    templates.keepFewChoices();
  }
  std::string environment() const { return "NSA_TEMPLATE_DIR=" + templates.path() + " NSA_CPU_THREADS=1 "; }

  test::TemplateFolder templates;
};

// Dense attention over a long sequence is timed on a few of its queries: the time must not pass for that of all.
TEST_F(TuneReportTest, TimesOfACutCallSaySoWhereverTheyAreShown) {
  const std::string spec =
      "--op dense --config " + data + "/window_64.json --seqlen-k 16384 --device cpu --cache " + database;
  const std::string json = scratch.file("report.json");
  const std::string table =
      run("tune " + spec + " --kernel-budget 5 --json=" + json, 0, environment() + "NSA_LOG=info");
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json), nullptr, false);
  ASSERT_TRUE(report.is_object()) << table;
  const std::string cut = report.value("cut", "");
  std::smatch match;
  ASSERT_TRUE(std::regex_match(cut, match, std::regex(R"((\d+) of 16384 queries timed)"))) << report.dump(2);
  EXPECT_EQ(report.value("shape", ""), "batch=1 seqlen_q=" + match[1].str() + " seqlen_k=16384");
  EXPECT_NE(table.find("Times are of a part of the call: " + cut + "\n"), std::string::npos) << table;
  const std::string log = test::readFile(scratch.file("stderr"));
  EXPECT_NE(log.find(" (" + cut + "), input seed "), std::string::npos) << log;

  const std::string listing = run("cache list --cache " + database);
  EXPECT_NE(listing.find("] (" + cut + ")\n"), std::string::npos) << listing;
  const nlohmann::json choice = runJson("cache list --cache " + database)["choices"][0];
  EXPECT_EQ(choice.value("cut", ""), cut);
  const std::string key = choice.value("kernel", "");
  const std::string shown = run("cache show " + key + " --cache " + database);
  EXPECT_NE(shown.find(", measured (" + cut + "); "), std::string::npos) << shown;
  const std::string explained = run("explain " + spec, 0, environment());
  EXPECT_NE(explained.find(", measured (" + cut + ")\n"), std::string::npos) << explained;
  const nlohmann::json why = nlohmann::json::parse(run("explain --json " + spec, 0, environment()), nullptr, false);
  EXPECT_EQ(why["database"].value("cut", ""), cut) << why.dump(2);
}

TEST_F(TuneReportTest, TimesOfAWholeCallSayNothing) {
  const std::string spec =
      "--op dense --config " + data + "/window_64.json --seqlen-k 64 --device cpu --cache " + database;
  const std::string table = run("tune " + spec + " --kernel-budget 5", 0, environment());
  EXPECT_EQ(table.find("timed"), std::string::npos) << table;
  EXPECT_EQ(run("cache list --cache " + database).find("timed"), std::string::npos);
  EXPECT_EQ(run("explain " + spec, 0, environment()).find("timed"), std::string::npos);
}

TEST_F(TuneReportTest, ATuneEndsWithWhereItsResultsAre) {
  const std::string spec =
      "--op dense --config " + data + "/window_64.json --seqlen-k 64 --device cpu --kernel-budget 1";
  const std::string json = scratch.file("r.json"), html = scratch.file("r.html");
  const std::string kept = run("tune " + spec + " --cache " + database + " --json=" + json, 0, environment());
  EXPECT_TRUE(kept.ends_with("\n\nDatabase: " + database + "\nJSON report: " + json + "\n")) << kept;
  const std::string lost = run("tune " + spec + " --cache :memory:", 0, environment());
  EXPECT_TRUE(lost.ends_with("\nDatabase: none, as it was in memory alone\n")) << lost;
  const std::string whole =
      run("tune " + data + "/tune_tiny.json --device cpu --cache " + database + " --json=" + json + " --report " + html,
          0, environment());
  EXPECT_TRUE(whole.ends_with("\nDatabase: " + database + "\nJSON report: " + json + "\nReport: " + html + "\n"))
      << whole;
  EXPECT_EQ(nlohmann::json::parse(test::readFile(json)).value("cache", ""), database);
  EXPECT_NE(test::readFile(html).find(database), std::string::npos);
  const std::string made =
      run("tune " + data + "/tune_tiny.json --compile-only --target cpu --cache " + scratch.file("made.db"), 0,
          environment());
  EXPECT_TRUE(made.ends_with("\nDatabase: " + scratch.file("made.db") + "\n")) << made;
}

// The facts in the lines, without the times, which differ from run to run.
std::vector<std::string> factsOf(const std::string &output) {
  const std::regex line(R"((\[\d+/\d+\] [^:\n]+: )|(\d+ kernels: [^\n]*?), in )");
  std::vector<std::string> facts;
  for (std::sregex_iterator match(output.begin(), output.end(), line), end; match != end; ++match)
    facts.push_back((*match)[1].matched ? (*match)[1] : (*match)[2]);
  return facts;
}

TEST_F(TuneReportTest, ATerminalAndAPipeAreToldTheSame) {
  const std::string tiny = "tune " + data + "/tune_tiny.json --device cpu --cache ";
  const std::string piped = run(tiny + database, 0, environment());
  const std::string other = scratch.file("other.db");
  const test::OnTerminal shown =
      test::runOnTerminal("env -u NSA_MISS -u NSA_CACHE_DIR " + environment() + " '" NSA_PROGRAM "' " + tiny + other);
  EXPECT_EQ(shown.code, 0) << shown.text;
  const std::vector<std::string> facts = factsOf(piped);
  EXPECT_EQ(facts.size(), 12u + 1) << piped;
  EXPECT_EQ(factsOf(shown.text), facts) << shown.text;
  EXPECT_NE(shown.text.find("Database: " + other + "\r\n"), std::string::npos) << shown.text;
}

// A bench leaves nothing in the folder in which it was called.
TEST_F(TuneReportTest, ABenchWritesWhereItIsToldAndSaysWhere) {
  const std::string folder = scratch.file("here"), shape = data + "/window_64.json";
  std::filesystem::create_directory(folder);
  const auto bench = [&](const std::string &arguments) {
    const std::string command = "cd " + folder + " && env -u NSA_MISS NSA_CACHE_DIR=" + scratch.file("cache") + " '" +
                                NSA_PROGRAM "' bench " + arguments + " --device cpu >" + scratch.file("out") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << test::readFile(scratch.file("out"));
    return test::readFile(scratch.file("out"));
  };
  const std::string few = " --tokens 64 --config " + shape;
  for (const std::string &verb :
       {std::string("selection --samples 1 --warm-ups 1"), std::string("decode --samples 2 --warm-ups 1")}) {
    const std::string silent = bench(verb + few);
    EXPECT_TRUE(silent.ends_with("\nNo file was written: --results DIR keeps what was measured.\n")) << silent;
    const nlohmann::json report = nlohmann::json::parse(bench(verb + few + " --json"), nullptr, false);
    EXPECT_EQ(report["results"].size(), 1u) << report.dump();
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << verb;
  }
  const std::string told = bench("selection --samples 1 --warm-ups 1" + few + " --results kept");
  EXPECT_TRUE(told.ends_with("\nResults: kept/selection.json, and as CSV beside it\n")) << told;
  EXPECT_TRUE(std::filesystem::exists(folder + "/kept/selection.json"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/kept/selection.csv"));
}

} // namespace
} // namespace nsa::tools
