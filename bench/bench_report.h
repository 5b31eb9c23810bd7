// The results of one bench on one device: FOLDER/NAME.json for tools and FOLDER/NAME.csv for people. Both are written
// anew after every row, each replacing the old file at once: a run that is cut short keeps what it has measured.
// The tables of README and docs/ are rendered from the JSON (tools/render_tables).
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::bench {

class BenchReport {
public:
  // A column of the page's table of this bench (docs/results.md): its title and the field of a row that it shows.
  struct Column {
    std::string title, field;
  };
  // Which CSV is written: one of all rows and fields, or of these columns alone, a file for each value of a field.
  struct Csv {
    std::vector<std::string> columns;
    std::string fileField;
  };
  // `facts`: what is true of the whole run, above all "machine" (machineFacts). Makes the folder.
  static Result<BenchReport> create(std::string folder, std::string name, const nlohmann::ordered_json &facts,
                                    const std::vector<Column> &table = {}, Csv csv = {});

  // Numbers are rounded to four digits. Rows may differ in their fields; a null is a field without a value.
  Status add(nlohmann::ordered_json row);
  // A fact that is known only later, as the time that all took.
  Status setFact(const std::string &name, nlohmann::ordered_json value);
  // What stands in the file.
  const nlohmann::ordered_json &content() const { return json; }

private:
  BenchReport() = default;
  Status write() const;

  std::string folder, name;
  Csv csv;
  nlohmann::ordered_json json;
};

} // namespace nsa::bench
