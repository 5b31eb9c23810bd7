#include "tools/nsa/files/find_workload.h"

#include "runtime/json/nearest_name.h"
#include "tools/nsa/files/file_io.h"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace nsa::tools {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxWorkloadBytes = 1 << 24;
constexpr std::string_view kEnding = ".json";
constexpr std::string_view kAllWorkloads = "all";

} // namespace

Result<Workload> readWorkload(const std::string &path) {
  NSA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  std::string begin(std::min<uint64_t>(file.size(), kPlanRecordBegin), '\0');
  NSA_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(begin))));
  NSA_ASSIGN_OR_RETURN(const std::string text,
                       readText(path, isPlanRecord(begin) ? std::numeric_limits<uint64_t>::max() : kMaxWorkloadBytes));
  return Workload::parse(text, path);
}

std::string workloadFolder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / NSA_WORKLOAD_FOLDER).lexically_normal().string();
}

std::vector<std::string> readyWorkloads(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == kEnding)
      names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

Result<Workload> findWorkload(const std::string &word, const std::string &folder) {
  if (word.ends_with(kEnding) || word.find('/') != std::string::npos)
    return readWorkload(word);
  const std::vector<std::string> names = readyWorkloads(folder);
  if (std::ranges::find(names, word) != names.end())
    return readWorkload(folder + "/" + word + std::string(kEnding));
  if (std::error_code error; fs::exists(word, error))
    return readWorkload(word);
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  const std::vector<std::string_view> known(names.begin(), names.end());
  return Status::invalid("WORKLOAD", word,
                         names.empty() ? "must be a file: there are no ready-made workloads in " + folder
                                       : "must be a file or one of " + list,
                         nearestHint(word, known));
}

Result<std::vector<Workload>> findWorkloads(const std::vector<std::string> &words, const std::string &folder) {
  std::vector<std::string> each;
  for (const std::string &word : words) {
    const std::vector<std::string> meant = word == kAllWorkloads ? readyWorkloads(folder) : std::vector{word};
    if (meant.empty())
      return Status::invalid("WORKLOAD", word, "there are no ready-made workloads in " + folder);
    each.insert(each.end(), meant.begin(), meant.end());
  }
  std::vector<Workload> workloads;
  for (const std::string &word : each) {
    NSA_ASSIGN_OR_RETURN(Workload workload, findWorkload(word, folder));
    // A report tells them apart by their names.
    for (const Workload &other : workloads)
      if (other.name == workload.name)
        return Status::invalid("WORKLOAD", word, "must differ in its name, " + workload.name + ", from " + other.path);
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

} // namespace nsa::tools
