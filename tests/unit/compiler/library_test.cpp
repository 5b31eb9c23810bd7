// What the libraries of tile programs say of the runtime is what the runtime says.
#include "compiler/driver/TileFiles.h"
#include "runtime/base/device_status.h"
#include "runtime/base/sequence_fields.h"

#include <gtest/gtest.h>

using namespace nsa;

namespace {

class TileLibraries : public testing::Test {
protected:
  template <typename Item, typename Visit> void forEach(std::string_view library, Visit visit) const {
    const language::SyntaxTree *tree = files.library(library);
    ASSERT_NE(tree, nullptr) << library;
    for (const language::Item *item : tree->items)
      if (const auto *found = language::asIf<Item>(item))
        visit(*found);
  }

  void SetUp() override {
    const auto programs = files.readTemplates();
    ASSERT_TRUE(programs) << programs.status().toString();
  }

  TileFiles files;
};

TEST_F(TileLibraries, HaveTheCodesOfTheStatusWord) {
  int64_t codes = 0;
  forEach<language::CodeItem>("status", [&](const language::CodeItem &item) {
    for (const language::Binding &code : item.bindings) {
      int64_t number = 0;
      EXPECT_TRUE(findDeviceStatusCode(code.name.text, number)) << code.name.text;
      EXPECT_EQ(language::as<language::NumberExpr>(*code.value).integer, number) << code.name.text;
      ++codes;
    }
  });
  EXPECT_EQ(codes, static_cast<int64_t>(DeviceStatusCode::kWrongIndex)) << "each code has a name";
}

TEST_F(TileLibraries, HaveTheFieldsOfTheTableInTheirOrder) {
  forEach<language::RecordItem>("sequence", [&](const language::RecordItem &item) {
    if (item.name.text != "Sequence")
      return;
    ASSERT_EQ(item.fields.size(), static_cast<size_t>(kSequenceFields));
    for (size_t i = 0; i < item.fields.size(); ++i)
      EXPECT_EQ(item.fields[i].name.text, kSequenceFieldNames[i]);
  });
}

TEST_F(TileLibraries, HaveTheGreatestOffsetOfKeys) {
  bool isThere = false;
  forEach<language::ConstItem>("key_offset", [&](const language::ConstItem &item) {
    isThere = item.bindings[0].name.text == "most_k_offset";
    EXPECT_EQ(language::as<language::NumberExpr>(*item.bindings[0].value).integer, kMostKOffset);
  });
  EXPECT_TRUE(isThere);
}

} // namespace
