// Tells the state of a folder of templates, so that what was chosen from it is not used after an edit.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa {

// A digest over names and contents of all files below the folder.
Result<std::string> digestTemplateFolder(const std::string &folder);

} // namespace nsa
