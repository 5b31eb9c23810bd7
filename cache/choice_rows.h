// The rows of the tables `choices` and `evidence`.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/rows.h"
#include "cache/sqlite.h"

#include <optional>

namespace nsa {

// All return sqlite's own codes.
int readChoice(sqlite::Connection &connection, const std::string &problem, const std::string &device,
               std::optional<StoredChoice> &choice);
// Ascending by problem, then device.
int listChoiceRows(sqlite::Connection &connection, std::vector<StoredChoice> &choices);
// Of one operator, whose name begins a problem; appended in the same order, as of layer `layer`.
int listChoiceSummaries(sqlite::Connection &connection, const std::string &op, int layer,
                        std::vector<ChoiceSummary> &choices);
// Replaces the choice and its evidence.
int writeChoiceRow(sqlite::Connection &connection, const StoredChoice &choice);
// The same, unless that would put an untuned choice in the place of a tuned one whose kernel is intact.
int putChoiceRow(sqlite::Connection &connection, const StoredChoice &choice);

// sqlite stores a NaN as NULL, which the columns refuse; neither it nor infinity is a measurement.
double finiteOrZero(double value);

} // namespace nsa
