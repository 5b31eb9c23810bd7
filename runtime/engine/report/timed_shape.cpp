#include "runtime/engine/report/timed_shape.h"

#include <algorithm>

namespace nsa {
namespace {

constexpr std::string_view kTimed = " timed";
constexpr std::string_view kField = " timed=";

std::string part(int64_t timed, int64_t of, const char *what) {
  return timed < of ? std::to_string(timed) + " of " + std::to_string(of) + " " + what : "";
}

} // namespace

std::string TimedShape::text() const {
  return "batch=" + std::to_string(batch) + " seqlen_q=" + std::to_string(seqlenQ) +
         " seqlen_k=" + std::to_string(seqlenK);
}

std::string cutText(const Spec &spec, const Maxima &maxima, const TimedShape &timed) {
  std::string queries, keys;
  const OperatorDef &def = definitionOf(spec.op);
  if (!def.hasQueries()) {
    keys = part(timed.batch * timed.seqlenK, maxima.batch * maxima.seqlenK, "keys");
  } else {
    queries = part(timed.batch * timed.seqlenQ, std::min(maxima.tokensQ, maxima.batch * maxima.seqlenQ), "queries");
    if (def.hasKeys())
      keys = part(timed.seqlenK, maxima.seqlenK, "keys");
  }
  const std::string both = queries + (queries.empty() || keys.empty() ? "" : " over ") + keys;
  return both.empty() ? "" : both + std::string(kTimed);
}

std::string cutProvenance(std::string_view cut) {
  if (cut.empty())
    return "";
  std::string value(cut.substr(0, cut.size() - kTimed.size()));
  std::ranges::replace(value, ' ', '_');
  return std::string(kField) + value;
}

std::string cutTextOf(std::string_view provenance) {
  const size_t at = provenance.find(kField);
  if (at == std::string_view::npos)
    return "";
  const size_t begin = at + kField.size();
  std::string text(provenance.substr(begin, provenance.find(' ', begin) - begin));
  std::ranges::replace(text, '_', ' ');
  return text + std::string(kTimed);
}

} // namespace nsa
