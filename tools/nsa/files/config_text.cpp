#include "tools/nsa/files/config_text.h"

#include "tools/nsa/files/file_io.h"

namespace nsa::tools {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;

} // namespace

Result<ConfigText> ConfigText::read(const std::string &word) {
  if (const size_t begin = word.find_first_not_of(" \t\r\n"); begin != std::string::npos && word[begin] == '{')
    return ConfigText{"--config", word};
  if (word == "-") {
    Result<std::string> text = readStandardInput(kMaxConfigBytes);
    return text ? Result<ConfigText>({kStandardInput, std::move(*text)}) : text.status();
  }
  Result<std::string> text = readText(word, kMaxConfigBytes);
  return text ? Result<ConfigText>({word, std::move(*text)}) : text.status();
}

Result<ConfigFile> readConfig(const std::string &word) {
  Result<ConfigText> config = ConfigText::read(word);
  return config ? ConfigFile::parse(config->name, config->text) : config.status();
}

} // namespace nsa::tools
