#include "tools/nsa/files/config_text.h"

#include "tools/nsa/files/file_io.h"

namespace nsa::tools {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;

} // namespace

Result<ConfigText> ConfigText::read(const std::string &word) {
  if (const size_t begin = word.find_first_not_of(" \t\r\n"); begin != std::string::npos && word[begin] == '{')
    return ConfigText{"--config", word};
  const bool isInput = word == "-";
  NSA_ASSIGN_OR_RETURN(std::string text,
                       isInput ? readStandardInput(kMaxConfigBytes) : readText(word, kMaxConfigBytes));
  return ConfigText{isInput ? kStandardInput : word, std::move(text)};
}

Result<ConfigFile> readConfig(const std::string &word) {
  NSA_ASSIGN_OR_RETURN(const ConfigText config, ConfigText::read(word));
  return ConfigFile::parse(config.name, config.text);
}

} // namespace nsa::tools
