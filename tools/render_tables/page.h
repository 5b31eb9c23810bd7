// A page of the documentation whose measured numbers are rendered from records.
//
// - `<!-- table:NAME -->`: the tables of all bench/results/*/NAME.json, or of DEVICE/NAME alone.
// - `<!-- record:DEVICE/NAME -->`: where, of what and when that record is; of packs/NAME, what is of which commit.
// - `<!-- value:FILE FIELD CONDITIONS -->`: one number, FIELD of the one result that fulfils all conditions. CONDITIONS
//   are `field=value`, joined by ` & `. FIELD is the name of a field in an entry of the file's array `results`.
//   `ARRAY.FIELD` takes another array of the file than `results`. If FIELD begins with a slash, it is a JSON pointer
//   into the file.
// - `<!-- summary:DEVICE -->`: a table that compares the forward pass, decoding and the start of a process with other
//   programs (summary.h), from DEVICE/prefill, DEVICE/decode, DEVICE/startup and DEVICE/peers.
//
// The rendered text ends at the next `<!-- end -->`. A table and a record show their age, in commits to measured code.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"
#include "tools/render_tables/records.h"

#include <string>
#include <vector>

namespace nsa::tables {

// The age of a record, a number of commits, is counted when a page is rendered, so every later commit makes it wrong by
// one. When a page is checked, the ages in it are accepted if the true age is at most twice as large, or differs by at
// most 64 commits: a page must distinguish new from old numbers and must not be outdated by each commit.
enum class Ages : uint8_t { kCounted, kKept };
Result<std::string> renderPage(const std::string &page, Records &records, Ages ages);

// Returns the line numbers at which the tables without a source begin. A table with measured numbers has a source if it
// is rendered, if it has a rendered value, or if the next line with text after it says where its numbers are from. Such
// a line begins "*Not recorded in a file: ...*" (with date and commit), "*Predicted: ...*" or "*Computed: ...*".
std::vector<int> tablesWithoutSource(const std::string &page);

} // namespace nsa::tables
