// Help does not depend on where the heap has put options.
#include "tools/nsa/command/parser_texts.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace nsa::tools {
namespace {

// The line of `--main`, which needs or excludes all others; they are made in the order of `names`.
std::string helpOf(const std::vector<std::string> &names, bool excludes) {
  CLI::App app;
  app.formatter(std::make_shared<OrderedHelp>());
  CLI::Option *main = app.add_flag("--main")->description("What it is for");
  for (const std::string &name : names) {
    CLI::Option *other = app.add_flag(name);
    excludes ? main->excludes(other) : main->needs(other);
  }
  const std::string text = app.help();
  const size_t begin = text.find("--main");
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(OrderedHelp, OtherOptionsStandByName) {
  // One order of making them is that of the heap, the other is not.
  const std::vector<std::string> names = {"--alpha", "--be", "--gamma", "--longer-delta"};
  const std::vector<std::string> reversed(names.rbegin(), names.rend());
  for (const std::vector<std::string> &order : {names, reversed}) {
    EXPECT_EQ(helpOf(order, true).find("--main Excludes: --alpha --be --gamma --longer-delta"), 0u)
        << helpOf(order, true);
    EXPECT_EQ(helpOf(order, false).find("--main Needs: --alpha --be --gamma --longer-delta"), 0u)
        << helpOf(order, false);
  }
}

TEST(OrderedHelp, BothKindsAndTheDescriptionStay) {
  CLI::App app;
  app.formatter(std::make_shared<OrderedHelp>());
  CLI::Option *b = app.add_flag("--b"), *a = app.add_flag("--a"), *d = app.add_flag("--d"), *c = app.add_flag("--c");
  app.add_flag("--main")->description("What it is for")->needs(b)->needs(a)->excludes(d)->excludes(c);
  EXPECT_NE(app.help().find("--main Needs: --a --b Excludes: --c --d"), std::string::npos) << app.help();
  EXPECT_NE(app.help().find("What it is for"), std::string::npos) << app.help();
  app.get_formatter()->label("Excludes", "Not with");
  EXPECT_NE(app.help().find("Not with: --c --d"), std::string::npos) << app.help();
}

} // namespace
} // namespace nsa::tools
