#include "runtime/engine/compile/template_folder.h"

#include "runtime/base/digest.h"
#include "runtime/base/template_path.h"
#include "runtime/base/text.h"
#include "runtime/model/operators.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <vector>

namespace nsa {

namespace {

namespace fs = std::filesystem;

// File systems stamp changes by a clock that stands still for up to 10 ms, so that two changes within one of its ticks
// look like one. A clock of another machine may be ahead for ever, hence the limit.
constexpr std::chrono::milliseconds kTick{10};
constexpr int kMostTicks = 5;

int64_t nanoseconds(const timespec &time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

struct Look {
  TemplateFolderState state;
  std::vector<std::string> variants; // see variantsOf
  int64_t lastChange = 0;            // nanoseconds since 1970
};

Status unreadable(const std::string &folder, const std::error_code &error) {
  return Status::invalid("template_dir", folder, "must be a readable folder: " + error.message());
}

// A CUDA template has its declarations behind `//!`. Only lines with the word `kernel` are taken apart: of the
// thousands of lines of a folder, which is read before and after each compilation, few have it.
void addVariants(std::string_view text, std::vector<std::string> &names) {
  constexpr std::string_view kDeclaration = "kernel";
  for (size_t at = text.find(kDeclaration); at != text.npos; at = text.find(kDeclaration, at)) {
    const size_t begin = text.rfind('\n', at) + 1; // 0 in the first line, as npos + 1 is
    const size_t end = std::min(text.find('\n', at), text.size());
    at = end;
    std::string line(trim(text.substr(begin, end - begin)));
    if (line.starts_with("//!"))
      line.erase(0, 3);
    std::ranges::replace(line, ',', ' ');
    std::string_view rest = line;
    if (takeWord(rest) != "kernel")
      continue;
    const std::string_view name = takeWord(rest);
    if (takeWord(rest) != "serves")
      continue;
    const OperatorDef *def = findOperator(takeWord(rest));
    while (!rest.empty() && !(def && hasVariants(def->op)))
      def = findOperator(takeWord(rest));
    if (def && hasVariants(def->op))
      names.emplace_back(name);
  }
}

// Folders are not looked at: they change with any of their entries.
Result<Look> lookAt(const std::string &folder) {
  const fs::path root(folder);
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (isTemplatePath(it->path().lexically_relative(root)) && it->is_regular_file(ignored))
      entries.push_back(it->path());
  }
  if (error)
    return unreadable(folder, error);
  // Directories come in any order.
  std::sort(entries.begin(), entries.end());
  Look look;
  Digest content, changes;
  for (const fs::path &entry : entries) {
    struct stat found{};
    if (stat(entry.c_str(), &found) != 0)
      return unreadable(folder, std::error_code(errno, std::generic_category()));
    look.lastChange = std::max(look.lastChange, nanoseconds(found.st_ctim));
    for (const int64_t number : {static_cast<int64_t>(found.st_dev), static_cast<int64_t>(found.st_ino),
                                 static_cast<int64_t>(found.st_mode), nanoseconds(found.st_ctim)})
      changes.field(std::to_string(number));
    std::ifstream stream(entry, std::ios::binary);
    std::ostringstream text;
    stream >> text.rdbuf();
    if (!stream.eof())
      return Status::error(ErrorCode::kIoError, "cannot read the template " + entry.string());
    content.field(entry.lexically_relative(root).generic_string()).field(text.view());
    addVariants(text.view(), look.variants);
  }
  std::ranges::sort(look.variants);
  look.state = {content.finishHex().substr(0, 16), changes.finishHex()};
  return look;
}

} // namespace

Result<TemplateFolderState> readTemplateFolder(const std::string &folder) {
  for (int tick = 0;; ++tick) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now); // the clock of file systems
    NSA_ASSIGN_OR_RETURN(Look look, lookAt(folder));
    if (look.lastChange < nanoseconds(now) || tick == kMostTicks)
      return std::move(look.state);
    std::this_thread::sleep_for(kTick);
  }
}

Result<std::vector<std::string>> variantsOf(const std::string &folder) {
  NSA_ASSIGN_OR_RETURN(Look look, lookAt(folder));
  return std::move(look.variants);
}

Result<std::string> choiceDeviceOf(const std::string &device, const std::string &templateDir) {
  if (templateDir.empty())
    return device;
  Result<TemplateFolderState> state = readTemplateFolder(templateDir);
  return state ? Result<std::string>(withTemplates(device, state->content)) : state.status();
}

std::string withTemplates(std::string_view choiceDevice, std::string_view content) {
  std::string name(choiceDevice.substr(0, choiceDevice.find(kTemplatesOfDevice)));
  return content.empty() ? name : name.append(kTemplatesOfDevice).append(content);
}

} // namespace nsa
