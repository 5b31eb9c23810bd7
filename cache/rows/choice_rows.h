// Reads and writes rows of the tables `choices` and `evidence`. All functions of choice_rows.h with an int result
// return sqlite's own codes.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/sqlite.h"
#include "cache/rows/rows.h"

#include <optional>

namespace nsa {

int readChoice(sqlite::Connection &connection, const std::string &problem, const std::string &device,
               std::optional<StoredChoice> &choice);
// Lists all choices in ascending order of problem and device.
int listChoiceRows(sqlite::Connection &connection, std::vector<StoredChoice> &choices);
// Appends the stored choices for one operator to `choices`, in ascending order of problem and device, and sets the
// field `layer` of each to `layer`. The first word of a problem is the name of its operator.
int listChoiceSummaries(sqlite::Connection &connection, const std::string &op, int layer,
                        std::vector<ChoiceSummary> &choices);
// Replaces the stored choice of a problem and its evidence.
int writeChoiceRow(sqlite::Connection &connection, const StoredChoice &choice);
// Does what writeChoiceRow does, except that an untuned choice does not replace a tuned choice whose kernel is
// undamaged.
int putChoiceRow(sqlite::Connection &connection, const StoredChoice &choice);

} // namespace nsa
