// Computes digests of a folder of templates, so that a choice that was made from the templates is not used after they
// were edited.
// Thread-safety: the functions keep no state; they read the templates as they are in the file system during the call.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace nsa {

struct TemplateFolderState {
  // A digest over the names and contents of the folder's templates.
  std::string content;
  // A digest over the inode and the time of the last change of each template file. If `changes` is equal before and
  // after a compilation, no template file was changed during the compilation, not even temporarily. `changes` does not
  // show a template file that was added and removed during the compilation; only a compilation that names this template
  // would read it.
  std::string changes;
  bool operator==(const TemplateFolderState &) const = default;
};
Result<TemplateFolderState> readTemplateFolder(const std::string &folder);

// In the name of a device in the store, this text precedes the digest of the template folder's content.
inline constexpr std::string_view kTemplatesOfDevice = " templates=";
// Returns the name of a device in the store. With a folder of templates the device's name also has the digest of the
// folder's content, because choices made from one content hold for no other content. `templateDir` is "" without a
// folder of templates.
Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir);
// Returns the name `choiceDevice` with the digest of its templates replaced by `content`. An empty `content` means the
// embedded templates and gives the name without a digest.
std::string withTemplates(std::string_view choiceDevice, std::string_view content);

} // namespace nsa
