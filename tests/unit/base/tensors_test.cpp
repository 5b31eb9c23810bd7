// The lists of tensors and of kernels' arguments: names are unique, docs/operators.md lists them, and the sets and
// arrays over them have room for more than 64 names.
#include "runtime/base/sparse_array.h"
#include "runtime/model/tensors.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace nsa;

namespace {

TEST(Tensors, EachHasItsName) {
  std::set<std::string_view> names;
  for (int i = 0; i < kTensorNames; ++i)
    EXPECT_TRUE(names.insert(tensorName(static_cast<TensorName>(i))).second) << i;
  EXPECT_EQ(tensorName(TensorName::kKWin), "k_win");
  EXPECT_EQ(tensorName(TensorName::kCacheSeqlens), "cache_seqlens");
  names.clear();
  for (int i = 0; i < kViews; ++i)
    EXPECT_TRUE(names.insert(viewRule(static_cast<View>(i)).name).second) << i;
  for (int i = 0; i < kScalars; ++i)
    EXPECT_TRUE(names.insert(scalarRule(static_cast<Scalar>(i)).name).second) << i;
  EXPECT_EQ(viewRule(View::kChoiceRows).name, "choice_rows");
  EXPECT_EQ(scalarRule(Scalar::kScaleLog2).type, ScalarType::kF32);
}

// The names of the page stand in the first cells of the tables of its section `Arguments`.
TEST(Tensors, ThePageListsEachArgument) {
  std::ifstream file(NSA_SOURCE_DIR "/docs/operators.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t begin = page.find("\n## Arguments\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  const std::regex firstCell(R"re(\n\|([^|]*)\|)re"), name("`([^`]*)`");
  std::set<std::string> listed;
  for (std::sregex_iterator row(section.begin(), section.end(), firstCell), end; row != end; ++row) {
    const std::string cell = (*row)[1];
    for (std::sregex_iterator match(cell.begin(), cell.end(), name); match != end; ++match)
      EXPECT_TRUE(listed.insert((*match)[1]).second) << (*match)[1] << " stands twice";
  }
  std::set<std::string> names;
  for (int i = 0; i < kViews; ++i)
    names.emplace(viewRule(static_cast<View>(i)).name);
  for (int i = 0; i < kScalars; ++i)
    names.emplace(scalarRule(static_cast<Scalar>(i)).name);
  for (const std::string &argument : names)
    EXPECT_TRUE(listed.contains(argument)) << "docs/operators.md lacks " << argument;
  for (const std::string &argument : listed)
    EXPECT_TRUE(names.contains(argument)) << "no kernel takes " << argument;
}

TEST(Tensors, HaveDimensions) {
  const TensorRule &weights = tensorRule(TensorName::kWK);
  EXPECT_EQ(weights.lead, Lead::kNone);
  EXPECT_TRUE(weights.contiguous);
  ASSERT_EQ(weights.axisCount, 3);
  EXPECT_EQ(weights.axes, (std::array{Axis::kCmpBlock, Axis::kQkDim, Axis::kQkDim}));
  EXPECT_EQ(axisSource(Axis::kBlockV), "cmp_block * v_dim");
  const TensorRule &lse = tensorRule(TensorName::kLse);
  EXPECT_EQ(lse.role, TensorRole::kStatistics);
  EXPECT_FALSE(lse.contiguous);
  EXPECT_EQ(lse.axisCount, 1);
  EXPECT_EQ(tensorRule(TensorName::kKCompCache).role, TensorRole::kKeyValue);
  EXPECT_EQ(tensorRule(TensorName::kBlockTable).axisCount, 0);
}

constexpr size_t kMany = 130;

TEST(SparseArray, HoldsMoreThan64Items) {
  SparseArray<int, kMany> items;
  const std::vector<size_t> present = {0, 63, 64, 81, 128, 129};
  for (const size_t i : present)
    items[i] = static_cast<int>(i) + 1;
  const SparseArray<int, kMany> copy = items;
  items[81] = 0;
  for (size_t i = 0; i < kMany; ++i) {
    const bool isPresent = std::find(present.begin(), present.end(), i) != present.end();
    ASSERT_EQ(copy.find(i) != nullptr, isPresent) << i;
    if (isPresent)
      EXPECT_EQ(*copy.find(i), static_cast<int>(i) + 1);
  }
  std::vector<size_t> visited;
  copy.indices().forEach([&](size_t i) { visited.push_back(i); });
  EXPECT_EQ(visited, present);
}

TEST(IndexSet, FindsWhatAnotherLacks) {
  IndexSet<kMany> own, other;
  EXPECT_EQ(own.firstNotIn(other), std::nullopt);
  for (const size_t i : {5, 70, 129})
    own.add(i);
  EXPECT_EQ(own.firstNotIn(other), 5u);
  other.add(5);
  EXPECT_EQ(own.firstNotIn(other), 70u);
  other.add(70);
  EXPECT_EQ(own.firstNotIn(other), 129u);
  other.add(129);
  other.add(1);
  EXPECT_EQ(own.firstNotIn(other), std::nullopt);
}

} // namespace
