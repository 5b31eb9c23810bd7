// The layout of texts: every rule of Format.h.
#include "compiler/language/syntax/Format.h"

#include <gtest/gtest.h>

#include <string>

namespace nsa::language {
namespace {

// The layout of what stands behind the kernel's line, and it has the same layout.
std::string laidOut(const std::string &text) {
  const SourceFile file("x.tile", "kernel x\n" + text);
  Diagnostics diagnostics;
  const auto once = format(file, diagnostics);
  EXPECT_TRUE(once) << diagnostics.toString();
  if (!once)
    return "";
  const SourceFile again("x.tile", *once);
  EXPECT_EQ(format(again, diagnostics), *once);
  return once->substr(sizeof("kernel x\n") - 1);
}

TEST(Format, DeclarationsBeginInAColumn) {
  EXPECT_EQ(laidOut("targets   cpu\nfixed a,b\nconst c=1\nchoice d=1|2\nrequire   e\ncost 0\ngrid "
                    "f=1,(g=1,h=2),1\naxis i=2 outer\n"
                    "threads 32,b\ntensor (j,k)[ l ; m:n ] : f32   optional paged( o )\nscalar p,q:i32\n"),
            "targets cpu\nfixed   a, b\nconst   c = 1\nchoice  d = 1 | 2\nrequire e\ncost    0\n"
            "grid    f = 1, (g = 1, h = 2), 1\naxis    i = 2 outer\nthreads 32, b\n"
            "tensor  (j, k)[l; m: n]: f32 optional paged(o)\nscalar  p, q: i32\n");
  EXPECT_EQ(laidOut("import   a,b\nreference  c\nrecord   R{a,b:i32}\ncode   d=1\n"),
            "import a, b\nreference c\nrecord R { a, b: i32 }\ncode d = 1\n");
  EXPECT_EQ(laidOut("reference   a=1,b = 2\n"), "reference a = 1, b = 2\n");
}

TEST(Format, OperatorsHaveBlanks) {
  EXPECT_EQ(laidOut("let a=b+-c*( d-!e )%f\n"), "let a = b + -c * (d - !e) % f\n");
  EXPECT_EQ(laidOut("let a=b?-c:d in 0..e||f<g&&!(h)\n"), "let a = b ? -c : d in 0 .. e || f < g && !(h)\n");
  EXPECT_EQ(laidOut("let a = x [ b : c?1:2 ] . present\n"), "let a = x[b: c ? 1 : 2].present\n");
  EXPECT_EQ(laidOut("let a = load q [ b,c;d  if e ] @ shared( 1 ) as f32\n"),
            "let a = load q[b, c; d if e] @shared(1) as f32\n");
  EXPECT_EQ(laidOut("let a = mask (b ,c) over( d,e )when f\n"), "let a = mask(b, c) over (d, e) when f\n");
  EXPECT_EQ(laidOut("let a = f [ b:c ] ( d )\n"), "let a = f[b: c](d)\n");
  EXPECT_EQ(laidOut("var a:[b]=-inf,c:f32 [ ]=0\n"), "var a: [b] = -inf, c: f32[] = 0\n");
  EXPECT_EQ(laidOut("fn f [ a ](b:[a],c)->[a]{return (b)}\n"), "fn f[a](b: [a], c) -> [a] { return (b) }\n");
  EXPECT_EQ(laidOut("report(a)at(b)if(c)\nreturn if(d)\nstore o [;c]=1\n"),
            "report (a) at (b) if (c)\nreturn if (d)\nstore o[; c] = 1\n");
  EXPECT_EQ(laidOut("for i in(a)..b step(c)@stages(d){}\n"), "for i in (a) .. b step (c) @stages(d) {}\n");
}

TEST(Format, BlocksAreIndented) {
  EXPECT_EQ(laidOut("if a{\nb=1\nfor i in c{d=2}\n}else if e{\nf=3\n}else{\n}\n"),
            "if a {\n  b = 1\n  for i in c { d = 2 }\n} else if e {\n  f = 3\n} else {\n}\n");
  EXPECT_EQ(laidOut("fn f(a) {\n      return a\n}\n"), "fn f(a) {\n  return a\n}\n");
}

TEST(Format, ABlockInOneLineStaysInItWhileItFits) {
  EXPECT_EQ(laidOut("if a {b=1} else {c=2}\n"), "if a { b = 1 } else { c = 2 }\n");
  EXPECT_EQ(laidOut("if a { b = 1 } else {\n c = 2 }\n"), "if a {\n  b = 1\n} else {\n  c = 2\n}\n");
  const std::string name(98, 'b');
  EXPECT_EQ(laidOut("if a { if c { " + name + " = 1 } }\n"), "if a { if c { " + name + " = 1 } }\n");
  EXPECT_EQ(laidOut("if aaaa { if c { " + name + " = 1 } }\n"), "if aaaa {\n  if c { " + name + " = 1 }\n}\n");
}

TEST(Format, SignsOfNeighboursStandBelowEachOther) {
  EXPECT_EQ(laidOut("let a = 1\nlet bcd = 2\n\nlet ef = 3\n// A comment ends a run.\nlet g = 4\n"),
            "let a   = 1\nlet bcd = 2\n\nlet ef = 3\n// A comment ends a run.\nlet g = 4\n");
  EXPECT_EQ(laidOut("a = 1\nbcd += 2\n(e, f) = g\nlet h = 1\nlet (i, j) = k\n"),
            "a      = 1\nbcd   += 2\n(e, f) = g\nlet h      = 1\nlet (i, j) = k\n");
  EXPECT_EQ(laidOut("let a = 1\nif b { c = 1 }\nlet def = 1\n"), "let a = 1\nif b { c = 1 }\nlet def = 1\n");
}

TEST(Format, AWideTargetTakesNoPart) {
  EXPECT_EQ(laidOut("let a = 1\nlet bcdefghijklmnopq = 2\nlet r = 3\n"),
            "let a                = 1\nlet bcdefghijklmnopq = 2\nlet r                = 3\n");
  EXPECT_EQ(laidOut("let a = 1\nlet bcdefghijklmnopqr = 2\nlet rs = 3\n"),
            "let a = 1\nlet bcdefghijklmnopqr = 2\nlet rs = 3\n");
}

TEST(Format, CommentsStay) {
  EXPECT_EQ(laidOut("// a\n\n\n\n//b   \nlet c = 1    // d\nif e { // f\n// g\nh = 1 // i\n// j\n} // k\n// l"),
            "// a\n\n//b\nlet c = 1 // d\nif e { // f\n  // g\n  h = 1 // i\n  // j\n} // k\n// l\n");
  EXPECT_EQ(laidOut("fn f(a) { // b\n  return a\n}\n"), "fn f(a) { // b\n  return a\n}\n");
}

TEST(Format, ACommentInsideOfAStatementGoesInFrontOfIt) {
  EXPECT_EQ(laidOut("let a = f(b, // the first\n  // the second:\n  c) // all\n"),
            "// the first\n// the second:\nlet a = f(b, c) // all\n");
  EXPECT_EQ(laidOut("\nif a && // why\n  b {\n  c = 1\n}\n"), "\n// why\nif a && b {\n  c = 1\n}\n");
  EXPECT_EQ(laidOut("record R {\n  a: i32, // why\n  b: i32\n}\n"), "// why\nrecord R { a: i32, b: i32 }\n");
}

TEST(Format, SingleEmptyLinesStay) {
  EXPECT_EQ(laidOut("let a = 1\n\n\n\nlet b = 2\nif c {\n\n  d = 1\n\n  e = 2\n\n}\n\n\n"),
            "let a = 1\n\nlet b = 2\nif c {\n  d = 1\n\n  e = 2\n}\n");
  const SourceFile file("x.tile", "\n\nkernel x\n");
  Diagnostics diagnostics;
  EXPECT_EQ(format(file, diagnostics), "kernel x\n");
}

TEST(Format, LongLinesAreBrokenWhereTheyBindLeast) {
  const std::string a(50, 'a'), b(50, 'b'), c(50, 'c');
  EXPECT_EQ(laidOut("require " + a + " * d && " + b + " + " + c + "\n"),
            "require " + a + " * d &&\n        " + b + " + " + c + "\n");
  EXPECT_EQ(laidOut("let x = " + a + " ? " + b + " : " + c + "\n"), "let x = " + a + " ? " + b + " :\n    " + c + "\n");
  EXPECT_EQ(laidOut("let x = f(" + a + ", " + b + ") + " + c + "\n"),
            "let x = f(" + a + ", " + b + ") +\n    " + c + "\n");
  EXPECT_EQ(laidOut("choice " + a + " = 1 | 2, " + b + " = 3 | 4, " + c + " = 5\n"),
            "choice  " + a + " = 1 | 2,\n        " + b + " = 3 | 4,\n        " + c + " = 5\n");
  EXPECT_EQ(laidOut("if d {\n  store o[" + a + ", " + b + "] = " + c + "\n}\n"),
            "if d {\n  store o[" + a + ", " + b + "] =\n      " + c + "\n}\n");
}

TEST(Format, WhatCannotBeBrokenIsLong) {
  const std::string name(150, 'a');
  EXPECT_EQ(laidOut("let b = " + name + "\n"), "let b =\n    " + name + "\n");
  EXPECT_EQ(laidOut("import " + name + "\n"), "import " + name + "\n");
}

TEST(Format, ALineOfTheWidthIsNotBroken) {
  const std::string fits = "let a = " + std::string(108, 'b') + " + c";
  ASSERT_EQ(fits.size(), kLineWidth);
  EXPECT_EQ(laidOut(fits + "\n"), fits + "\n");
  EXPECT_EQ(laidOut(fits + "d\n"), "let a = " + std::string(108, 'b') + " +\n    cd\n");
}

TEST(Format, LinesEndWithALineFeed) {
  EXPECT_EQ(laidOut("let a = 1 // b\r\nlet c = 2\r\n"), "let a = 1 // b\nlet c = 2\n");
}

TEST(Format, AMistakeHasNoLayout) {
  const SourceFile file("x.tile", "kernel x\nlet a = )\n");
  Diagnostics diagnostics;
  EXPECT_FALSE(format(file, diagnostics));
  EXPECT_EQ(diagnostics.errorCount(), 1U);
}

} // namespace
} // namespace nsa::language
