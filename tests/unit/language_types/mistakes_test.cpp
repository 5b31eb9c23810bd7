// Every mistake that a program can make after it was read, with the whole of its message. mistakes.txt has the bodies
// and, behind a line `---`, what is said about them.
#include "tests/unit/language/mistake_cases.h"
#include "tests/unit/language_types/language_program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

namespace nsa::language {
namespace {

// Stands in front of each body.
constexpr std::string_view kMistakesHeader = R"(kernel x
grid    kv_head = kv_heads, 1, 1
axis    row = 16, key = 32, d = 64, e = 64, c = 32, branch = 3 outer
tensor  (q, out)[entry, time, head; d], k[entry, time, head; d], v[entry, time, head; e]
tensor  (lse, lse2)[entry, time, head]: f32, reads[entry, time, head]: i32 optional, w2[hidden; y: 128], places[n]: i32
record  Pair { first, second: i32 }
record  Triple { one, two, three: i32 }
fn bad(x) { return max(x) over key }
fn unclear[from, to](x: [from, to]) { return x }
fn endless(x) { return endless(x) }
)";

TEST(LanguageMistakes, HaveTheirMessages) {
  const std::string path = std::string(NSA_SOURCE_DIR) + "/tests/unit/language_types/mistakes.txt";
  const std::vector<Mistake> mistakes = readMistakes(path);
  ASSERT_GT(mistakes.size(), 130u);
  std::string found;
  for (const Mistake &mistake : mistakes) {
    LanguageProgram program(std::string(kMistakesHeader) + mistake.program);
    program.type();
    EXPECT_EQ(program.messages(), mistake.messages) << mistake.title;
    found += "=== " + mistake.title + "\n" + mistake.program + "---\n" + program.messages();
  }
  // To write the messages anew after a change of their texts, and to review them as a difference.
  if (const char *output = std::getenv("NSA_WRITE_MISTAKES"))
    std::ofstream(output) << found;
}

} // namespace
} // namespace nsa::language
