// Blocks of a drawn program that have tiles of two axes.
#include "tests/harness/tile/program_drawer.h"

namespace nsa::test::tile {

namespace {

const AxisNames kTile = {"row", "column"}, kScores = {"row", "key"}, kOut = {"row", "e"};

} // namespace

void ProgramDrawer::columnBlock() {
  const std::string sum = variable(kRow, 8), most = variable(kRow, 8);
  const Known first = tileLoad("place");
  // The end of the loop may be a number of memory.
  const bool isShort = drawer.oneIn(3);
  const std::string end = isShort ? "load " + ends(columns) + "[head]" : "columns";
  const size_t before = drawer.mark();
  const size_t indices = drawer.indices.size();
  open("for place in 0 .. " + end + " by column");
  drawer.indices.push_back({"place", {"column"}, 128});
  const Known x = let(first);
  drawer.numbers.push_back(x);
  drawer.numbers.push_back({sum, kRow, 4096});
  if (drawer.oneIn(2))
    drawer.numbers.push_back(let(columnLoad("place")));
  for (int64_t left = drawer.from(0, 2); left > 0; --left)
    drawer.numbers.push_back(let(drawer.formulaWith(x, kTile, 3)));
  Known term = drawer.formulaWith(x, kTile, 2);
  if (drawer.oneIn(2))
    term = {"mask(" + term.text + ", " + drawer.condition(kTile, 1) + ", " + literal(drawer.number()) + ") over column",
            kTile, term.most};
  term = FormulaDrawer::clamped(term, 32);
  if (drawer.oneIn(4))
    line(sum + " = weighted(" + term.text + ", " + let({"(head as f32) * 0.5 + (at as f32) * 0.0", kRow, 1}).text +
         ", head + 1)");
  else if (drawer.oneIn(2))
    line(sum + " = " + sum + " * 0.5 + sum(" + term.text + ") over column");
  else
    line(sum + " += sum(" + term.text + ") over column");
  line(most + " = max(" + most + ", max(" + drawer.formulaWith(x, kTile, 2).text + ") over column)");
  if (drawer.oneIn(2))
    columnStore("place");
  close();
  drawer.forgetSince(before);
  drawer.indices.resize(indices);
  drawer.numbers.push_back({sum, kRow, 4096});
  drawer.numbers.push_back({most, kRow, 4096});
  if (drawer.oneIn(2)) {
    open("for place in 0 .. columns by column");
    insideColumns("place", true);
    close();
  }
}

void ProgramDrawer::insideColumns(const std::string &place, bool isLoop) {
  const size_t before = drawer.mark();
  const size_t indices = drawer.indices.size();
  drawer.indices.push_back({place, {"column"}, 128});
  const Known x = let(tileLoad(place));
  drawer.numbers.push_back(x);
  if (drawer.oneIn(2))
    drawer.numbers.push_back(let(columnLoad(place)));
  for (int64_t left = drawer.from(0, 3); left > 0; --left)
    drawer.numbers.push_back(let(drawer.formulaWith(x, kTile, 3)));
  // What a mask fills exists, so that it may move along the columns. A GPU moves fragments alone.
  if (!hasLongRows && drawer.oneIn(4)) {
    const std::string row = FormulaDrawer::clamped(drawer.formula(kRow, 1), 64).text;
    const Known whole = let({"mask(" + FormulaDrawer::clamped(drawer.formulaWith(x, kTile, 1), 64).text + ", " +
                                 drawer.condition(kTile, 1) + ", " + literal(drawer.number()) + ") over column",
                             kTile, 64});
    drawer.numbers.push_back(let({"shift(" + whole.text + ", " + row + ") over column", kTile, 64}));
    drawer.numbers.push_back(let({"last(" + whole.text + ") over column", kRow, 64}));
  }
  columnStore(place);
  // A value of each column of the block of rows: a store along the columns.
  if (isLoop && drawer.oneIn(3)) {
    const std::string name = output("tile, head; place: columns", {(rows + rowTile - 1) / rowTile, heads, columns});
    const Known term = FormulaDrawer::clamped(drawer.formulaWith(x, kTile, 2), 32);
    line("store " + name + "[tile, head; " + place + "] = " + (drawer.oneIn(2) ? "sum(" : "max(") + term.text +
         ") over row");
  }
  if (drawer.oneIn(3))
    columnStore(place);
  drawer.forgetSince(before);
  drawer.indices.resize(indices);
}

void ProgramDrawer::columnStore(const std::string &place) {
  const std::string name = output("row, head; place: columns", {rows, heads, columns});
  Known value = drawer.formula(kTile, 3);
  if (drawer.oneIn(4)) {
    tensors.pop_back();
    tensors += " inout\n";
    value = drawer.formulaWith({"load " + name + "[at, head; " + place + "]", kTile, 1}, kTile, 2);
  }
  const std::string condition = drawer.oneIn(4) ? " if " + drawer.index(kRow, 1).text + " % 4 != 1" : "";
  line("store " + name + "[at, head; " + place + condition + "] = " + value.text);
}

// o = sum over keys of a formula of q k, times v
void ProgramDrawer::productBlock() {
  const std::string q = input("row, head; d", {rows, heads, width}), k = input("key, head; d", {keys, heads, width}),
                    v = input("key, head; e", {keys, heads, outWidth});
  const std::string o = variable(kOut, 4);
  const Known tile = let({"load " + q + "[at, head]", {"row", "d"}, 1});
  // A tile of a product that is read elementwise, too.
  if (drawer.oneIn(3))
    drawer.numbers.push_back(let(wholeRow(tile, "d", width)));
  // No load limits what exists of it: all of the row takes part.
  if (drawer.oneIn(3))
    drawer.numbers.push_back(let(wholeRow({variable(kOut, 4), kOut, 4}, "e", outWidth)));
  const std::string j = fresh("j");
  const size_t before = drawer.mark(), indices = drawer.indices.size();
  const std::string end = drawer.oneIn(3) ? "high(at) + 1" : drawer.oneIn(3) ? "load " + ends(keys) + "[head]" : "keys";
  open("for " + j + " in 0 .. " + end + " by key" + (drawer.oneIn(2) ? " @stages(stages)" : ""));
  drawer.indices.push_back({j, {"key"}, 128});
  const Known values = let({"load " + v + "[" + j + ", head]", {"key", "e"}, 1});
  const Known scores =
      let({"dot(" + tile.text + ", load " + k + "[" + j + ", head]) over d", kScores, static_cast<double>(width)});
  drawer.numbers.push_back(scores);
  Known weights = FormulaDrawer::clamped(drawer.formulaWith(scores, kScores, 2), 16);
  if (drawer.oneIn(2))
    weights = {"mask(" + weights.text + ", " + (drawer.oneIn(2) ? j + " <= at" : drawer.condition(kScores, 1)) +
                   ", 0) over key",
               kScores, 16};
  const Known p = let(weights);
  const std::string product = "dot(" + p.text + ", " + values.text + ") over key";
  line(drawer.oneIn(2) ? o + " += " + product : o + " = " + o + " * 0.5 + " + product);
  close();
  drawer.forgetSince(before);
  drawer.indices.resize(indices);
  drawer.numbers.push_back({o, kOut, 4096});
  const std::string name = output("row, head; e", {rows, heads, outWidth});
  line("store " + name + "[at, head] = " + drawer.formula(kOut, 2).text);
  drawer.forgetSince(before);
  if (drawer.oneIn(2))
    drawer.numbers.push_back(let(wholeRow({o, kOut, 4096}, "e", outWidth)));
  // The product of two tiles of these rows, over the rows. The rows of the result are whole
  // blocks of 16, as a GPU's one warp takes them.
  if (rowTile == 16 && (width + 7) / 8 % 2 == 0) {
    const std::string gram = output("tile, head, d; e", {(rows + rowTile - 1) / rowTile, heads, width, outWidth});
    const std::string right = input("row, head; e", {rows, heads, outWidth});
    line("store " + gram + "[tile, head, iota(d) below width] = dot(" + tile.text + ", load " + right +
         "[at, head] * scale) over row");
  }
}

// A reduction of a formula of the value along all of an axis.
Known ProgramDrawer::wholeRow(const Known &value, const std::string &axis, int64_t extent) {
  const bool isSum = drawer.oneIn(2);
  const Known term = FormulaDrawer::clamped(drawer.formulaWith(value, value.axes, 2), 32);
  return {(isSum ? "sum(" : "max(") + term.text + ") over " + axis, kRow,
          isSum ? 32 * static_cast<double>(extent) : 32};
}

// Attention with the functions of a library.
void ProgramDrawer::softmaxBlock() {
  const std::string q = input("row, head; d", {rows, heads, width}), k = input("key, head; d", {keys, heads, width}),
                    v = input("key, head; e", {keys, heads, outWidth});
  const std::string name = output("row, head; e", {rows, heads, outWidth}), lse = output("row, head", {rows, heads});
  const std::string m = fresh("m"), l = fresh("l"), o = fresh("o"), j = fresh("j");
  const Known tile = let({"load " + q + "[at, head]", {"row", "d"}, 1});
  line("var " + m + ": [row] = -inf, " + l + ": [row] = 0, " + o + ": [row, e] = 0");
  const bool isCausal = drawer.oneIn(2);
  const size_t indices = drawer.indices.size();
  open("for " + j + " in 0 .. " + (isCausal ? "high(at) + 1" : "keys") + " by key @stages(stages)");
  drawer.indices.push_back({j, {"key"}, 128});
  const Known scores = let({"dot(" + tile.text + ", load " + k + "[" + j + ", head]) over d", kScores, 1});
  const Known masked = let(
      {"mask(" + scores.text + " * scale, " + (isCausal ? j + " <= at" : drawer.condition(kScores, 1)) + ") over key",
       kScores, 1});
  line("(" + m + ", " + l + ", " + o + ") = softmax_step(" + m + ", " + l + ", " + o + ", " + masked.text + ", load " +
       v + "[" + j + ", head], 0.5)");
  close();
  drawer.indices.resize(indices);
  line("store " + name + "[at, head] = softmax_result(" + l + ", " + o + ")");
  line("store " + lse + "[at, head] = softmax_lse(" + m + ", " + l + ", 0.5)");
}

// A sum over branches, some of which have no tensor.
void ProgramDrawer::branchBlock() {
  std::string names;
  for (int64_t i = 0; i < branches; ++i)
    names += (i == 0 ? "" : ", ") + input("row, head; place: columns", {rows, heads, columns}, true);
  const std::string gates = input("row, head, branch", {rows, heads, branches});
  const std::string gate = fresh("gate"), of = fresh("of"), total = fresh("total");
  line("let " + gate + " = load " + gates + "[at, head, iota(branch)] as f32");
  line("let " + of + " = stack(" + names + ") over branch");
  const size_t before = drawer.mark();
  open("for place in 0 .. columns by column");
  line("var " + total + ": [row, column] = " + literal(drawer.number()));
  open(std::string(drawer.oneIn(2) ? "static " : "") + "for i in branch");
  open("if " + of + "[branch: i].present");
  line(total + " = fma(" + gate + "[branch: i], load " + of + "[branch: i][at, head; place] as f32, " + total + ")");
  close();
  close();
  drawer.numbers.push_back({total, kTile, 4});
  const std::string name = output("row, head; place: columns", {rows, heads, columns});
  line("store " + name + "[at, head; place] = " + drawer.formula(kTile, 2).text);
  close();
  drawer.forgetSince(before);
  if (drawer.oneIn(2))
    drawer.numbers.push_back(
        let({std::string(drawer.oneIn(2) ? "sum(" : "max(") + gate + " * scale) over branch", kRow, 6}));
}

} // namespace nsa::test::tile
