// Reads the state of a folder of templates, so that a choice made from it does not serve after an edit.
// Thread-safety: functions of the file system; an edit at the same moment shows in what they return.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

struct TemplateFolderState {
  // A digest over the names and contents of the folder's templates.
  std::string content;
  // A digest that also covers when each template was changed. When it is equal before and after some work, no template
  // changed meanwhile, not even for a moment. A template that exists only between the two moments is not seen; only a
  // compilation that names it would use it.
  std::string changes;
  bool operator==(const TemplateFolderState &) const = default;
};
Result<TemplateFolderState> readTemplateFolder(const std::string &folder);

// Precedes the digest of the contents in the name of a device.
inline constexpr std::string_view kTemplatesOfDevice = " templates=";
// The name of a device in the store. With a folder of templates it also names the folder's content, because choices
// made from that content hold for no other. `templateDir` is "" without a folder.
Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir);
// The name of the same device with templates of another content. "" means the embedded templates.
std::string withTemplates(std::string_view choiceDevice, std::string_view content);

} // namespace nsa
