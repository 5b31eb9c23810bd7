#include "tests/harness/tile/drawn_program.h"

#include "tests/harness/tile/program_drawer.h"

#include <algorithm>

namespace nsa::test::tile {

DrawnProgram drawProgram(uint64_t seed, const std::string &dtype, bool isGpu) {
  return ProgramDrawer(seed, dtype, isGpu).draw();
}

ProgramDrawer::ProgramDrawer(uint64_t seed, const std::string &dtype, bool isGpu) : drawer(seed), dtype(dtype) {
  result.call.isGpu = isGpu;
  rowTile = int64_t{16} << drawer.from(0, 2);
  columnTile = int64_t{16} << drawer.from(0, 2);
  keyTile = int64_t{16} << drawer.from(0, 2);
  rows = drawer.from(1, 90);
  heads = drawer.from(1, 2);
  columns = drawer.from(1, 110);
  keys = rows + drawer.from(0, 40);
  width = drawer.from(1, 40);
  outWidth = drawer.from(1, 40);
  branches = drawer.from(1, 3);
  stages = drawer.from(1, 2);
  isChunked = drawer.oneIn(3);
  // Few rows of many columns, which a GPU lays across all threads.
  hasLongRows = drawer.oneIn(4);
  if (hasLongRows) {
    rowTile = drawer.from(1, 5);
    columnTile = 8 * drawer.from(1, 80);
    rows = drawer.from(1, 20);
    columns = drawer.from(1, 700);
    keys = rows;
  }
}

void ProgramDrawer::open(const std::string &head) {
  line(head + " {");
  indent += 2;
}

void ProgramDrawer::close(const std::string &foot) {
  indent -= 2;
  line(foot);
}

Known ProgramDrawer::let(const Known &value) {
  const std::string name = fresh("v");
  line("let " + name + " = " + value.text);
  return {name, value.axes, value.most};
}

std::string ProgramDrawer::input(const std::string &shape, std::vector<int64_t> extents, bool isOptional) {
  const std::string name = fresh("t");
  tensors += "tensor " + name + "[" + shape + "]" + (isOptional ? " optional" : "") + "\n";
  TileTensor tensor{dtype == "fp32"   ? Element::kF32
                    : dtype == "bf16" ? Element::kBf16
                                      : Element::kF16,
                    std::move(extents),
                    {}};
  int64_t count = 1;
  for (const int64_t extent : tensor.shape)
    count *= extent;
  for (int64_t i = 0; i < count; ++i)
    tensor.cells.push_back({drawer.number(), 0});
  if (!isOptional || drawer.oneIn(2))
    result.call.tensors.emplace(name, std::move(tensor));
  return name;
}

std::string ProgramDrawer::list(int64_t count, int64_t below) {
  const std::string name = fresh("list");
  tensors += "tensor " + name + "[entry]: i32\n";
  TileTensor tensor{Element::kI32, {count}, {}};
  for (int64_t i = 0; i < count; ++i)
    tensor.cells.push_back({static_cast<double>(drawer.from(0, below - 1)), 0});
  result.call.tensors.emplace(name, std::move(tensor));
  return name;
}

std::string ProgramDrawer::ends(int64_t most) {
  const std::string name = list(heads, most + 1);
  for (Cell &cell : result.call.tensors.at(name).cells)
    if (drawer.oneIn(3))
      cell.value = 0;
  return name;
}

std::string ProgramDrawer::output(const std::string &shape, std::vector<int64_t> extents, bool isInteger) {
  const std::string name = input(shape, std::move(extents));
  if (isInteger) {
    tensors.pop_back();
    tensors += ": i32\n";
    TileTensor &tensor = result.call.tensors.at(name);
    tensor.element = Element::kI32;
    for (Cell &cell : tensor.cells)
      cell.value = -7;
  }
  result.outputs.insert(name);
  hasStore = true;
  return name;
}

// One element a row: at the row, at a row before, or at a row that a list names.
Known ProgramDrawer::rowLoad() {
  const std::string name = input("row, head", {rows, heads});
  switch (drawer.from(0, 3)) {
  case 0:
    return {"load " + name + "[at, head if " + drawer.index(kRow, 1).text + " > 3]", kRow, 1};
  case 1:
    return {"load " + name + "[max(at - " + number(drawer.from(1, 5)) + ", 0), head]", kRow, 1};
  case 2:
    return {"load " + name + "[load " + list(rows, rows) + "[at], head]", kRow, 1};
  default:
    return {"load " + name + "[at, head]", kRow, 1};
  }
}

Known ProgramDrawer::tileLoad(const std::string &place) {
  const std::string name = input("row, head; place: columns", {rows, heads, columns});
  const AxisNames axes = {"row", "column"};
  const std::string row = drawer.oneIn(4)   ? "load " + list(rows, rows) + "[at]"
                          : drawer.oneIn(4) ? "max(at - 2, 0)"
                                            : "at";
  const std::string condition = drawer.oneIn(4) ? " if " + drawer.index(kRow, 1).text + " != 2" : "";
  return {"load " + name + "[" + row + ", head; " + place + condition + "]", axes, 1};
}

Known ProgramDrawer::columnLoad(const std::string &place) {
  const std::string name = input("one; place: columns", {heads, columns});
  return {"load " + name + "[" + (drawer.oneIn(2) ? "head" : "0") + "; " + place + "]", {"column"}, 1};
}

void ProgramDrawer::functions() {
  const int64_t count = drawer.from(0, 2);
  for (int64_t i = 0; i < count; ++i) {
    FormulaDrawer inner(drawer.random());
    inner.numbers = {{"x", {}, 4096}, {"y", {}, 4096}};
    const std::string name = fresh("fun");
    const Known first = inner.formula({}, 2);
    inner.numbers.push_back({"z", {}, first.most});
    functionTexts += "fn " + name + "(x, y) {\n  let z = " + first.text + "\n  return " +
                     FormulaDrawer::clamped(inner.formulaWith({"(x - y)", {}, 8192}, {}, 2), 8).text + "\n}\n";
    drawer.functions.push_back(name);
  }
  // A function with axes of its own, which its arguments say.
  functionTexts += "fn weighted[a, b](x: [a, b], y: [a], n: i32) -> [a] {\n"
                   "  var total = 0\n  for i in 0 .. n {\n    total += i\n  }\n"
                   "  return sum(x * y) over b + total as f32\n}\n";
}

void ProgramDrawer::rowStatements(int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    drawer.numbers.push_back(
        let(drawer.oneIn(2) ? rowLoad() : drawer.formulaWith({"(at as f32)", kRow, 128}, kRow, 3)));
}

std::string ProgramDrawer::variable(const AxisNames &axes, double most) {
  const std::string name = fresh("s");
  std::string list;
  for (const std::string &axis : axes)
    list += (list.empty() ? "" : ", ") + axis;
  line("var " + name + ": [" + list + "] = " + FormulaDrawer::clamped(drawer.formula(kRow, 1), most).text);
  return name;
}

void ProgramDrawer::rowStore() {
  if (drawer.oneIn(4)) {
    const std::string name = output("row, head", {rows, heads}, true);
    line("store " + name + "[at, head] = at * 2 + " + drawer.index(kRow, 2).text);
    return;
  }
  const std::string name = output("row, head", {rows, heads});
  const std::string condition = drawer.oneIn(3) ? " if " + drawer.index(kRow, 1).text + " % 3 != 1" : "";
  line("store " + name + "[at, head" + condition + "] = " + drawer.formula(kRow, 3).text);
}

// Changes a variable on one side of a branch, or on both.
void ProgramDrawer::conditionalBlock() {
  const std::string name = variable(kRow, 64);
  const bool isOptional = drawer.oneIn(2);
  const std::string extra = isOptional ? input("row, head", {rows, heads}, true) : "";
  open("if " + std::string(isOptional ? extra + ".present" : drawer.condition({}, 1, true)));
  const Known added = isOptional ? Known{"load " + extra + "[at, head]", kRow, 1} : drawer.formula(kRow, 2);
  line(name + " = " + drawer.formulaWith(added, kRow, 1).text);
  if (drawer.oneIn(2)) {
    close("} else {");
    indent += 2;
    line(name + " = " + drawer.formula(kRow, 2).text);
  }
  close();
  drawer.numbers.push_back({name, kRow, 4096});
}

// A loop over rows of a table, whose ends are the fields of a record.
void ProgramDrawer::scalarLoop() {
  const std::string name = fresh("t"), entry = fresh("entry"), i = fresh("turn");
  tensors += "tensor " + name + "[n]: Range\n";
  TileTensor table{Element::kI32, {heads, 2}, {}};
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t begin = drawer.from(0, rows - 1);
    table.cells.push_back({static_cast<double>(begin), 0});
    table.cells.push_back({static_cast<double>(drawer.from(0, std::min<int64_t>(rows - begin, 5))), 0});
  }
  result.call.tensors.emplace(name, std::move(table));
  const std::string sum = variable(kRow, 8), values = input("row, head", {rows, heads});
  line("let " + entry + " = load " + name + "[head]");
  const size_t before = drawer.mark(), indices = drawer.indices.size();
  open("for " + i + " in " + entry + ".begin .. " + entry + ".begin + " + entry + ".count" +
       (drawer.oneIn(2) ? " step 2" : ""));
  drawer.indices.push_back({i, {}, 128});
  const Known value = let({"load " + values + "[" + i + ", head]", {}, 1});
  drawer.numbers.push_back(value);
  line(sum + " += " + FormulaDrawer::clamped(drawer.formulaWith(value, kRow, 2), 64).text);
  close();
  drawer.forgetSince(before);
  drawer.indices.resize(indices);
  drawer.numbers.push_back({sum, kRow, 512});
}

// A variable of integers of the rows, which a loop changes.
void ProgramDrawer::integers() {
  const std::string name = fresh("n"), i = fresh("turn");
  line("var " + name + ": i32[row] = " + drawer.index(kRow, 2).text);
  open("for " + i + " in 0 .. " + number(drawer.from(0, 4)));
  line(name + " = (" + name + " * 3 + " + i + " - " + drawer.index(kRow, 1).text + ") % 50");
  close();
  const std::string stored = output("row, head", {rows, heads}, true);
  line("store " + stored + "[at, head] = " + name + " * 2");
  drawer.numbers.push_back(let({"(" + name + " as f32) * 0.125", kRow, 100000}));
}

// Rows that go to the places of a list, in which no place stands twice.
void ProgramDrawer::scatter() {
  const std::string places = list(rows, 1);
  std::vector<Cell> &cells = result.call.tensors.at(places).cells;
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i].value = static_cast<double>(i);
  std::ranges::shuffle(cells, drawer.random);
  const std::string name = output("row, head", {rows, heads});
  line("store unique " + name + "[load " + places + "[at], head] = " + drawer.formula(kRow, 2).text);
}

std::string ProgramDrawer::header() const {
  std::string text = "kernel drawn\nimport softmax\n\nfixed columns, width, out_width\n";
  text += "choice row_tile = " + number(rowTile) + ", column_tile = " + number(columnTile) +
          ", key_tile = " + number(keyTile) + ", warps = 1 | 2 | 4, stages = 1 | 2\n";
  text += "require cpu ? warps == 1 && stages == 1 : " + std::string(hasLongRows ? "" : "row_tile == 16 * warps && ") +
          "stages == " + number(stages) + "\n";
  const std::string chunks = isChunked ? ", chunk = ceildiv(columns, column_tile)" : "";
  text += "grid " + std::string(isChunked ? "(" : "") + "tile = ceildiv(rows, row_tile)" + chunks +
          (isChunked ? ")" : "") + ", head = heads, 1\n";
  text += "threads 32 * warps\n";
  text += "axis row = row_tile, column = column_tile, key = key_tile, d = width, e = out_width, branch = " +
          number(branches) + " outer\n";
  return text + "record Range { begin, count: i32 }\n" + tensors + "scalar rows, heads, keys: i32, scale: f32\n" +
         functionTexts;
}

DrawnProgram ProgramDrawer::draw() {
  functions();
  drawer.numbers.push_back({"scale", {}, 2});
  drawer.indices = {{"at", kRow, 128}, {"tile", {}, 8}, {"head", {}, 2}, {"rows", {}, 128}};
  line("let at = tile * row_tile + iota(row) below rows");
  if (drawer.oneIn(6))
    line("return if tile > " + number(drawer.from(1, 3)));
  if (isChunked) {
    // All stores of such a program are along its columns.
    rowStatements(drawer.from(0, 2));
    line("let place = chunk * column_tile + iota(column) below columns");
    insideColumns("place", false);
  } else {
    rowStatements(drawer.from(1, 3));
    for (int64_t left = drawer.from(1, 3); left > 0; --left)
      switch (drawer.from(0, 8)) {
      case 0:
      case 1:
        columnBlock();
        break;
      case 2:
        hasLongRows ? columnBlock() : productBlock();
        break;
      case 3:
        hasLongRows ? columnBlock() : softmaxBlock();
        break;
      case 4:
        branchBlock();
        break;
      case 5:
        scalarLoop();
        break;
      case 6:
        integers();
        break;
      case 7:
        scatter();
        break;
      default:
        conditionalBlock();
        break;
      }
    if (!hasStore || drawer.oneIn(2))
      rowStore();
  }
  result.call.values = {
      {"dtype", dtype}, {"columns", number(columns)}, {"width", number(width)}, {"out_width", number(outWidth)}};
  result.call.scalars = {{"rows", static_cast<double>(rows)},
                         {"heads", static_cast<double>(heads)},
                         {"keys", static_cast<double>(keys)},
                         {"scale", drawer.number() * 2}};
  result.text = header() + "\n" + body;
  return std::move(result);
}

} // namespace nsa::test::tile
