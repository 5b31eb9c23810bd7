// The fields of one JSON object of a file, read one by one: errors name the file, the field's path, the value and the
// rule; what is left over at the end is an unknown field.
// Thread-safety: one thread.
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
  // `path` is where the object stands, "" for the whole file: "heads[1]".
  JsonFields(const nlohmann::json &object, std::string file, std::string path)
      : object(object), file(std::move(file)), path(std::move(path)) {}

  // nullptr: the object does not have it.
  const nlohmann::json *find(std::string_view name);
  // An error that says what it must be, when the object does not have it.
  Result<const nlohmann::json *> need(std::string_view name, const std::string &rule);
  // "heads[1].name" of this object's field, or of an element of it.
  std::string pathOf(std::string_view name) const;
  // An error about a field.
  Status invalid(std::string_view name, const nlohmann::json &value, std::string rule, std::string hint = "") const;
  // An error about a field that knows its own name, with the file and the place put in front.
  Status within(std::string_view name, const Status &status) const;

  Result<std::string> text(std::string_view name);
  // Whole numbers between the limits, ascending and each once; also as {"from": 1024, "to": 65536}, every power of two
  // between them, both included.
  Result<std::vector<int64_t>> numbers(std::string_view name, int64_t least, int64_t most);

  // After the last field was read: what nobody asked for is an error that names the nearest known one.
  Status finish() const;

private:
  Result<std::vector<int64_t>> range(std::string_view name, const nlohmann::json &value, int64_t least, int64_t most);

  const nlohmann::json &object;
  std::string file, path;
  std::vector<std::string> asked;
};

} // namespace nsa::tools
