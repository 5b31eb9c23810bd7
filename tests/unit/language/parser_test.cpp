// Every rule of the grammar: what is read, as the text of its tree.
#include "tests/unit/language/parsed.h"
#include "tests/unit/language/syntax_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace nsa::language {
namespace {

// The tree behind the line of the kernel.
std::string read(const std::string &text) {
  const Parsed parsed("kernel x\n" + text + "\n");
  EXPECT_EQ(parsed.diagnostics.toString(), "");
  const std::string tree = syntaxText(*parsed.tree);
  return tree.substr(tree.find('\n') + 1);
}

// The tree of one expression.
std::string readExpr(const std::string &text) {
  const std::string tree = read("let x = " + text);
  return tree.substr(sizeof("(let x ") - 1, tree.size() - sizeof("(let x )\n") + 1);
}

TEST(Parser, ReadsWhatAFileIs) {
  EXPECT_EQ(syntaxText(*Parsed("kernel a serves b, c\nimport d, e\ntargets cpu, sm_90a\nreference f").tree),
            "(kernel a (b c))\n(import (d e))\n(targets (cpu sm_90a))\n(reference f)\n");
  EXPECT_EQ(syntaxText(*Parsed("kernel a\nreference b = 16, c = 1").tree), "(kernel a ())\n(reference b 16 c 1)\n");
  const Parsed library("// It has a comment.\n\nlibrary a\r\n");
  EXPECT_EQ(syntaxText(*library.tree), "(library a)\n");
  ASSERT_TRUE(library.tree->library);
  EXPECT_EQ(library.tree->library->name.text, "a");
  EXPECT_FALSE(library.tree->kernel);
}

TEST(Parser, ReadsDeclarationsOfTuning) {
  EXPECT_EQ(read("fixed a, b\nfixed c when op == d"), "(fixed (a b) -)\n(fixed (c) (== op d))\n");
  EXPECT_EQ(read("const a = 1, b = a + 1"), "(const a 1 b (+ a 1))\n");
  EXPECT_EQ(read("choice a = 16 | 32 |\n  64, b = 0"), "(choice a (16 32 64) b (0))\n");
  EXPECT_EQ(read("require a ? b : c\ncost 2\nthreads 32 * a"), "(require (? a b c))\n(cost 2)\n(threads (* 32 a))\n");
  EXPECT_EQ(read("work flops = 2 * a, bytes = b\n"), "(work flops (* 2 a) bytes b)\n");
  EXPECT_EQ(read("work bytes = a\nwork flops = b\nwork = 3\n"), "(work bytes a)\n(work flops b)\n(= work 3)\n");
  EXPECT_EQ(read("grid (a = 1, b = 2), c = 3, 1"), "(grid (a 1 b 2) (c 3) ())\n");
}

TEST(Parser, ReadsDeclarationsOfTheInterface) {
  EXPECT_EQ(read("axis a = n, b = 3 outer"), "(axis a n b 3 outer)\n");
  EXPECT_EQ(read("tensor q[entry, time; d], s[]"), "(tensor (q) (entry time) ; d - - (s) () -)\n");
  EXPECT_EQ(read("tensor (a, b)[n; x: w + 1]: f32 optional, c[;d] inout paged(p) optional"),
            "(tensor (a b) (n) ; x (+ w 1) f32 optional (c) () ; d - - optional inout paged p)\n");
  EXPECT_EQ(read("scalar a, b: i32, c: f32"), "(scalar a i32 b i32 c f32)\n");
  EXPECT_EQ(read("record R { a, b: i32, c: bool }"), "(record R a i32 b i32 c bool)\n");
  EXPECT_EQ(read("record R {\n  a: i32,\n  b: i64\n}"), "(record R a i32 b i64)\n");
  EXPECT_EQ(read("code a = 1, b = 2"), "(code a 1 b 2)\n");
}

TEST(Parser, ReadsFunctions) {
  EXPECT_EQ(read("fn f() { return 1 }"), "(fn f () () - ((return 1)))\n");
  EXPECT_EQ(read("fn f[row, key](a: [row], b: io[row, key], c, d: f32[], e: R) -> f32[row] {\n"
                 "  let x = a\n  return x\n}"),
            "(fn f (row key) (a - (row) b io (row key) c - d f32 () e R) f32 (row) ((let x a) (return x)))\n");
}

TEST(Parser, ReadsStatements) {
  EXPECT_EQ(read("let a = 1, (b, c) = d"), "(let a 1 (b c) d)\n");
  EXPECT_EQ(read("var a: [row] = -inf, b = 0, c: i32[row] = 1"), "(var a - (row) (neg finf) b - 0 c i32 (row) 1)\n");
  EXPECT_EQ(read("a = 1\n(a, b) = c\na += 2\ninsert(best, x)"),
            "(= a 1)\n(= (a b) c)\n(+= a 2)\n(do (call insert best x))\n");
  EXPECT_EQ(read("if a { b = 1 }"), "(if a ((= b 1)))\n");
  EXPECT_EQ(read("if a {\n  b = 1\n\n} else if c {\n} else {\n  b = 2\n  c = 3\n}"),
            "(if a ((= b 1)) ((if c () ((= b 2) (= c 3)))))\n");
  EXPECT_EQ(
      read("for i in 0 .. n {}\nfor i in a + 1 .. b by key @stages(s) @shared(1) {}\nfor i in 0 .. n step 2 * m {}"),
      "(for i 0 n ())\n(for i (+ a 1) b by key @stages s @shared 1 ())\n(for i 0 n step (* 2 m) ())\n");
  EXPECT_EQ(read("for b in branch { a = b }\nstatic for b in branch {}"),
            "(for-axis b branch ((= a b)))\n(static-for b branch ())\n");
  EXPECT_EQ(read("store out[a, b; c if d] = e\nstore o[branch: b][a] = 1\nstore s[] = 2"),
            "(store (out a b ; c if d) e)\n(store (o [branch b ] a) 1)\n(store (s) 2)\n");
  EXPECT_EQ(read("report bad at n if a && b\nreturn if a >= b"), "(report bad n (&& a b))\n(return-if (>= a b))\n");
}

TEST(Parser, WordsOfDeclarationsAreNamesElsewhere) {
  EXPECT_EQ(read("var code = 0, step = 1\ncode = step\ncost += 1\nlet at = by + when * outer"),
            "(var code - 0 step - 1)\n(= code step)\n(+= cost 1)\n(let at (+ by (* when outer)))\n");
  EXPECT_EQ(read("tensor choice[n]: i32\nlet a = load choice[step / 2]"),
            "(tensor (choice) (n) i32)\n(let a (load (choice (/ step 2))))\n");
}

TEST(Parser, ReadsOperatorsByHowTheyBind) {
  EXPECT_EQ(readExpr("a ? b : c ? d : e"), "(? a b (? c d e))");
  EXPECT_EQ(readExpr("a || b && c == d + e * -f"), "(|| a (&& b (== c (+ d (* e (neg f))))))");
  EXPECT_EQ(readExpr("a - b - c"), "(- (- a b) c)");
  EXPECT_EQ(readExpr("a / b % c * d"), "(* (% (/ a b) c) d)");
  EXPECT_EQ(readExpr("(a + b) * c"), "(* (+ a b) c)");
  EXPECT_EQ(readExpr("!a && !!b"), "(&& (not a) (not (not b)))");
  EXPECT_EQ(readExpr("- -a"), "(neg (neg a))");
  EXPECT_EQ(readExpr("a + b below n - 1"), "(below (+ a b) (- n 1))");
  EXPECT_EQ(readExpr("a below n < b"), "(< (below a n) b)");
  EXPECT_EQ(readExpr("a - 1 in 0 .. n + 1 || b"), "(|| (in (- a 1) 0 (+ n 1)) b)");
  EXPECT_EQ(readExpr("-a as f32 * b as i64 as i32"), "(* (as (neg a) f32) (as (as b i64) i32))");
  for (const std::string op : {"==", "!=", "<", "<=", ">", ">="})
    EXPECT_EQ(readExpr("a " + op + " b"), "(" + op + " a b)");
}

TEST(Parser, ReadsPrimaries) {
  EXPECT_EQ(readExpr("(a, 1, 0.5)"), "(tuple a 1 f0.5)");
  EXPECT_EQ(readExpr("true || false"), "(|| true false)");
  EXPECT_EQ(readExpr("inf + nan"), "(+ finf fnan)");
  EXPECT_EQ(readExpr("9223372036854775807 + 1e9 + 2.5e-3 + 1e+2"),
            "(+ (+ (+ 9223372036854775807 f1e+09) f0.0025) f100)");
  EXPECT_EQ(readExpr("seq.k_length + i32.max"), "(+ (. seq k_length) (. i32 max))");
  EXPECT_EQ(readExpr("x[branch: b + 1].present"), "(. (pick x branch (+ b 1)) present)");
  EXPECT_EQ(readExpr("x[a: c ? 0 : 1][b: 2]"), "(pick (pick x a (? c 0 1)) b 2)");
  EXPECT_EQ(readExpr("load q[a, b; c if d] @shared(2) as f32"), "(as (load (q a b ; c if d) @shared 2) f32)");
  EXPECT_EQ(readExpr("load t[n].k_length + load o[branch: b][n]"),
            "(+ (. (load (t n)) k_length) (load (o [branch b ] n)))");
  EXPECT_EQ(readExpr("load q[if a]"), "(load (q if a))");
}

TEST(Parser, ReadsCalls) {
  EXPECT_EQ(readExpr("f()"), "(call f)");
  EXPECT_EQ(readExpr("dot(a, b) over d + 1"), "(+ (call dot a b over (d)) 1)");
  EXPECT_EQ(readExpr("mask(a, b < c, 0) over (row, key) when d || e"),
            "(call mask a (< b c) 0 over (row key) when (|| d e))");
  EXPECT_EQ(readExpr("gate_values[row: head, branch: kind](x)"), "(call gate_values row:head branch:kind x)");
}

TEST(Parser, ALineEndsAStatementUnlessSomethingMustFollow) {
  EXPECT_EQ(read("let a = b\nlet c = d"), "(let a b)\n(let c d)\n");
  for (const std::string op : {"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"})
    EXPECT_EQ(readExpr("a " + op + " // why\n\n  b"), "(" + op + " a b)");
  EXPECT_EQ(read("let a =\n  b ?\n  c :\n  d,\n  e = f"), "(let a (? b c d) e f)\n");
  EXPECT_EQ(read("x +=\n 1"), "(+= x 1)\n");
  EXPECT_EQ(read("for i in 0 ..\n  n {}"), "(for i 0 n ())\n");
  EXPECT_EQ(read("let a = f(b\n  , c\n  + d)\nlet e = load q[b\n  if c\n]"),
            "(let a (call f b (+ c d)))\n(let e (load (q b if c)))\n");
}

TEST(Parser, NodesKnowTheirPlaces) {
  const Parsed parsed("kernel x\nlet a = f(b) + (c - 1)\nif a { d = 2 }\n");
  ASSERT_EQ(parsed.diagnostics.toString(), "");
  const auto &let = as<LetStatement>(*as<StatementItem>(*parsed.tree->items[1]).statement);
  EXPECT_EQ(let.range.text(), "let a = f(b) + (c - 1)");
  EXPECT_EQ(let.bindings[0].target.range.text(), "a");
  const auto &sum = as<BinaryExpr>(*let.bindings[0].value);
  EXPECT_EQ(sum.range.text(), "f(b) + (c - 1)");
  EXPECT_EQ(sum.opRange.text(), "+");
  EXPECT_EQ(sum.left->range.text(), "f(b)");
  EXPECT_EQ(sum.right->range.text(), "c - 1");
  EXPECT_EQ(sum.right->range.position(), (SourcePosition{2, 17}));
  EXPECT_EQ(sum.height, 3);
  const auto &branch = as<IfStatement>(*as<StatementItem>(*parsed.tree->items[2]).statement);
  EXPECT_EQ(branch.range.text(), "if a { d = 2 }");
  EXPECT_EQ(branch.then.range.text(), "{ d = 2 }");
  EXPECT_EQ(branch.then.statements[0]->range.text(), "d = 2");
}

TEST(Parser, ExpressionsAreNumbered) {
  const Parsed parsed("kernel x\nlet a = b + 1\nlet c = -d\n");
  EXPECT_EQ(parsed.tree->expressionCount, 5U);
  const auto &first = as<LetStatement>(*as<StatementItem>(*parsed.tree->items[1]).statement);
  const auto &second = as<LetStatement>(*as<StatementItem>(*parsed.tree->items[2]).statement);
  EXPECT_EQ(as<BinaryExpr>(*first.bindings[0].value).left->id, 0U);
  EXPECT_EQ(first.bindings[0].value->id, 2U);
  EXPECT_EQ(second.bindings[0].value->id, 4U);
}

TEST(Parser, ANodeOfAnotherKindIsNone) {
  const Parsed parsed("kernel x\nlet a = 1\n");
  EXPECT_FALSE(asIf<LibraryItem>(parsed.tree->items[0]));
  EXPECT_TRUE(asIf<KernelItem>(parsed.tree->items[0]));
  EXPECT_FALSE(asIf<KernelItem>(static_cast<const Item *>(nullptr)));
}

// What is as deep as allowed is read, and one more is an error.
TEST(Parser, DepthIsLimited) {
  const auto nested = [](int depth) {
    return "kernel x\nlet a = " + std::string(depth, '(') + "b" + std::string(depth, ')') + "\n";
  };
  EXPECT_EQ(Parsed(nested(255)).diagnostics.toString(), "");
  EXPECT_EQ(Parsed(nested(256)).diagnostics.list()[0].text, "nested more than 256 deep");
  const auto added = [](int operations) {
    std::string text = "kernel x\nlet a = b";
    for (int i = 0; i < operations; ++i)
      text += " + c";
    return text + "\n";
  };
  EXPECT_EQ(Parsed(added(255)).diagnostics.toString(), "");
  EXPECT_EQ(Parsed(added(256)).diagnostics.list()[0].text, "an expression of more than 256 operations in a row");
}

} // namespace
} // namespace nsa::language
