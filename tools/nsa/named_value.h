// Checks an option whose values have names, and replaces the name by the number that the parser reads. Any other text
// is an error, which lists the names and suggests the most similar name.
// Thread-safety: pure functions.
#pragma once

#include "tools/nsa/nearest_name.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::tools {

// The text in front of the list of allowed names in each error message. The generator of shell completions finds the
// names of an option's values by this text.
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
