// Tells the state of a folder of templates, so that what was chosen from it is not used after an edit.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

// A digest over names and contents of all files below the folder.
Result<std::string> digestTemplateFolder(const std::string &folder);

// What stands before that digest in a device's name.
inline constexpr std::string_view kTemplatesOfDevice = " templates=";
// A device's name in the store: with a folder of templates ("": none) that of its content too, as what was chosen from
// it holds for nothing else.
Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir);

} // namespace nsa
