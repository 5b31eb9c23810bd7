#include "tools/render_tables/summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nsa::tables {
namespace {

constexpr double kMicroseconds = 1000; // in a millisecond

// The row with the least `median_ms` of those that have all members of `wanted`; null where there is none. A program
// that could not be measured has a row without a time.
const Json *fastest(const Json &rows, const Json &wanted) {
  const Json *best = nullptr;
  double least = 0;
  for (const Json &row : rows) {
    const auto time = row.find("median_ms");
    bool isWanted = time != row.end() && time->is_number() && (!best || time->get<double>() < least);
    for (auto member = wanted.begin(); member != wanted.end() && isWanted; ++member) {
      const auto found = row.find(member.key());
      isWanted = found != row.end() && *found == *member;
    }
    if (isWanted) {
      best = &row;
      least = time->get<double>();
    }
  }
  return best;
}

// In milliseconds times `scale`; "-" where there is none.
std::string timeCell(const Json &row, const char *field, double scale) {
  const auto time = row.find(field);
  return time != row.end() && time->is_number() ? numberText(time->get<double>() * scale) : "-";
}

// "1.72 (torch cudnn)"
std::string peerCell(const Json *row, double scale) {
  return row ? timeCell(*row, "median_ms", scale) + " (" + row->value("implementation", "") + ")" : "-";
}

// "64/4"
std::string pairCell(const Json &row, const char *first, const char *second) {
  return numberText(row.value(first, Json())) + "/" + numberText(row.value(second, Json()));
}

// The decoding step of the fastest other program at the length that is nearest to ours, if it differs by at most 1 %.
const Json *sparseStep(const Json &peers, const Json &row) {
  const auto length = row.at("S").get<double>();
  double nearest = 0.01 * length;
  const Json *found = nullptr;
  for (const Json &peer : peers) {
    if (peer.value("measure", "") != "decode" || peer.value("op", "") != "nsa")
      continue;
    const double distance = std::abs(peer.at("tokens").get<double>() - length);
    if (distance > nearest || (found && distance == nearest))
      continue;
    if (const Json *step = fastest(peers, {{"measure", "decode"},
                                           {"op", "nsa"},
                                           {"heads", row.at("heads")},
                                           {"batch", row.at("batch")},
                                           {"tokens", peer.at("tokens")}})) {
      found = step;
      nearest = distance;
    }
  }
  return found;
}

} // namespace

std::string summaryTable(const SummaryRecords &records, const std::function<std::string(const Json &)> &sourceOf) {
  const Json &peers = records.peers->at("results");
  std::string text =
      tableHead({"what", "heads", "head sizes", "tokens", "NSA Runtime", "dense attention", "other NSA", "record"});

  // Dense attention of a forward pass was measured in turns with our own, so it is in the same record.
  const Json &prefill = records.prefill->at("results");
  std::vector<Json> shapes;
  for (const Json &row : prefill) {
    Json wanted = {{"op", "nsa"}, {"heads", row.value("heads", "")}, {"tokens", row.value("tokens", Json())}};
    if (row.value("op", "") != "nsa" || std::ranges::find(shapes, wanted) != shapes.end())
      continue;
    shapes.push_back(wanted);
    const Json *own = fastest(prefill, wanted);
    wanted["op"] = "dense";
    const Json *dense = fastest(prefill, wanted);
    wanted["op"] = "nsa";
    wanted["measure"] = "forward";
    text += tableRow({"forward, ms", pairCell(row, "query_heads", "kv_heads"), pairCell(row, "qk_dim", "v_dim"),
                      numberText(wanted["tokens"]), own ? timeCell(*own, "median_ms", 1) : "-", peerCell(dense, 1),
                      peerCell(fastest(peers, wanted), 1), sourceOf(*records.prefill)});
  }

  for (const Json *record : records.decode)
    for (const Json &row : record->at("results")) {
      const Json *sparse = sparseStep(peers, row);
      if (!sparse)
        continue;
      const std::string dense = timeCell(row, "us_dense", 1);
      text += tableRow({"decoding step, batch " + numberText(row.at("batch")) + ", us",
                        pairCell(row, "query_heads", "kv_heads"), pairCell(row, "qk_dim", "v_dim"),
                        numberText(row.at("S")), timeCell(row, "ms_total", kMicroseconds),
                        dense == "-" ? dense : dense + " (" + row.value("dense_by", "") + ")",
                        peerCell(sparse, kMicroseconds), sourceOf(*record)});
    }

  for (const Json &row : records.startup->at("results")) {
    if (row.value("measure", "") != "first result, warm cache")
      continue;
    Json wanted = {{"measure", "startup"}, {"cache", "warm"}, {"op", "nsa"}};
    const Json *sparse = fastest(peers, wanted);
    wanted["op"] = "dense";
    text += tableRow({"first result of a process, ms", "-", "-", "-", timeCell(row, "median_ms", 1),
                      peerCell(fastest(peers, wanted), 1), peerCell(sparse, 1), sourceOf(*records.startup)});
  }
  return text;
}

} // namespace nsa::tables
