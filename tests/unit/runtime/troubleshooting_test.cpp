// docs/troubleshooting.md against the sources: every code, and every text that begins an error of the runtime, is
// there.
#include "runtime/base/status.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <regex>
#include <string>

using namespace nsa;

namespace {

constexpr size_t kShortest = 12; // what is shorter begins with a name or a number

std::string read(const std::filesystem::path &path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

const std::string &page() {
  static const std::string text = read(NSA_SOURCE_DIR "/docs/troubleshooting.md");
  return text;
}

TEST(Troubleshooting, EveryCodeHasARow) {
  for (int code = 1; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    const std::string row = "| " + std::string(errorCodeName(static_cast<ErrorCode>(code))) + " | `NSA_";
    EXPECT_NE(page().find(row), std::string::npos) << row;
  }
}

TEST(Troubleshooting, EveryErrorOfTheRuntimeIsMentioned) {
  // The first literal of a message: of Status::error, or of an ErrorInfo's.
  const std::regex messages(
      R"re((?:Status::error\(\s*[^;"]*?,|info\.message\s*=)\s*(?:std::string\()?"((?:[^"\\]|\\.)+)")re");
  size_t found = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(NSA_SOURCE_DIR "/runtime")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h")
      continue;
    const std::string source = read(entry.path());
    for (std::sregex_iterator match(source.begin(), source.end(), messages), end; match != end; ++match) {
      std::string text = (*match)[1];
      text.erase(text.find_last_not_of(" '") + 1);
      if (text.size() < kShortest)
        continue;
      ++found;
      EXPECT_NE(page().find(text), std::string::npos) << entry.path() << ": " << text;
    }
  }
  EXPECT_GE(found, 20u) << "the pattern finds the sources' errors";
}

TEST(Troubleshooting, EveryReasonAgainstACacheFileIsMentioned) {
  const std::string source = read(NSA_SOURCE_DIR "/cache/database/database_file.cpp");
  const std::regex reasons(R"re(case FileVerdict::\w+:\s*return "((?:[^"\\(]|\\.)+))re");
  size_t found = 0;
  for (std::sregex_iterator match(source.begin(), source.end(), reasons), end; match != end; ++match, ++found) {
    std::string text = (*match)[1];
    text.erase(text.find_last_not_of(' ') + 1);
    EXPECT_NE(page().find(text), std::string::npos) << text;
  }
  EXPECT_GE(found, 6u);
}

TEST(Troubleshooting, EveryVariableIsDocumented) {
  const std::regex variables(R"re("(NSA_[A-Z_]+)")re");
  const std::string options = read(NSA_SOURCE_DIR "/runtime/engine/options/options.cpp");
  const std::string header = read(NSA_SOURCE_DIR "/runtime/include/nsa/nsa.h");
  size_t found = 0;
  for (std::sregex_iterator match(options.begin(), options.end(), variables), end; match != end; ++match, ++found)
    EXPECT_NE(header.find((*match)[1]), std::string::npos) << (*match)[1];
  EXPECT_GE(found, 15u);
}

} // namespace
