// Reads the fields of one JSON object of a file one by one. Errors name the file, the path of the field, the value and
// the rule. `finish` returns an error if the object has a field that was not read, because such a field is unknown.
// Thread-safety: only one thread at a time may use a JsonFields.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

class JsonFields {
public:
  // `path` is the object's path in the file, such as "heads[1]". For the file's top-level object, `path` is "".
  JsonFields(const nlohmann::json &object, std::string file, std::string path)
      : object(object), file(std::move(file)), path(std::move(path)) {}

  // Returns nullptr if the object does not have the field.
  const nlohmann::json *find(std::string_view name);
  // Returns the field. If the object does not have the field, `need` returns an error that states `rule`.
  Result<const nlohmann::json *> need(std::string_view name, const std::string &rule);
  // Returns the JSON path of a field of this object, or of a field's element: "heads[1].name".
  std::string pathOf(std::string_view name) const;
  Status invalid(std::string_view name, const nlohmann::json &value, std::string rule, std::string hint = "") const;
  // Returns the error `status`, which already names a field, with the file and the path in front of this name.
  Status within(std::string_view name, const Status &status) const;

  Result<std::string> text(std::string_view name);
  Result<int64_t> number(std::string_view name, int64_t least, int64_t most);
  // Reads a list of whole numbers. Each number must be at least `least`, at most `most`, and greater than the number
  // before it. The object {"from": 1024, "to": 65536} means every power of two from 1024 to 65536.
  Result<std::vector<int64_t>> numbers(std::string_view name, int64_t least, int64_t most);

  // `finish` must be called after all known fields of the object were read. If the object has any other field, `finish`
  // returns an error, which suggests the known field with the most similar name.
  Status finish() const;

private:
  Result<std::vector<int64_t>> range(std::string_view name, const nlohmann::json &value, int64_t least, int64_t most);

  const nlohmann::json &object;
  std::string file, path;
  std::vector<std::string> asked;
};

} // namespace nsa
