// A table of texts and numbers.
// Thread-safety: values.
#pragma once

#include <string>
#include <vector>

namespace nsa::report {

class Table {
public:
  struct Column {
    std::string title;
    bool isNumber = false; // aligned to the right
    std::string hint = {}; // shown when the title is pointed at
  };
  // The colour of a row.
  enum class Tone { kPlain, kGood, kBad, kQuiet };

  explicit Table(std::vector<Column> columns) : columns(std::move(columns)) {}
  // Adds a row, with one cell for each column.
  void add(std::vector<std::string> cells, Tone tone = Tone::kPlain);
  bool isEmpty() const { return rows.empty(); }
  std::string html() const;

private:
  struct Row {
    std::vector<std::string> cells;
    Tone tone;
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};

} // namespace nsa::report
