// A page of the documentation whose measured numbers are rendered from records.
//
// - `<!-- table:NAME -->`: the tables of all bench/results/*/NAME.json, or of DEVICE/NAME alone.
// - `<!-- record:DEVICE/NAME -->`: where, of what and when that record is; of packs/NAME, what is of which commit.
// - `<!-- value:FILE FIELD CONDITIONS -->`: one number, FIELD of the one result that fulfils all conditions. CONDITIONS
//   are `field=value`, joined by ` & `. ARRAY.FIELD takes the number from another array than `results`; a FIELD with a
//   slash in front is a JSON pointer.
// - `<!-- summary:DEVICE -->`: the whole forward pass, decoding and the start of a process beside other programs
//   (summary.h), from DEVICE/prefill, DEVICE/decode, DEVICE/startup and DEVICE/peers.
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

// The numbers of the lines where a table with measured numbers begins that neither is rendered, nor has a rendered
// value, nor is followed by a line that says where its numbers are from: "*Not recorded in a file: ...*" with date and
// commit,
// "*Predicted: ...*" or "*Computed: ...*".
std::vector<int> tablesWithoutSource(const std::string &page);

} // namespace nsa::tables
