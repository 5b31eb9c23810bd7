#include "compiler/driver/DeviceSource.h"

#include "compiler/render/TemplateHeader.h"

#include <algorithm>

namespace nsa {

namespace {

constexpr std::string_view kFolder = "device/";

class Inliner {
public:
  explicit Inliner(const TemplateFiles &files) : files(files) {}

  // The lines of a file follow the lines of all files that it includes.
  Status append(std::string_view text, const std::string &file) {
    std::string own = "// ---- " + file + "\n";
    for (int number = 1; !text.empty(); ++number) {
      size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.starts_with("#include"))
        NSA_RETURN_IF_ERROR(include(line, file, number));
      else if (!line.starts_with("#pragma once") && !(line.empty() && own.ends_with("\n\n")))
        own.append(line).append("\n"); // no two blank lines where a line was left out
    }
    result.text += own;
    return Status::ok();
  }

  DeviceSource result;

private:
  Status include(std::string_view line, const std::string &file, int number) {
    size_t open = line.find('"');
    size_t close = line.rfind('"');
    if (open == close)
      return templateError({file, number}, "'" + std::string(line) + "': only the device library may be included",
                           "write #include \"name.cuh\" for templates/device/name.cuh");
    std::string path = std::string(kFolder) + std::string(line.substr(open + 1, close - open - 1));
    const TemplateFile *header = files.find(path);
    if (!header)
      return templateError({file, number}, "there is no " + path);
    if (std::find(result.headers.begin(), result.headers.end(), header) != result.headers.end())
      return Status::ok();
    result.headers.push_back(header);
    return append(header->text, path);
  }

  const TemplateFiles &files;
};

} // namespace

Result<DeviceSource> inlineDeviceLibrary(const std::string &source, const std::string &file,
                                         const TemplateFiles &files) {
  Inliner inliner(files);
  NSA_RETURN_IF_ERROR(inliner.append(source, file));
  return std::move(inliner.result);
}

} // namespace nsa
