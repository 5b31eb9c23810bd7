// What a database says of a stored choice without its evidence and its binary: what the fallback ladder ranks.
// Thread-safety: values.
#pragma once

#include <string>

namespace nsa {

struct ChoiceSummary {
  std::string problem, device, content;
  bool tuned = false;
  std::string target, templateName, config; // of the kernel that it names
  std::string layer;                        // the file that holds it
};

} // namespace nsa
