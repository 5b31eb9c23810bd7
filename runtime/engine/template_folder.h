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
  // after a compilation, no template file was changed during the compilation, not even temporarily. A template file
  // that was both added and removed during the compilation does not affect `changes`. Such a file can only affect a
  // compilation that names the file's template.
  std::string changes;
  bool operator==(const TemplateFolderState &) const = default;
};
Result<TemplateFolderState> readTemplateFolder(const std::string &folder);

// The separator between the device's name and the digest of the template folder's content in the name that
// choiceDeviceOf returns.
inline constexpr std::string_view kTemplatesOfDevice = " templates=";
// Returns the device name under which choices are stored. If the engine uses a folder of templates, this name ends in a
// digest of the folder's content, so that a choice is not found after a template in the folder has changed. An empty
// `templateDir` means that the engine uses the embedded templates.
Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir);
// Returns the device name `choiceDevice`, but with the digest `content` in the place of its digest of templates. An
// empty `content` stands for the embedded templates, and the returned name then has no digest.
std::string withTemplates(std::string_view choiceDevice, std::string_view content);

} // namespace nsa
