// Tells the state of a folder of templates, so that what was chosen from it is not used after an edit.
// Thread-safety: functions of the file system; an edit at the same moment shows in what they return.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

struct TemplateFolderState {
  std::string content; // a digest over names and contents of the folder's templates
  std::string changes; // and of when each was changed: equal before and after something, none of them changed
                       // meanwhile, not even for a moment. A template that is there neither before nor after is not
                       // seen; only a compilation that names it would use it.
  bool operator==(const TemplateFolderState &) const = default;
};
Result<TemplateFolderState> readTemplateFolder(const std::string &folder);

// What stands before the digest of the contents in a device's name.
inline constexpr std::string_view kTemplatesOfDevice = " templates=";
// A device's name in the store: with a folder of templates ("": none) that of its content too, as what was chosen from
// it holds for nothing else.
Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir);
// The same device's name for templates of another content; "": the embedded ones.
std::string withTemplates(std::string_view choiceDevice, std::string_view content);

} // namespace nsa
