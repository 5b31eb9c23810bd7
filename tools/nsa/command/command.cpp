#include "tools/nsa/command/command.h"

#include "runtime/base/text.h"
#include "runtime/engine/tune/pruned_candidates.h"
#include "runtime/model/targets.h"
#include "tools/nsa/command/named_value.h"
#include "tools/nsa/files/file_io.h"
#include "tools/support/number_option.h"
#include "tools/support/terminal.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace nsa::tools {

void addOperatorFlag(CLI::App &command, Operator &op, OperatorChoice choice) {
  std::vector<std::pair<std::string, Operator>> operators;
  const auto offered = choice == OperatorChoice::kKernels ? operatorTable() : publicOperators();
  for (const OperatorDef &def : offered)
    operators.emplace_back(def.name, def.op);
  command.add_option("--op", op, "The operator: " + namesOf(offered))
      ->required()
      ->transform(namedValue(std::move(operators)))
      ->type_name("OP");
}

void LengthFlags::add(CLI::App &command, CLI::Option *other) {
  const std::string without = other ? "without " + other->get_name() : "";
  const auto about = [&](const std::string &text, const std::string &more = "") {
    const std::string inner = without + (without.empty() || more.empty() ? "" : "; ") + more;
    return text + (inner.empty() ? "" : " (" + inner + ")");
  };
  CLI::Option *options[] = {
      command.add_option("--batch", batch, about("Sequences"))
          ->check(wholeAbove0())
          ->type_name("N")
          ->capture_default_str(),
      command.add_option("--seqlen-q", seqlenQ, about("Queries of one sequence", "default: as many as keys"))
          ->check(wholeFrom0())
          ->type_name("N"),
      command.add_option("--seqlen-k", seqlenK, about("Keys of one sequence"))
          ->check(wholeFrom0())
          ->type_name("N")
          ->capture_default_str()};
  if (other)
    for (CLI::Option *option : options)
      option->excludes(other);
}

Maxima LengthFlags::maxima() const {
  const int64_t queries = seqlenQ ? seqlenQ : seqlenK;
  return {.batch = batch, .tokensQ = batch * queries, .seqlenQ = queries, .seqlenK = seqlenK};
}

Status checkLengthFlags(const Spec &spec, const Maxima &maxima) {
  const Status status = maxima.validate(spec);
  if (status.isOk())
    return status;
  ErrorInfo info = status.error();
  constexpr std::pair<std::string_view, std::string_view> kFlags[] = {{"max_batch", "--batch"},
                                                                      {"max_tokens_q", "--tokens-q"},
                                                                      {"max_seqlen_q", "--seqlen-q"},
                                                                      {"max_seqlen_k", "--seqlen-k"}};
  for (std::string *text : {&info.field, &info.rule})
    for (const auto &[field, flag] : kFlags)
      if (const size_t place = text->find(field); place != std::string::npos)
        text->replace(place, field.size(), flag);
  return Status(std::move(info));
}

void SpecFlags::add(CLI::App &command, OperatorChoice choice) {
  addOperatorFlag(command, op, choice);
  command.add_option("--config", configPath, std::string(kConfigValue) + ": " + configKeys())
      ->required()
      ->type_name("FILE");
  CLI::Option *input =
      command
          .add_option("--input", inputPath, "Safetensors file whose shapes fill in what the configuration leaves out")
          ->type_name("FILE");
  lengths.add(command, input);
  command
      .add_option("--tokens-q", tokensQ,
                  "Queries of all sequences together (default: as many as --batch times --seqlen-q)")
      ->check(wholeAbove0())
      ->type_name("N")
      ->excludes(input);
}

Result<SpecFlags::Chosen> SpecFlags::resolve() const {
  if (!inputPath.empty()) {
    NSA_ASSIGN_OR_RETURN(OperatorFile file, readInputs(op, configPath, inputPath));
    return Chosen{file.inputs.spec, file.inputs.maxima};
  }
  NSA_ASSIGN_OR_RETURN(ConfigFile config, readConfig(configPath));
  NSA_ASSIGN_OR_RETURN(Spec spec, specOf(op, config));
  Chosen chosen{spec, lengths.maxima()};
  if (tokensQ > 0)
    chosen.maxima.tokensQ = tokensQ;
  NSA_RETURN_IF_ERROR(checkLengthFlags(chosen.spec, chosen.maxima));
  return chosen;
}

void addInputFiles(CLI::App &command, std::string &configPath, std::string &inputPath) {
  command
      .add_option("--config", configPath,
                  std::string(kConfigValue) +
                      ": what the tensors do not say; what they do say is compared. Keys: " + configKeys())
      ->required()
      ->type_name("FILE");
  command
      .add_option(
          "--input", inputPath,
          "Safetensors file: the operator's inputs by the names of nsa.h (q, k_win else k, ..., cu_seqlens_q; of "
          "decode with the cache: k_sel_cache else k_cache, ..., cache_seqlens, in pages block_table)")
      ->required()
      ->type_name("FILE");
}

Result<OperatorFile> readInputs(Operator op, const std::string &configPath, const std::string &inputPath) {
  NSA_ASSIGN_OR_RETURN(ConfigFile config, readConfig(configPath));
  NSA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(inputPath));
  return readOperatorFile(op, config, file);
}

std::vector<nlohmann::json> kernelReports(const nlohmann::json &report) {
  if (!report.contains("kernels"))
    return {report};
  return report["kernels"].get<std::vector<nlohmann::json>>();
}

CLI::Option *EngineFlags::addDevice(CLI::App &command, const std::string &more) {
  settings.device.clear();
  return command
      .add_option("--device", settings.device,
                  "cpu or cuda:N (default: NSA_DEVICE, else a usable GPU, else cpu)" + more)
      ->type_name("DEVICE");
}

void EngineFlags::addCache(CLI::App &command) {
  command
      .add_option("--cache", settings.cachePath,
                  "Database of kernels (default: NSA_CACHE_DIR/kernels.db, else in the user's cache folder)")
      ->type_name("FILE");
}

void EngineFlags::addMiss(CLI::App &command) {
  static const std::vector<std::pair<std::string, nsa_miss_policy>> kPolicies = {{"default", NSA_MISS_DEFAULT},
                                                                                 {"fail", NSA_MISS_FAIL},
                                                                                 {"tune", NSA_MISS_TUNE},
                                                                                 {"background", NSA_MISS_BACKGROUND}};
  command
      .add_option_function<nsa_miss_policy>(
          "--miss", [this](const nsa_miss_policy &policy) { settings.missPolicy = policy; },
          "When no kernel is stored: default (compile the best guess), fail, tune, or background (tune on a thread) "
          "(default: NSA_MISS, else default)")
      ->transform(namedValue(kPolicies))
      ->type_name("POLICY");
  command
      .add_option(
          "--fallbacks", settings.fallbacks,
          "What may serve in the place of a kernel of the problem's own: all, exact (nothing), or a comma list of "
          "nearest, model, architecture, compiled, cpu (default: NSA_FALLBACKS, else all)")
      ->type_name("STEPS");
}

CLI::Option *EngineFlags::addKernelBudget(CLI::App &command) {
  return command
      .add_option("--kernel-budget", settings.tuneBudgetSeconds,
                  "Seconds that the tuning of each kernel may take (default: NSA_TUNE_BUDGET, else 30, or a day for an "
                  "exhaustive search)")
      ->check(secondsAbove0())
      ->type_name("SECONDS");
}

std::vector<std::string> compileTargets() {
  std::vector<std::string> names;
  for (const TargetDef &target : kTargets)
    names.emplace_back(target.name);
  return names;
}

void addSettings(CLI::App &command, std::vector<std::string> &settings, const std::string &help) {
  command.add_option("--set", settings, help)
      ->check(CLI::Validator(
          [](std::string &text) {
            return text.find('=') == std::string::npos || text.front() == '=' || text.back() == '='
                       ? "'" + text + "' is not NAME=VALUE"
                       : "";
          },
          ""))
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
}

Result<std::map<std::string, std::string>> settingsOf(const std::vector<std::string> &settings) {
  std::map<std::string, std::string> values;
  for (const std::string &setting : settings) {
    const size_t equals = setting.find('=');
    if (!values.emplace(setting.substr(0, equals), setting.substr(equals + 1)).second)
      return Status::invalid("--set", setting, "names a value that was set before");
  }
  return values;
}

void addCompilerOption(CLI::App &command, std::string &path) {
  command.add_option("--compiler", path, "libnsa_compiler.so (default: NSA_COMPILER, else beside libnsa.so)")
      ->type_name("FILE");
}

std::string compileTargetsText() { return targetNames(" or "); }

std::string millisecondsText(double milliseconds) {
  char text[32];
  if (milliseconds > 0 && milliseconds < 1) {
    std::snprintf(text, sizeof text, "%.3g ms", milliseconds);
    return text;
  }
  const int decimals = milliseconds < 10 ? 2 : milliseconds < 100 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f ms", decimals, milliseconds);
  return text;
}

std::string prunedText(const nlohmann::json &candidates) {
  std::map<std::string, size_t> reasons;
  for (const nlohmann::json &candidate : candidates)
    if (candidate.value("outcome", "") == "pruned") {
      const PrunedCandidates pruned = parsePruned(candidate.value("detail", ""));
      reasons[pruned.reason] += pruned.count;
    }
  std::string text;
  for (const auto &[reason, count] : reasons)
    text += std::to_string(count) + " more " + (count == 1 ? "was " : "were ") + reason + "\n";
  return text;
}

void printText(const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::max(std::vsnprintf(nullptr, 0, format, again), 0)) + 1, '\0');
  va_end(again);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  text.pop_back(); // the null
  text = printable(text, "\n\t");
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void printError(const std::string &text) {
  std::fflush(stdout); // what was printed before stands before the error, also where both go into one pipe
  std::fprintf(stderr, "%s %s\n", coloured(STDERR_FILENO, Colour::kRed, "nsa:").c_str(),
               printable(text, "\n\t").c_str());
}

void printWarning(const std::string &text) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s %s\n", coloured(STDERR_FILENO, Colour::kYellow, "nsa:").c_str(),
               printable(text, "\n\t").c_str());
}

Status writeJson(const std::string &path, const nlohmann::ordered_json &value) {
  const std::string text = value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (path.empty()) {
    std::printf("%s", text.c_str());
    return Status::ok();
  }
  return writeText(path, text);
}

void printJson(const nlohmann::json &value) {
  std::printf("%s\n", value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

} // namespace nsa::tools
