// The report for people, from JSON as a run writes it: all of it is there, and it is well-formed whatever texts hold.
#include "autotune/tuner/tuner.h"
#include "autotune/workload/tune_record.h"
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/tune/pruned_candidates.h"
#include "tests/harness/xml_check.h"
#include "tools/nsa/command/command.h"
#include "tools/nsa/tune/tune_devices.h"
#include "tools/nsa/tune/tune_report.h"

#include <gtest/gtest.h>
#include <set>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;
using test::XmlCheck;

TuneJob jobAt(int64_t length) {
  TuneJob job;
  job.head = "heads";
  job.spec.op = Operator::kNsa;
  job.spec.queryHeads = job.kernel.queryHeads = 8;
  job.spec.kvHeads = job.kernel.kvHeads = 1;
  job.spec.qkDim = job.kernel.qkDim = job.spec.vDim = job.kernel.vDim = 64;
  job.maxima = {.batch = 1, .tokensQ = length, .seqlenQ = length, .seqlenK = length};
  job.kernel.op = Operator::kWindow;
  job.role = "win";
  job.family = "window group=8";
  job.problem = job.family + " | seqlen_k=" + std::to_string(length);
  return job;
}

// The incumbent, one that is faster, one of another template, one that is wrong, one that was not compiled.
nlohmann::json tuningReport() {
  const auto candidate = [](const char *name, const char *config, const char *outcome, double ms, double ratio,
                            const char *detail) -> nlohmann::json {
    return {{"template", name},   {"config", config},          {"outcome", outcome},
            {"milliseconds", ms}, {"ratio_to_default", ratio}, {"detail", detail}};
  };
  return {{"milliseconds", 1234.0},
          {"tie", true},
          {"noise", 0.01},
          {"budget_exhausted", false},
          {"candidates",
           {candidate("attention", "key_tile=32", "measured", 2, 1, ""),
            candidate("attention", "key_tile=64", "winner", 1.5, 0.75, ""),
            candidate("row_attention", "rows=4", "measured", 3, 1.5, ""),
            candidate("attention", "key_tile=96", "rejected", 0, 0, "differs: <wrong> & \"bad\""),
            candidate("attention", "key_tile=128", "pruned", 0, 0, "not compiled")}}};
}

// A row as `nsa tune` makes it.
Json rowOf(const TuneJob &job, const std::string &device, bool isGpu) {
  Json row = jobRecord(job, device, isGpu);
  addTimedWork(job, isGpu, row["timed"]);
  return row;
}

Json record(int64_t length, const std::string &status = "tuned") {
  Json json = rowOf(jobAt(length), "cpu <test>", false);
  addReport(json, tuningReport());
  json["status"] = status;
  return json;
}

Json reportOf(Json kernels) {
  return {{"report", "nsa tune"},
          {"workload", "test"},
          {"workloads",
           {{{"name", "test"}, {"description", "a < b"}, {"counts", {{"kernels", kernels.size()}}}, {"shared", 0}}}},
          {"date", "2026-01-02"},
          {"version", "0.1"},
          {"source", "abc"},
          {"compiler", "0123456789abcdef"},
          {"processor", "a processor"},
          {"cores", 2},
          {"budget_seconds", 120.0},
          {"seconds", 33.0},
          {"interrupted", false},
          {"counts", {{"kernels", kernels.size()}, {"tuned", kernels.size()}, {"failed", 0}}},
          {"devices",
           {{{"device", "cpu <test>"},
             {"names", {"cpu"}},
             {"facts", {{"kind", "cpu"}, {"name", "a & b"}}},
             {"roofs", {{"bf16", {{"tflops", 0.3}, {"terabytes_per_second", 0.02}}}}}}}},
          {"thresholds", Json::array()},
          {"crossovers", Json::array()},
          {"kernels", std::move(kernels)}};
}

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(TuneRecord, KeepsTheDefaultTheWinnerAndTheBestOfEachTemplate) {
  const Json json = record(1024);
  EXPECT_EQ(json["default"]["config"], "key_tile=32");
  EXPECT_EQ(json["winner"]["config"], "key_tile=64");
  ASSERT_EQ(json["templates"].size(), 2u);
  EXPECT_EQ(json["templates"][0]["config"], "key_tile=64");
  EXPECT_EQ(json["templates"][1]["template"], "row_attention");
  EXPECT_EQ(json["candidates"], (Json{{"measured", 3}, {"rejected", 1}, {"failed", 0}, {"pruned", 1}}));
  EXPECT_EQ(json["tie"], true);
  EXPECT_EQ(json["timed"]["seqlen_q"], 1024);
  EXPECT_EQ(json["evidence"].size(), 4u) << "what was never tried is only counted";
}

// Of the dots whose text has a part, the places from the left.
std::set<std::string> placesOf(const std::string &svg, const std::string &part) {
  std::set<std::string> places;
  for (size_t at = svg.find("<circle "); at != std::string::npos; at = svg.find("<circle ", at + 1)) {
    const size_t end = svg.find("</circle>", at), left = svg.find("cx=\"", at) + 4;
    if (const std::string dot = svg.substr(at, end - at); dot.find(part) != std::string::npos)
      places.insert(svg.substr(left, svg.find('"', left) - left));
  }
  return places;
}

// A prompt that was timed in part stands at its own length, and its dot says how much was timed.
TEST(TunePlots, ACutPromptStandsAtTheLengthThatWasAskedFor) {
  Json kernels = Json::array();
  for (const int64_t length : {262144, 524288, 1048576}) {
    Json json = rowOf(jobAt(length), "cpu <test>", true);
    addReport(json, tuningReport());
    json["status"] = "tuned";
    kernels.push_back(std::move(json));
  }
  EXPECT_EQ(kernels[1]["cut"], "");
  EXPECT_EQ(kernels[2]["cut"], "524288 of 1048576 queries over 524288 of 1048576 keys timed");
  ASSERT_EQ(kernels[2]["timed"]["seqlen_k"], 524288);
  const TunePlots plots = tunePlots(reportOf(kernels), "cpu <test>");
  ASSERT_EQ(plots.times.size(), 1u);
  const std::string svg = plots.times.front().svg();
  const std::set<std::string> cut = placesOf(svg, "1048576 tokens");
  EXPECT_EQ(cut.size(), 1u) << svg;
  for (const char *other : {"262144 tokens", "524288 tokens"})
    EXPECT_NE(cut, placesOf(svg, other)) << svg;
  EXPECT_NE(svg.find("1048576 tokens: 1.50 ms, attention key_tile=64, 524288 of 1048576 queries over 524288 of "
                     "1048576 keys timed"),
            std::string::npos)
      << svg;
}

TEST(TuneRecord, StoredEvidenceSaysTheSame) {
  StoredChoice choice;
  choice.tuned = true;
  choice.provenance = "compiler=0123 driver=13000";
  const nlohmann::json report = tuningReport();
  for (const nlohmann::json &entry : report["candidates"])
    choice.evidence.push_back({entry["template"], entry["config"], entry["outcome"], entry["milliseconds"],
                               entry["ratio_to_default"], entry["detail"]});
  Json stored = rowOf(jobAt(1024), "cpu <test>", false);
  addStored(stored, choice);
  const Json fresh = record(1024);
  for (const char *name : {"default", "winner", "templates", "candidates", "evidence", "timed", "cut"})
    EXPECT_EQ(stored[name], fresh[name]) << name;
  EXPECT_EQ(stored["tie"], false) << "no candidate's line says that it may be as fast";
  choice.evidence[2].detail = kTied;
  addStored(stored, choice);
  EXPECT_EQ(stored["tie"], true);
  EXPECT_EQ(revisionOf(choice.provenance), "0123");
  choice.provenance = "compiler=0123 driver=13000 remade=4567";
  EXPECT_EQ(revisionOf(choice.provenance), "0123") << "whose kernels were measured";
  choice.provenance = "driver=1";
  EXPECT_EQ(revisionOf(choice.provenance), "");
}

// One row may stand for many.
TEST(TuneRecord, CountsWhatWasNeverTried) {
  TuneReport report;
  for (const char *reason : {"not compiled: beyond", "not checked", "not compiled: beyond"}) {
    CandidateReport &entry = report.candidates.emplace_back();
    entry.outcome = CandidateOutcome::kPruned;
    entry.detail = reason;
  }
  StoredChoice choice;
  choice.tuned = true;
  choice.evidence = prunedRows(report);
  choice.evidence.push_back({"attention", "key_tile=32", "winner", 1, 1, ""});
  Json stored = rowOf(jobAt(1024), "cpu <test>", false);
  addStored(stored, choice);
  EXPECT_EQ(stored["candidates"], (Json{{"measured", 1}, {"rejected", 0}, {"failed", 0}, {"pruned", 3}}));
  EXPECT_EQ(stored["evidence"].size(), 1u);
  nlohmann::json rows = nlohmann::json::array();
  for (const Measurement &row : choice.evidence)
    rows.push_back({{"outcome", row.outcome}, {"detail", row.detail}});
  EXPECT_EQ(prunedText(rows), "1 more was not checked\n2 more were not compiled: beyond\n");
}

TEST(TuneHtml, ShowsWhatWasMeasured) {
  const std::string html = tuneHtml(reportOf({record(1024), record(2048), record(4096)}));
  EXPECT_EQ(XmlCheck::problemOf(html), "");
  EXPECT_EQ(countOf(html, "<svg"), 2u) << "the roofline, and time against length";
  EXPECT_NE(html.find(">heads nsa bf16: win</text>"), std::string::npos);
  EXPECT_NE(html.find("roof 0.3 TFLOP/s"), std::string::npos);
  EXPECT_EQ(countOf(html, "<td class=\"number\">0.750</td>"), 3u);
  EXPECT_EQ(countOf(html, ">3 / 1 / 0 / 1<"), 3u);
  EXPECT_EQ(countOf(html, ">tuned, tie<"), 3u);
  EXPECT_NE(html.find("differs: &lt;wrong&gt; &amp; &quot;bad&quot;"), std::string::npos);
  EXPECT_NE(html.find("33 s of a budget of 2 min"), std::string::npos);
}

TEST(TuneRecord, SaysHowMuchWasTimedAsTheTunerAndTheStoreDo) {
  nlohmann::json report = tuningReport();
  report["cut"] = "64 of 1024 queries timed";
  Json fresh = rowOf(jobAt(1024), "cpu <test>", false);
  EXPECT_EQ(fresh["cut"], "");
  addReport(fresh, report);
  EXPECT_EQ(fresh["cut"], report["cut"]);
  StoredChoice choice;
  choice.tuned = true;
  choice.provenance = "compiler=0123 search=exhaustive timed=64_of_1024_queries remade=45";
  Json stored = rowOf(jobAt(1024), "cpu <test>", false);
  addStored(stored, choice);
  EXPECT_EQ(stored["cut"], report["cut"]);
  EXPECT_TRUE(wasExhaustive(choice));
  EXPECT_EQ(revisionOf(choice.provenance), "0123");

  fresh["status"] = "tuned";
  const std::string html = tuneHtml(reportOf({fresh, record(2048)}));
  EXPECT_EQ(countOf(html, ">64 of 1024 queries timed<"), 1u) << "beside its time";
  EXPECT_EQ(countOf(html, "ms, attention key_tile=64, 64 of 1024 queries timed<"), 2u) << "at its dots";
}

TEST(TuneHtml, TellsOfEachWorkload) {
  Json report = reportOf({record(1024)});
  EXPECT_EQ(tuneHtml(report).find("shared with others"), std::string::npos) << "of one there is nothing to tell apart";
  report["workloads"].push_back({{"name", "other"},
                                 {"description", "more"},
                                 {"counts", {{"kernels", 5}, {"tuned", 4}, {"left", 1}}},
                                 {"shared", 3}});
  const std::string html = tuneHtml(report);
  EXPECT_EQ(XmlCheck::problemOf(html), "");
  EXPECT_NE(html.find("shared with others"), std::string::npos);
  EXPECT_NE(html.find("5 kernels: 4 tuned, 1 left"), std::string::npos);
}

TEST(TuneHtml, MarksThresholds) {
  Json report = reportOf({record(1024), record(2048), record(4096)});
  const Json route = report["kernels"][0]["route"];
  ASSERT_EQ(route["name"], "window.attention_from");
  const Json threshold = {{"family", route["family"]}, {"device", "cpu <test>"},
                          {"name", route["name"]},     {"never", false},
                          {"threshold", 1500},         {"measured", 5}};
  report["thresholds"] = {threshold};
  const std::string html = tuneHtml(report);
  EXPECT_EQ(XmlCheck::problemOf(html), "");
  EXPECT_EQ(countOf(html, "class=\"mark\""), 1u);
  EXPECT_NE(html.find("<td class=\"number\">1500</td>"), std::string::npos);

  report["thresholds"][0]["never"] = true;
  const std::string never = tuneHtml(report);
  EXPECT_EQ(XmlCheck::problemOf(never), "");
  EXPECT_EQ(countOf(never, "class=\"mark\""), 0u);
  EXPECT_NE(never.find("window.attention_from: never"), std::string::npos);

  report["thresholds"][0]["device"] = "another";
  EXPECT_EQ(tuneHtml(report).find("window.attention_from: never"), std::string::npos);
}

// The role of one name is another operator's where every block is selected.
TEST(TuneHtml, NamesTheOperatorWhereARoleHasTwo) {
  Json other = record(4096);
  other["operator"] = "dense";
  const std::string html = tuneHtml(reportOf({record(1024), record(2048), other}));
  EXPECT_NE(html.find(">window: attention<"), std::string::npos);
  EXPECT_NE(html.find(">dense: attention<"), std::string::npos);
}

TEST(TuneHtml, TellsOfFailuresFirst) {
  Json failed = rowOf(jobAt(8192), "cpu <test>", false);
  failed["status"] = "failed";
  failed["error"] = "compile failed: no <such> thing";
  Json left = rowOf(jobAt(16384), "cpu <test>", false);
  left["status"] = "left";
  Json report = reportOf({record(1024), failed, left});
  report["interrupted"] = true;
  const std::string html = tuneHtml(report);
  EXPECT_EQ(XmlCheck::problemOf(html), "");
  EXPECT_NE(html.find("no &lt;such&gt; thing"), std::string::npos);
  EXPECT_LT(html.find("What did not work"), html.find("Winners"));
  EXPECT_NE(html.find("The run was interrupted"), std::string::npos);
  EXPECT_NE(html.find(">left<"), std::string::npos);
}

TEST(TuneHtml, HasNothingToDrawWhenNothingWasMeasured) {
  Json left = rowOf(jobAt(1024), "cpu <test>", false);
  left["status"] = "left";
  const std::string html = tuneHtml(reportOf({left}));
  EXPECT_EQ(XmlCheck::problemOf(html), "");
  EXPECT_EQ(html.find("<svg"), std::string::npos);
}

TEST(TuneHtml, WithoutARoofItSaysSo) {
  Json report = reportOf({record(1024), record(2048)});
  report["devices"][0]["roofs"] = Json::object();
  const std::string html = tuneHtml(report);
  EXPECT_EQ(XmlCheck::problemOf(html), "");
  EXPECT_NE(html.find("The roof of this device was not measured."), std::string::npos);
}

} // namespace
} // namespace nsa::tools
