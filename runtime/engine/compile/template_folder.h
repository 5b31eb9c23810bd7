// Computes digests of a folder of templates, so that a choice that was made from the templates is not used after they
// were edited.
// Thread-safety: the functions keep no state; they read the templates as they are in the file system during the call.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace nsa {

struct TemplateFolderState {
  // A digest over the names and contents of the folder's templates.
  std::string content;
  // A digest over the inode and the time of the last change of each template file. If `changes` is equal before and
  // after a compilation, none of the folder's template files was changed during the compilation, not even temporarily.
  // A template file that was both added and removed during the compilation does not affect `changes`. A file that is
  // added for a short time can affect only a compilation that names the template in this file.
  std::string changes;
  bool operator==(const TemplateFolderState &) const = default;
};
Result<TemplateFolderState> readTemplateFolder(const std::string &folder);

// Returns the names of the folder's templates for operators with several templates (hasVariants), in ascending order.
// They are the names in `kernel NAME serves dense, window`, and may differ from the names of the files.
Result<std::vector<std::string>> variantsOf(const std::string &folder);

// The separator between the device's name and the digest of the template folder's content in the name that
// choiceDeviceOf returns.
inline constexpr std::string_view kTemplatesOfDevice = " templates=";
// Returns the device name under which choices are stored. If the engine uses a folder of templates, the returned name
// ends in a digest of the folder's content, so that a choice is not found after a template in the folder has changed.
// An empty `templateDir` means that the engine uses the embedded templates.
Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir);
// Returns the device name `choiceDevice` with its digest of templates replaced by the digest `content`. An empty
// `content` stands for the embedded templates. If `content` is empty, the returned device name has no digest.
std::string withTemplates(std::string_view choiceDevice, std::string_view content);

} // namespace nsa
