#include "runtime/base/digest.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

// RFC 7693's function with a 32-byte result; the values come from `b2sum -l 256`.
TEST(Digest, KnownAnswers) {
  EXPECT_EQ(Digest().finishHex(), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(Digest().update("abc").finishHex(), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST(Digest, UpdatesConcatenateAndFieldsDoNot) {
  EXPECT_EQ(Digest().update("ab").update("c").finishHex(), Digest().update("abc").finishHex());
  EXPECT_NE(Digest().field("ab").field("c").finishHex(), Digest().field("a").field("bc").finishHex());
  EXPECT_NE(Digest().field("").finishHex(), Digest().finishHex());
}

TEST(Digest, LongInput) {
  std::string text(1 << 20, 'x');
  Digest pieces;
  for (size_t at = 0; at < text.size(); at += 1000)
    pieces.update(std::string_view(text).substr(at, 1000));
  EXPECT_EQ(pieces.finishHex(), Digest().update(text).finishHex());
}

} // namespace
} // namespace nsa
