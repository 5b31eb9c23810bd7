// Checks an option whose values have names, and replaces the name by the number that the parser reads. A text that is
// no name gets an error that lists the names and suggests the nearest one. Thread-safety: pure functions.
#pragma once

#include "tools/nsa/nearest_name.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::tools {

// Stands in each error before the names, which are separated by ", ". The completion of shells reads the names there.
inline constexpr std::string_view kNamesFollow = " must be one of ";

template <typename Value> CLI::Validator namedValue(std::vector<std::pair<std::string, Value>> values) {
  return {[values = std::move(values)](std::string &text) -> std::string {
            std::vector<std::string_view> names;
            std::string list;
            for (const auto &[name, value] : values) {
              if (name == text) {
                text = std::to_string(static_cast<int64_t>(value));
                return "";
              }
              names.push_back(name);
              list += (list.empty() ? "" : ", ") + name;
            }
            const std::string nearest(nearestName(text, names));
            return text + std::string(kNamesFollow) + list + (nearest.empty() ? "" : ": did you mean " + nearest + "?");
          },
          ""};
}

} // namespace nsa::tools
