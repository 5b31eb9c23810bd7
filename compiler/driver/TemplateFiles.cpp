#include "compiler/driver/TemplateFiles.h"

#include "compiler/driver/EmbeddedTemplates.h"
#include "runtime/base/template_path.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace nsa {

namespace {

namespace fs = std::filesystem;

Status unreadable(const fs::path &path, const std::string &reason) {
  return Status::error(ErrorCode::kIoError, "cannot read " + path.string() + ": " + reason,
                       "template_dir is a folder laid out like templates/");
}

void sortByPath(std::vector<TemplateFile> &files) {
  std::sort(files.begin(), files.end(), [](const auto &a, const auto &b) { return a.path < b.path; });
}

} // namespace

const TemplateFiles &TemplateFiles::embedded() {
  static const TemplateFiles &files = *[] {
    auto *result = new TemplateFiles;
    for (const EmbeddedTemplate &entry : embeddedTemplates())
      result->list.push_back({std::string(entry.path), std::string(entry.text)});
    sortByPath(result->list);
    return result;
  }();
  return files;
}

Result<TemplateFiles> TemplateFiles::read(const std::string &folder) {
  std::error_code error;
  fs::path root(folder);
  if (!fs::is_directory(root, error))
    return Status::invalid("template_dir", folder, "must be an existing folder");
  TemplateFiles result;
  fs::recursive_directory_iterator entries(root, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    fs::path relative = entries->path().lexically_relative(root);
    std::error_code ignored;
    if (!entries->is_regular_file(ignored) || !isTemplatePath(relative))
      continue;
    std::ifstream stream(entries->path(), std::ios::binary);
    std::ostringstream text;
    stream >> text.rdbuf();
    if (!stream.eof())
      return unreadable(entries->path(), "permission or medium");
    result.list.push_back({relative.generic_string(), std::move(text).str()});
  }
  if (error)
    return unreadable(root, error.message());
  if (result.list.empty())
    return Status::invalid("template_dir", folder, "holds no template (tile/*.tile or cuda/*.cu)");
  sortByPath(result.list);
  return result;
}

const TemplateFile *TemplateFiles::find(std::string_view path) const {
  auto found = std::lower_bound(list.begin(), list.end(), path,
                                [](const TemplateFile &file, std::string_view key) { return file.path < key; });
  return found != list.end() && found->path == path ? &*found : nullptr;
}

FindTemplateText TemplateFiles::finder() const {
  return [this](std::string_view path) {
    const TemplateFile *file = find(path);
    return file ? &file->text : nullptr;
  };
}

} // namespace nsa
