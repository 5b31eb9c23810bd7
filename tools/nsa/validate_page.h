// Makes the HTML page that `nsa validate` writes, from the files that its steps wrote into the folder.
// Thread-safety: the functions are pure except that they read files of the folder.
#pragma once

#include "tools/nsa/validate_steps.h"

#include <string>
#include <vector>

namespace nsa::tools {

std::string validateHtml(const ValidateChoice &choice, const std::vector<ValidateStep> &steps);

} // namespace nsa::tools
