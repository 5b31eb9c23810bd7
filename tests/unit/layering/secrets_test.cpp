// A secret key that is committed has signed its last pack: everyone who reads the repository may sign with it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {
namespace {

constexpr std::string_view kSecretName = "nsa-secret-key-1 "; // as cache/database/signing_key.cpp writes it
constexpr size_t kSecretDigits = 64;

bool holdsSecretKey(std::string_view text) {
  for (size_t at = text.find(kSecretName); at != std::string_view::npos; at = text.find(kSecretName, at + 1)) {
    const std::string_view digits = text.substr(at + kSecretName.size(), kSecretDigits);
    if (digits.size() == kSecretDigits && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos)
      return true;
  }
  return false;
}

// By name, with '/' between folders; none where this is no checkout of git's.
std::vector<std::string> trackedFiles() {
  const std::unique_ptr<FILE, int (*)(FILE *)> git(popen("git -C '" NSA_SOURCE_DIR "' ls-files -z 2>/dev/null", "r"),
                                                   &pclose);
  std::vector<std::string> names;
  std::string name;
  for (int c = git ? std::fgetc(git.get()) : EOF; c != EOF; c = std::fgetc(git.get())) {
    if (c != '\0') {
      name += static_cast<char>(c);
      continue;
    }
    names.push_back(std::move(name));
    name.clear();
  }
  return names;
}

TEST(Secrets, AKeyIsToldFromAWordAboutIt) {
  const std::string key = std::string(kSecretName) + std::string(kSecretDigits, '0');
  EXPECT_TRUE(holdsSecretKey(key));
  EXPECT_TRUE(holdsSecretKey(std::string(kSecretName) + "\n" + key + "\nmore"));
  EXPECT_FALSE(holdsSecretKey(key.substr(0, key.size() - 1)));
  EXPECT_FALSE(holdsSecretKey(std::string(kSecretName) + std::string(kSecretDigits, 'x')));
}

TEST(Secrets, NoTrackedFileHoldsASecretKey) {
  const std::vector<std::string> names = trackedFiles();
  if (names.empty())
    GTEST_SKIP() << "this is no checkout of git's, so no file is tracked";
  EXPECT_TRUE(std::ranges::find(names, "cache/database/signing_key.cpp") != names.end());
  for (const std::string &name : names) {
    std::ifstream file(std::filesystem::path(NSA_SOURCE_DIR) / name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_FALSE(holdsSecretKey(text)) << name << ": remove it, and make a new pair with `nsa cache keygen`";
  }
}

} // namespace
} // namespace nsa
