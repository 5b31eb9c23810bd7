// Writes the results of one bench on one device into two files: FOLDER/NAME.json for programs and FOLDER/NAME.csv for
// people. The JSON file and the CSV file are written anew after every row, and each replaces its old file in one step,
// so that an interrupted run keeps its results. The tables of README and docs/ are rendered from the JSON
// (tools/render_tables).
// Thread-safety: only one thread at a time may use a BenchReport.
#pragma once

#include "tools/support/engine.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::bench {

class BenchReport {
public:
  // The columns of the bench's table in docs/results.md. "title = field" shows the field of a row under the title, and
  // "field" shows the field under its own name.
  using Table = std::vector<std::string>;
  // What the CSV of a report contains: either one file with all rows and all fields, or only the fields in `columns`,
  // in a separate file for each value of `fileField`.
  struct Csv {
    std::vector<std::string> columns;
    std::string fileField;
  };
  // Creates the folder of the results; if `folder` is empty, no file is written. `facts` has named values that describe
  // the whole run.
  static Result<BenchReport> create(std::string folder, std::string name, const nlohmann::ordered_json &facts,
                                    const Table &table = {}, Csv csv = {});
  // A report whose first fact, "machine", describes the machine that the engine runs on (machineFacts).
  static Result<BenchReport> create(nsa_engine *engine, std::string folder, std::string name,
                                    const nlohmann::ordered_json &facts, const Table &table = {}, Csv csv = {});

  // Adds a row. Numbers are rounded to four digits. Rows may have different fields. In a report, null means that a
  // field has no value.
  Status add(nlohmann::ordered_json row);
  // Sets a fact of the run that is only known at its end, such as its duration.
  Status setFact(const std::string &name, nlohmann::ordered_json value);
  const nlohmann::ordered_json &content() const { return json; }
  // Returns a text of the machine's device, for example its "name"; "" if it has none.
  std::string deviceText(const char *field) const { return json.at("machine").at("device").value(field, ""); }

private:
  BenchReport() = default;
  Status write() const;

  std::string folder, name;
  Csv csv;
  nlohmann::ordered_json json;
};

} // namespace nsa::bench
