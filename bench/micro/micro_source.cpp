#include "bench/micro/micro_source.h"

#include "compiler/driver/DeviceSource.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace nsa::bench {

std::string MicroSource::name() const {
  std::string text = file;
  for (const auto &[constant, value] : constants)
    text += " " + constant + "=" + std::to_string(value);
  return text;
}

std::string microKernelFolder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path bundled = folder.parent_path() / "libexec/nsa/micro";
  return (std::filesystem::exists(bundled, error) ? bundled : folder / "micro").string();
}

Result<std::string> microText(const MicroSource &source, const std::string &folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / source.file;
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file || text.empty())
    return Status::error(ErrorCode::kIoError, path.string() + " cannot be read",
                         "the bench's kernels belong into the folder micro beside it");
  std::string constants;
  for (const auto &[name, value] : source.constants)
    constants += "constexpr int " + name + " = " + std::to_string(value) + ";\n";
  NSA_ASSIGN_OR_RETURN(DeviceSource device,
                       inlineDeviceLibrary(constants + text, source.file, TemplateFiles::embedded()));
  return std::move(device.text);
}

} // namespace nsa::bench
