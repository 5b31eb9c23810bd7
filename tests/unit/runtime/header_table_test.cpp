// The table of shapes in names.h: each tensor begins a row of it, or follows a tensor that begins one. And the names of
// a run's parts in nsa.h.
#include "runtime/engine/graph/graph.h"
#include "tests/harness/scratch.h"

#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>

namespace nsa {
namespace {

// "K_RAW, V_RAW               [batch" has the names K_RAW and V_RAW.
std::set<std::string> namesOfRow(const std::string &row) {
  std::set<std::string> names;
  size_t begin = 0;
  for (;;) {
    const size_t end = row.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", begin);
    if (end == begin)
      return {}; // prose, or the continuation of a row
    names.insert(row.substr(begin, end - begin));
    if (end == std::string::npos || row[end] == ' ')
      return names;
    if (row.compare(end, 2, ", ") != 0)
      return {};
    begin = end + 2;
  }
}

TEST(HeaderTable, EachTensorHasItsRow) {
  std::set<std::string> rows;
  std::istringstream header(test::readFile(NSA_SOURCE_DIR "/runtime/include/nsa/names.h"));
  const std::string indent = " *   ";
  for (std::string line; std::getline(header, line);) {
    if (line.starts_with(indent))
      rows.merge(namesOfRow(line.substr(indent.size())));
  }
  const std::string prefix = "NSA_";
  for (const std::string constant : {
#define NSA_TENSOR(tensor, constant, ...) #constant,
#include "runtime/model/tensors.def"
       })
    EXPECT_TRUE(rows.contains(constant.substr(prefix.size()))) << constant;
}

// The comment of nsa_part_time.name.
TEST(HeaderTable, EachPartOfARunHasItsName) {
  std::string header = test::readFile(NSA_SOURCE_DIR "/runtime/include/nsa/nsa.h");
  header.erase(0, header.find("typedef struct nsa_part_time"));
  const size_t begin = header.find("/*");
  std::istringstream comment(header.substr(begin, header.find("*/") - begin));
  std::set<std::string> words;
  for (std::string word; comment >> word;)
    words.insert(word.substr(0, word.find_first_of(",;")));
  for (size_t role = 0; role < static_cast<size_t>(Role::kMain); ++role) {
    const std::string name(roleName(static_cast<Role>(role), Operator::kNsaBwd));
    EXPECT_TRUE(words.contains(name)) << name;
  }
}

} // namespace
} // namespace nsa
