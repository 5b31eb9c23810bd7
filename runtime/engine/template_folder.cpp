#include "runtime/engine/template_folder.h"

#include "runtime/base/digest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace nsa {

Result<std::string> digestTemplateFolder(const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file(error))
      files.push_back(it->path());
  if (error)
    return Status::invalid("template_dir", folder, "must be a readable folder: " + error.message());
  // Directories come in any order.
  std::sort(files.begin(), files.end());
  Digest digest;
  for (const fs::path &file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (!stream.good() && !stream.eof())
      return Status::error(ErrorCode::kIoError, "cannot read the template " + file.string());
    digest.field(fs::relative(file, folder, error).string()).field(content);
  }
  return digest.finishHex().substr(0, 16);
}

Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir) {
  if (templateDir.empty())
    return device;
  Result<std::string> digest = digestTemplateFolder(templateDir);
  return digest ? Result<std::string>(device + std::string(kTemplatesOfDevice) + *digest) : digest;
}

} // namespace nsa
