// Reads the fields of one JSON object of a file one by one. Errors name the file, the path of the field, the value and
// the rule. A field of the object that was not read is unknown, and `finish` returns an error for it.
// Thread-safety: one thread uses a JsonFields object.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::tools {

class JsonFields {
public:
  // `path` is the object's path in the file, such as "heads[1]". The path of the whole file is "".
  JsonFields(const nlohmann::json &object, std::string file, std::string path)
      : object(object), file(std::move(file)), path(std::move(path)) {}

  // Returns nullptr if the object does not have the field.
  const nlohmann::json *find(std::string_view name);
  // Returns the field, or an error with the rule if the object does not have the field.
  Result<const nlohmann::json *> need(std::string_view name, const std::string &rule);
  // Returns the JSON path of a field of this object, or of a field's element: "heads[1].name".
  std::string pathOf(std::string_view name) const;
  // The error for a field that breaks a rule.
  Status invalid(std::string_view name, const nlohmann::json &value, std::string rule, std::string hint = "") const;
  // Puts the file and the path in front of an error that already names its field.
  Status within(std::string_view name, const Status &status) const;

  Result<std::string> text(std::string_view name);
  Result<int64_t> number(std::string_view name, int64_t least, int64_t most);
  // Reads whole numbers between the limits, which must be ascending without repeats. {"from": 1024, "to": 65536} means
  // every power of two between them, both included.
  Result<std::vector<int64_t>> numbers(std::string_view name, int64_t least, int64_t most);

  // `finish` must be called after all known fields of the object were read. A field that was not read is an error,
  // which names the nearest known field.
  Status finish() const;

private:
  Result<std::vector<int64_t>> range(std::string_view name, const nlohmann::json &value, int64_t least, int64_t most);

  const nlohmann::json &object;
  std::string file, path;
  std::vector<std::string> asked;
};

} // namespace nsa::tools
