// Pages whose measured numbers come from records: in a repository of the test's own, with commits of its own.
#include "tests/harness/scratch.h"
#include "tools/render_tables/page.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace nsa::tables {
namespace {

class RecordPage : public ::testing::Test {
protected:
  void SetUp() override {
    git("init -q");
    first = commit("runtime/a");
  }

  void git(const std::string &arguments) {
    const std::string command = "git -C '" + folder.path() +
                                "' -c user.name=t -c user.email=t@t -c commit.gpgsign=false " + arguments + " > '" +
                                folder.path() + "/.out'";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  std::string commit(const std::string &file) {
    folder.write(file, std::to_string(++commits));
    git("add " + file);
    git("commit -q -m change");
    git("rev-parse --short=12 HEAD");
    return folder.read(".out").substr(0, 12);
  }
  void record(const std::string &source, const std::string &results = R"([{"what": "a", "n": 1, "ms": 1.5}])") {
    folder.write("bench/results/one/launch.json", R"({"machine": {"source": ")" + source +
                                                      R"(", "date": "2026-01-02", "processor": "P",
                     "device": {"kind": "cpu", "threads": "2"}},
                     "table": [{"title": "what", "field": "what"}, {"title": "ms", "field": "ms"}],
                     "results": )" + results + "}");
  }
  void pack(const std::string &sources) { folder.write("cache/packs/p.json", R"({"choices": 7)" + sources + "}"); }
  Result<std::string> render(const std::string &page, Ages ages = Ages::kCounted) {
    Records records(folder.path());
    NSA_ASSIGN_OR_RETURN(RenderedPage rendered, renderPage(page, records, ages));
    figures = std::move(rendered.figures);
    return std::move(rendered.text);
  }
  std::string errorOf(const std::string &page) {
    const Result<std::string> rendered = render(page);
    return rendered ? "none: " + *rendered : rendered.status().toString();
  }

  test::Scratch folder;
  std::map<std::string, std::string> figures; // of the last rendered page
  std::string first;
  int commits = 0;
};

constexpr const char *kPage = "Before.\n<!-- table:launch -->\n<!-- end -->\nAfter.\n";

TEST_F(RecordPage, ATableShowsItsCommitDateAndAge) {
  record(first);
  const Result<std::string> page = render(kPage);
  ASSERT_TRUE(page) << page.status().toString();
  EXPECT_EQ(*page, "Before.\n<!-- table:launch -->\nP, 2 threads, source " + first +
                       ", 2026-01-02, 0 commits old\n\n| what | ms |\n|---|---|\n| a | 1.50 |\n<!-- end -->\nAfter.\n");
  EXPECT_EQ(*render(*page, Ages::kKept), *page);
}

TEST_F(RecordPage, CommitsToTheMeasuredCodeAlonePassForAge) {
  record(first);
  commit("docs/a");
  commit("bench/results/one/other");
  EXPECT_NE(render(kPage)->find(", 0 commits old\n"), std::string::npos);
  commit("templates/a");
  EXPECT_NE(render(kPage)->find(", 1 commit old\n"), std::string::npos);
}

TEST_F(RecordPage, AnAgeIsKeptUntilItMisleads) {
  record(first);
  const std::string page = *render(kPage);
  for (int i = 0; i < 64; ++i)
    commit("cache/a");
  EXPECT_EQ(*render(page, Ages::kKept), page);
  EXPECT_NE(render(page)->find(", 64 commits old\n"), std::string::npos) << "rendering counts anew";
  commit("cache/a");
  EXPECT_NE(render(page, Ages::kKept)->find(", 65 commits old\n"), std::string::npos);
}

TEST_F(RecordPage, ARecordOfAChangedTreeOrAnotherHistoryIsRefused) {
  record(first + "-dirty");
  EXPECT_NE(errorOf(kPage).find("launch.json was measured in a tree with changes that are not committed"),
            std::string::npos)
      << errorOf(kPage);
  record("0123456789ab");
  EXPECT_NE(errorOf(kPage).find("was measured at 0123456789ab, which HEAD does not descend from"), std::string::npos)
      << errorOf(kPage);
  record("");
  EXPECT_NE(errorOf(kPage).find("has no source"), std::string::npos) << errorOf(kPage);
}

constexpr const char *kPackPage = "Of <!-- record:packs/p -->?<!-- end -->.";

std::string sourceOfPack(const std::string &commit, const std::string &what) {
  return R"({"commit": ")" + commit + R"(", "date": "2026-01-02", "what": ")" + what + R"("})";
}

TEST_F(RecordPage, APackShowsEachOfItsCommitsDatesAndAges) {
  const std::string second = commit("compiler/a");
  commit("compiler/b");
  pack(R"(, "sources": [)" + sourceOfPack(first, "tuned") + ", " + sourceOfPack(second, "compiled") + "]");
  const Result<std::string> page = render(kPackPage);
  ASSERT_TRUE(page) << page.status().toString();
  EXPECT_EQ(*page, "Of <!-- record:packs/p -->tuned: source " + first +
                       ", 2026-01-02, 2 commits old; compiled: source " + second +
                       ", 2026-01-02, 1 commit old<!-- end -->.");
  commit("compiler/c");
  EXPECT_EQ(*render(*page, Ages::kKept), *page);
  Records records(folder.path());
  EXPECT_EQ(records.find(), (std::vector<std::string>{"packs/p"}));
  EXPECT_EQ(records.age(**records.read("packs/p")), 3) << "the oldest";
}

TEST_F(RecordPage, APackOfCommitsThatCannotBeReadIsRefused) {
  const auto errorOfSecond = [&](const std::string &second) {
    pack(R"(, "sources": [)" + sourceOfPack(first, "tuned") + ", " + second + "]");
    return errorOf("<!-- value:packs/p /choices -->?<!-- end -->");
  };
  EXPECT_NE(
      errorOfSecond(sourceOfPack("0123456789ab", "compiled")).find("was measured at 0123456789ab, which HEAD does"),
      std::string::npos);
  EXPECT_NE(errorOfSecond(sourceOfPack(first + "-dirty", "compiled")).find("changes that are not committed"),
            std::string::npos);
  EXPECT_NE(errorOfSecond(sourceOfPack(first + " and others", "compiled")).find("must be one commit"),
            std::string::npos);
  EXPECT_NE(errorOfSecond(sourceOfPack(first, "")).find("what = ''"), std::string::npos);
  EXPECT_NE(errorOfSecond("7").find("has no source"), std::string::npos);
  pack(R"(, "sources": [])");
  EXPECT_NE(errorOf(kPackPage).find("an empty list"), std::string::npos);
  pack(R"(, "source": ")" + first + R"(")");
  EXPECT_NE(errorOf(kPackPage).find("has no sources"), std::string::npos) << errorOf(kPackPage);
}

std::string peersRecord(const std::string &sources) {
  return R"({"machine": {"date": "2026-01", "processor": "P", "device": {"kind": "cpu", "threads": "2"}},
             "sources": [)" +
         sources + R"(], "table": [{"title": "ms", "field": "median_ms"}], "results": [{"median_ms": 2.5}]})";
}

// Its commit is of another history, which is not looked up; everything else must be said of it as of a pack.
TEST_F(RecordPage, ARecordOfAnotherProjectsProgramSaysItsRepositoryAndHasNoAge) {
  const std::string commit = "0123456789abcdef";
  const auto source = [](const std::string &of, const std::string &what) {
    return R"({"repository": "one/two", "commit": ")" + of + R"(", "date": "2025-01-02", "what": ")" + what + R"("})";
  };
  const std::string name = "bench/results/one/peers.json", marker = "<!-- table:one/peers -->\n<!-- end -->";
  folder.write(name, peersRecord(source(commit, "peer")));
  const Result<std::string> page = render(marker);
  ASSERT_TRUE(page) << page.status().toString();
  EXPECT_NE(page->find("P, 2 threads, 2026-01, peer: one/two 0123456789ab, 2025-01-02\n\n| ms |"), std::string::npos)
      << *page;
  Records records(folder.path());
  EXPECT_EQ(records.age(**records.read("one/peers")), std::nullopt);
  folder.write(name, peersRecord(source(commit, "")));
  EXPECT_NE(errorOf(marker).find("what = ''"), std::string::npos);
  folder.write(name, peersRecord(source("main", "peer")));
  EXPECT_NE(errorOf(marker).find("must be one commit"), std::string::npos);
  folder.write(name, peersRecord(R"({"commit": "0123456789ab", "date": "2025-01-02", "what": "ours"})"));
  EXPECT_NE(errorOf(marker).find("which HEAD does not descend from"), std::string::npos);
}

// A release without git, whose records belong to the commit that it was made from.
TEST_F(RecordPage, WithoutAHistoryTheAgeThatStandsInThePageStays) {
  record(first);
  const std::string page = *render(kPage);
  std::filesystem::remove_all(folder.path() + "/.git");
  setenv("GIT_CEILING_DIRECTORIES", std::filesystem::path(folder.path()).parent_path().c_str(), 1);
  EXPECT_EQ(*render(page, Ages::kKept), page);
  EXPECT_EQ(render(kPage)->find("old"), std::string::npos);
  unsetenv("GIT_CEILING_DIRECTORIES");
}

TEST_F(RecordPage, AValueIsThatOfTheOneResultItNames) {
  record(first, R"([{"what": "x, y", "n": 1, "ms": 1234.5}, {"what": "x, y", "n": 2, "ms": 0.25}])");
  const auto value = [](const std::string &text) { return "It took <!-- value:" + text + " -->?<!-- end --> ms."; };
  const std::string page = value("one/launch ms what=x, y & n=2");
  EXPECT_EQ(*render(page), "It took <!-- value:one/launch ms what=x, y & n=2 -->0.250<!-- end --> ms.");
  EXPECT_NE(render(value("one/launch /results/0/ms"))->find(">1234<"), std::string::npos);
  EXPECT_NE(render(value("one/launch table.title field=ms"))->find(">ms<"), std::string::npos);
  EXPECT_NE(errorOf(value("one/launch none.title field=ms")).find("the file has no none"), std::string::npos);
  EXPECT_NE(errorOf(value("one/launch ms what=x, y")).find("more than one of results fulfils"), std::string::npos);
  EXPECT_NE(errorOf(value("one/launch ms what=x")).find("none of results fulfils"), std::string::npos);
  EXPECT_NE(errorOf(value("one/launch us n=2")).find("it has no us"), std::string::npos);
  EXPECT_NE(errorOf(value("one/launch /none")).find("the file has no /none"), std::string::npos);
  EXPECT_NE(errorOf(value("one/none ms n=2")).find("none.json cannot be read"), std::string::npos);
}

TEST_F(RecordPage, AFigureIsAFileBesideThePage) {
  record(first, R"([{"n": 100, "ms": 1.5}, {"n": 200, "ms": 0.5}, {"n": 300}])");
  const std::string page = "<!-- figure:one/launch -->\n<!-- end -->";
  EXPECT_NE(errorOf(page).find("`figure:one/launch`: one/launch.json is no result of a program that has a figure"),
            std::string::npos);
  EXPECT_NE(errorOf("<!-- figure:one/none -->\n<!-- end -->").find("none.json cannot be read"), std::string::npos);
  std::string text = folder.read("bench/results/one/launch.json");
  text.insert(1, R"("figure": {"title": "Falls & falls", "x": {"title": "runs", "field": "n"}, "y": {"title": "ms"},
                     "series": [{"name": "measured", "field": "ms"}, {"name": "no field", "field": "us"}],
                     "guides": [{"name": "a bound", "value": 3}]}, )");
  folder.write("bench/results/one/launch.json", text);
  const Result<std::string> rendered = render(page);
  ASSERT_TRUE(rendered) << rendered.status().toString();
  EXPECT_EQ(*rendered, "<!-- figure:one/launch -->\nP, 2 threads, source " + first +
                           ", 2026-01-02, 0 commits old\n\n![Falls & falls](figures/one-launch.svg)\n<!-- end -->");
  ASSERT_EQ(figures.size(), 1U);
  const std::string &figure = figures["figures/one-launch.svg"];
  for (const char *part : {">Falls &amp; falls<", ">runs<", ">ms<", "<title>100: 1.50</title>",
                           "<title>200: 0.500</title>", ">measured<", ">a bound<", "class=\"guide\""})
    EXPECT_NE(figure.find(part), std::string::npos) << part << " in " << figure;
  EXPECT_EQ(figure.find("300: "), std::string::npos) << "a result without the field has no point";
  EXPECT_EQ(figure.find(">no field<"), std::string::npos);
  EXPECT_EQ(*render(*rendered, Ages::kKept), *rendered);
}

TEST_F(RecordPage, ABrokenMarkerIsNamed) {
  record(first);
  EXPECT_NE(errorOf("<!-- table:launch -->\n").find("`table:launch`: has no `<!-- end -->`"), std::string::npos)
      << errorOf("<!-- table:launch -->\n");
  EXPECT_NE(errorOf("<!-- table:nothing -->\n<!-- end -->").find("no folder of bench/results holds a nothing.json"),
            std::string::npos);
  EXPECT_NE(render("A <!-- record:one/launch --><!-- end -->.")->find("2 threads, source " + first), std::string::npos);
}

TEST_F(RecordPage, ASummaryNamesTheRecordThatItLacks) {
  const std::string page = "<!-- summary:one -->\n<!-- end -->\n";
  const std::string head = R"({"machine": {"source": ")" + first + R"(", "date": "2026-01-02"}, "results": )";
  folder.write("bench/results/one/prefill.json",
               head + R"([{"op": "nsa", "heads": "h", "tokens": 64, "median_ms": 1.5}]})");
  for (const char *name : {"one_sequence", "batches"})
    folder.write("bench/results/one/decode_step/" + std::string(name) + ".json", head + "[]}");
  folder.write("bench/results/one/startup.json", head + "[]}");
  EXPECT_NE(errorOf(page).find("peers.json cannot be read"), std::string::npos) << errorOf(page);
  folder.write("bench/results/one/peers.json", head.substr(0, head.rfind(",")) + "}");
  EXPECT_NE(errorOf(page).find("`summary:one`: one/peers.json has no results"), std::string::npos) << errorOf(page);
  folder.write("bench/results/one/peers.json", head + "[]}");
  const Result<std::string> rendered = render(page);
  ASSERT_TRUE(rendered) << rendered.status().toString();
  EXPECT_NE(rendered->find("| 64 | 1.50 | - | - | source " + first + ", 2026-01-02, 0 commits old |"),
            std::string::npos)
      << *rendered;
  commit("runtime/b");
  EXPECT_EQ(*render(*rendered, Ages::kKept), *rendered) << "an age is kept here as in a table's first line";
}

TEST(TablesWithoutSource, AreFoundByTheirNumbers) {
  const std::string typed = "| a | b |\n|---|---|\n| x | 3.5 ms |\n\n";
  EXPECT_EQ(tablesWithoutSource("Text.\n\n" + typed + "Text.\n"), std::vector<int>{3});
  EXPECT_EQ(tablesWithoutSource(typed + typed), (std::vector<int>{1, 5}));
  EXPECT_EQ(tablesWithoutSource("| a, ms |\n|---|\n| 3 |"), std::vector<int>{1});
  EXPECT_EQ(tablesWithoutSource("| a |\n|---|\n| 71.6 |\n"), std::vector<int>{1});
  EXPECT_TRUE(tablesWithoutSource("| a |\n|---|\n| `NSA_X=3 ms`, 4 rows |\n").empty());
  EXPECT_TRUE(tablesWithoutSource("<!-- table:x -->\n" + typed + "<!-- end -->\n").empty());
  EXPECT_TRUE(tablesWithoutSource("<!-- summary:x -->\n" + typed + "<!-- end -->\n").empty());
  EXPECT_TRUE(tablesWithoutSource("| <!-- value:x y -->3<!-- end --> ms |\n").empty());
  EXPECT_TRUE(tablesWithoutSource(typed + "*Predicted: before anything ran.*\n").empty());
  EXPECT_TRUE(tablesWithoutSource(typed + "*Not recorded in a file: H200, 2026-01-02, commit 0123456.*\n").empty());
  EXPECT_EQ(tablesWithoutSource(typed + "*Not recorded in a file: H200, last year.*\n"), std::vector<int>{1});
}

} // namespace
} // namespace nsa::tables
