// Checks an option whose values have names, and replaces the name by the number that the parser reads. If the text on
// the command line is none of the option's names, the error lists the names and suggests the most similar name.
// Thread-safety: pure functions.
#pragma once

#include "runtime/json/nearest_name.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::tools {

// Each error message of namedValue has the text kNamesFollow in front of the list of allowed names. The generator of
// shell completions searches an error message for kNamesFollow to find the names of an option's values.
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
