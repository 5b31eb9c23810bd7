#include "cache/rows/choice_rows.h"

#include "cache/rows/kernel_rows.h"

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

// A choice and its evidence come from one statement, so from one moment of the database.
#define NSA_SELECT_CHOICES                                                                                             \
  "SELECT c.problem, c.device, c.content, c.tuned, c.provenance,"                                                      \
  " e.template, e.config, e.outcome, e.milliseconds, e.ratio, e.detail, e.position IS NOT NULL"                        \
  " FROM choices AS c LEFT JOIN evidence AS e USING (problem, device)"
constexpr const char *kSelectChoice = NSA_SELECT_CHOICES " WHERE c.problem = ?1 AND c.device = ?2 ORDER BY e.position";
constexpr const char *kListChoices = NSA_SELECT_CHOICES " ORDER BY c.problem, c.device, e.position";
#undef NSA_SELECT_CHOICES

// A problem's first word is its operator: from the blank behind it to the next character.
constexpr const char *kSummaries =
    "SELECT c.problem, c.device, c.content, c.tuned, k.target, k.template, k.config, k.digest"
    " FROM choices AS c JOIN kernels AS k USING (content)"
    " WHERE c.problem >= ?1 || ' ' AND c.problem < ?1 || '!' ORDER BY c.problem, c.device";
constexpr const char *kTunedContent = "SELECT content FROM choices WHERE problem = ?1 AND device = ?2 AND tuned = 1";
constexpr const char *kPutChoice =
    "INSERT INTO choices (problem, device, content, tuned, provenance) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT (problem, device) DO UPDATE SET content = excluded.content, tuned = excluded.tuned,"
    " provenance = excluded.provenance";
constexpr const char *kDeleteEvidence = "DELETE FROM evidence WHERE problem = ?1 AND device = ?2";
constexpr const char *kPutEvidence =
    "INSERT INTO evidence (problem, device, position, template, config, outcome, milliseconds, ratio, detail)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

int takeChoices(Query &query, std::vector<StoredChoice> &choices) {
  while (query.step()) {
    std::string problem = query.text(0), device = query.text(1);
    if (choices.empty() || choices.back().problem != problem || choices.back().device != device)
      choices.push_back(
          {std::move(problem), std::move(device), query.text(2), query.integer(3) == 1, query.text(4), {}});
    if (query.integer(11) == 1)
      choices.back().evidence.push_back(
          {query.text(5), query.text(6), query.text(7), query.real(8), query.real(9), query.text(10)});
  }
  return query.code();
}

} // namespace

int readChoice(Connection &connection, const std::string &problem, const std::string &device,
               std::optional<StoredChoice> &choice) {
  choice.reset();
  std::vector<StoredChoice> choices;
  Query query(connection, kSelectChoice, problem, device);
  const int code = takeChoices(query, choices);
  if (code == SQLITE_OK && !choices.empty())
    choice = std::move(choices.front());
  return code;
}

int listChoiceRows(Connection &connection, std::vector<StoredChoice> &choices) {
  Query query(connection, kListChoices);
  return takeChoices(query, choices);
}

int listChoiceSummaries(Connection &connection, const std::string &op, int layer, std::vector<ChoiceSummary> &choices) {
  Query query(connection, kSummaries, op);
  while (query.step())
    choices.push_back({query.text(0), query.text(1), query.text(2), query.integer(3) == 1, query.text(4), query.text(5),
                       query.text(6), layer, digestIn(query.bytes(7))});
  return query.code();
}

int writeChoiceRow(Connection &connection, const StoredChoice &choice) {
  int code = Query(connection, kPutChoice, choice.problem, choice.device, choice.content, int64_t{choice.tuned},
                   choice.provenance)
                 .run();
  if (code == SQLITE_OK)
    code = Query(connection, kDeleteEvidence, choice.problem, choice.device).run();
  for (size_t i = 0; code == SQLITE_OK && i < choice.evidence.size(); ++i) {
    const Measurement &measured = choice.evidence[i];
    code =
        Query(connection, kPutEvidence, choice.problem, choice.device, static_cast<int64_t>(i), measured.templateName,
              measured.config, measured.outcome, measured.milliseconds, measured.ratioToIncumbent, measured.detail)
            .run();
  }
  return code;
}

int putChoiceRow(Connection &connection, const StoredChoice &choice) {
  if (!choice.tuned) {
    std::string tuned;
    {
      Query query(connection, kTunedContent, choice.problem, choice.device);
      if (query.step())
        tuned = query.text(0);
      if (query.code() != SQLITE_OK)
        return query.code();
    }
    // A tuned choice whose kernel cannot be read cannot serve. The default replaces it, because otherwise every process
    // would compile the default again.
    if (!tuned.empty()) {
      bool serves = false;
      const int code = checkKernel(connection, tuned, serves);
      if (code != SQLITE_OK || serves)
        return code;
    }
  }
  return writeChoiceRow(connection, choice);
}

} // namespace nsa
