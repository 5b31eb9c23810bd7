// Renders the measured numbers of a documentation page from records. A record is a JSON file with the results of a
// benchmark run, for example bench/results/DEVICE/NAME.json. A marker in the page says what is rendered. The rendered
// text replaces the text between the marker and the next `<!-- end -->`.
//
// - `<!-- table:NAME -->`: the tables of all records bench/results/*/NAME.json.
// - `<!-- table:DEVICE/NAME -->`: the table of the record bench/results/DEVICE/NAME.json.
// - `<!-- figure:DEVICE/NAME -->`: the figure of a record (figure.h), which is the file figures/DEVICE-NAME.svg beside
// the
//   page.
// - `<!-- record:DEVICE/NAME -->`: the machine, the commit and the date of a record.
// - `<!-- record:packs/NAME -->`: the commits with which the kernels of a pack were made.
// - `<!-- value:FILE FIELD CONDITIONS -->`: one number, which is the field FIELD of an entry in the file's array
//   `results`. CONDITIONS are texts `field=value`, joined by ` & `, and exactly one entry must fulfil all of them. If
//   FIELD has the form `ARRAY.NAME`, the number is the field NAME of an entry in the file's array ARRAY. If FIELD
//   begins with a slash, it is a JSON pointer to the number.
// - `<!-- summary:DEVICE -->`: a table that compares the forward pass, decoding and the start of a process with other
//   programs (summary.h), from prefill, decode_step/one_sequence, decode_step/batches, startup and peers of the device.
//
// The rendered text of a table, a figure or a record contains the record's age: the number of later commits that
// changed the measured code. Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"
#include "tools/render_tables/records.h"

#include <map>
#include <string>
#include <vector>

namespace nsa::tables {

// Whether renderPage writes the present ages of the records or keeps ages that the page shows. kCounted writes the
// present age of each record. kKept keeps the age that the page shows for a record if the present age is not known, or
// if the present age differs from the shown age by at most 64 or by at most the shown age itself. The check whether a
// page is up to date uses kKept: with kCounted, every commit that changes the measured code would make the page
// outdated.
enum class Ages : uint8_t { kCounted, kKept };
struct RenderedPage {
  std::string text;
  std::map<std::string, std::string> figures; // the texts of SVG files, by their paths from the page's folder
};
Result<RenderedPage> renderPage(const std::string &page, Records &records, Ages ages);

// Finds the tables that contain measured numbers but do not say where the numbers are from, and returns the line
// numbers at which these tables begin. A table that is rendered from a record, or that contains a rendered value, needs
// no statement of its source. For every other table with measured numbers, the next text below the table must be a line
// that states the source of the numbers. A line that states the source begins with "*Not recorded in a file: ...*"
// (with date and commit), "*Predicted: ...*" or "*Computed: ...*".
std::vector<int> tablesWithoutSource(const std::string &page);

} // namespace nsa::tables
