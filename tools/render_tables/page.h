// A page of the documentation whose measured numbers are rendered from records. A marker in the page says what is
// rendered. The rendered text replaces the text between the marker and the next `<!-- end -->`.
//
// - `<!-- table:NAME -->`: the tables of all records bench/results/*/NAME.json. `<!-- table:DEVICE/NAME -->` gives the
//   table of one record.
// - `<!-- record:DEVICE/NAME -->`: the machine, the commit and the date of a record. `<!-- record:packs/NAME -->` gives
//   the commits with which the kernels of a pack were made.
// - `<!-- value:FILE FIELD CONDITIONS -->`: one number, which is the field FIELD of an entry in the file's array
//   `results`. CONDITIONS are texts `field=value`, joined by ` & `, and exactly one entry must fulfil all of them. If
//   FIELD has the form `ARRAY.NAME`, the entry is in the file's array ARRAY. If FIELD begins with a slash, it is a JSON
//   pointer to the number.
// - `<!-- summary:DEVICE -->`: a table that compares the forward pass, decoding and the start of a process with other
//   programs (summary.h), from DEVICE/prefill, DEVICE/decode, DEVICE/startup and DEVICE/peers.
//
// The rendered text of a table or a record contains the record's age: the number of later commits that changed the
// measured code.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"
#include "tools/render_tables/records.h"

#include <string>
#include <vector>

namespace nsa::tables {

// Which ages renderPage writes. kCounted writes the present age of each record. kKept keeps an age that the page
// already shows if the present age differs from it by at most 64 commits, or by at most the shown age itself. The check
// of a page renders it with kKept, because with kCounted every commit to measured code would make the page outdated.
enum class Ages : uint8_t { kCounted, kKept };
Result<std::string> renderPage(const std::string &page, Records &records, Ages ages);

// Finds the tables that contain measured numbers but do not say where the numbers are from, and returns the line
// numbers at which these tables begin. A table that is rendered from a record, or that contains a rendered value, has a
// source. Any other table needs a line with its source as the next text below the table. The line with the source
// begins with "*Not recorded in a file: ...*" (with date and commit), "*Predicted: ...*" or "*Computed: ...*".
std::vector<int> tablesWithoutSource(const std::string &page);

} // namespace nsa::tables
