#include "tools/nsa/command/command.h"

#include "runtime/base/text.h"
#include "runtime/engine/tune/pruned_candidates.h"
#include "runtime/model/targets.h"
#include "tools/nsa/files/file_io.h"
#include "tools/support/number_option.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace nsa::tools {

void addOperatorFlag(CLI::App &command, Operator &op, OperatorChoice choice) {
  std::vector<std::pair<std::string, Operator>> operators;
  const auto offered = choice == OperatorChoice::kKernels ? operatorTable() : publicOperators();
  for (const OperatorDef &def : offered)
    operators.emplace_back(def.name, def.op);
  addOption(command, "--op OP", op, "The operator: " + namesOf(offered))
      ->required()
      ->transform(namedValue(std::move(operators)));
}

void LengthFlags::add(CLI::App &command, CLI::Option *other) {
  const std::string without = other ? "without " + other->get_name() : "";
  const auto about = [&](const std::string &text, const std::string &more = "") {
    const std::string inner = without + (without.empty() || more.empty() ? "" : "; ") + more;
    return text + (inner.empty() ? "" : " (" + inner + ")");
  };
  CLI::Option *options[] = {
      addOption(command, "--batch N", batch, about("Sequences"), wholeAbove0())->capture_default_str(),
      addOption(command, "--seqlen-q N", seqlenQ, about("Queries of one sequence", "default: as many as keys"),
                wholeFrom0()),
      addOption(command, "--seqlen-k N", seqlenK, about("Keys of one sequence"), wholeFrom0())->capture_default_str()};
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
  addConfig(command, configPath, configKeys())->required();
  CLI::Option *input = addOption(command, "--input FILE", inputPath,
                                 "Safetensors file whose shapes fill in what the configuration leaves out");
  lengths.add(command, input);
  addOption(command, "--tokens-q N", tokensQ,
            "Queries of all sequences together (default: as many as --batch times --seqlen-q)", wholeAbove0())
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
  addConfig(command, configPath,
            "what the tensors do not say; what they do say is compared. Keys: " + std::string(configKeys()))
      ->required();
  addOption(command, "--input FILE", inputPath,
            "Safetensors file: the operator's inputs by the names of nsa.h (q, k_win else k, ..., cu_seqlens_q; of "
            "decode with the cache: k_sel_cache else k_cache, ..., cache_seqlens, in pages block_table)")
      ->required();
}

Result<OperatorFile> readInputs(Operator op, const std::string &configPath, const std::string &inputPath) {
  NSA_ASSIGN_OR_RETURN(ConfigFile config, readConfig(configPath));
  NSA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(inputPath));
  return readOperatorFile(op, config, file);
}

void addJsonFlag(CLI::App &verb, bool &json) { verb.add_flag("--json", json, "Print a JSON report instead of text"); }

std::vector<nlohmann::json> kernelReports(const nlohmann::json &report) {
  if (!report.contains("kernels"))
    return {report};
  return report["kernels"].get<std::vector<nlohmann::json>>();
}

CLI::Option *EngineFlags::addDevice(CLI::App &command, const std::string &more) {
  settings.device.clear();
  return addOption(command, "--device DEVICE", settings.device,
                   "cpu or cuda:N (default: NSA_DEVICE, else a usable GPU, else cpu)" + more);
}

void EngineFlags::addCache(CLI::App &command) { addCacheFlag(command, settings.cachePath); }

void addCacheFlag(CLI::App &verb, std::string &path, const std::string &what) {
  addOption(verb, "--cache FILE", path, what + " (default: NSA_CACHE_DIR/kernels.db, else in the user's cache folder)");
}

void EngineFlags::addMiss(CLI::App &command) {
  addOption(command, "--miss POLICY", settings.missPolicy,
            "When no kernel is stored: default (compile the best guess), fail, tune, or background (tune on a thread) "
            "(default: NSA_MISS, else default)")
      ->transform(namedValue<nsa_miss_policy>({{"default", NSA_MISS_DEFAULT},
                                               {"fail", NSA_MISS_FAIL},
                                               {"tune", NSA_MISS_TUNE},
                                               {"background", NSA_MISS_BACKGROUND}}));
  addOption(command, "--fallbacks STEPS", settings.fallbacks,
            "What may serve in the place of a kernel of the problem's own: all, exact (nothing), or a comma list of "
            "nearest, model, architecture, compiled, cpu (default: NSA_FALLBACKS, else all)");
}

CLI::Option *EngineFlags::addKernelBudget(CLI::App &command) {
  return addOption(command, "--kernel-budget SECONDS", settings.tuneBudgetSeconds,
                   "Seconds that the tuning of each kernel may take (default: NSA_TUNE_BUDGET, else 30, or a day for "
                   "an exhaustive search)",
                   secondsAbove0());
}

CLI::Validator compileTarget() {
  std::vector<std::string> names;
  for (const TargetDef &target : kTargets)
    names.emplace_back(target.name);
  return CLI::IsMember(std::move(names)).description("");
}

void addSettings(CLI::App &command, std::vector<std::string> &settings, const std::string &help) {
  const auto isSetting = [](std::string &text) {
    return text.find('=') == std::string::npos || text.front() == '=' || text.back() == '='
               ? "'" + text + "' is not NAME=VALUE"
               : "";
  };
  addOption(command, "--set NAME=VALUE", settings, help, CLI::Validator(isSetting, ""))->expected(1)->take_all();
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
  addOption(command, "--compiler FILE", path, "libnsa_compiler.so (default: NSA_COMPILER, else beside libnsa.so)");
}

std::string compileTargetsText() { return targetNames(" or "); }

std::string formatNumber(const char *format, double number) {
  char text[32];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string millisecondsText(double milliseconds) {
  if (milliseconds > 0 && milliseconds < 1)
    return formatNumber("%.3g ms", milliseconds);
  return formatNumber(milliseconds < 10 ? "%.2f ms" : milliseconds < 100 ? "%.1f ms" : "%.0f ms", milliseconds);
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

namespace {

// Prints "nsa: TEXT" on stderr. On a terminal that can show it, "nsa:" is bold and in the given colour, unless the
// variable NO_COLOR is not empty (https://no-color.org).
void printBehindName(const char *colour, const std::string &text) {
  const auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  const bool isPlain = isatty(STDERR_FILENO) == 0 || !variable("NO_COLOR").empty() || variable("TERM").empty() ||
                       variable("TERM") == "dumb";
  std::fflush(stdout); // what was printed before stands before this, also where both go into one pipe
  std::fprintf(stderr, "%snsa:%s %s\n", isPlain ? "" : colour, isPlain ? "" : "\033[0m",
               printable(text, "\n\t").c_str());
}

} // namespace

void printError(const std::string &text) { printBehindName("\033[1;31m", text); }
void printWarning(const std::string &text) { printBehindName("\033[1;33m", text); }

Status writeOutput(const std::string &path, std::string_view text) {
  if (!path.empty())
    return writeText(path, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status::ok(); // a lost stdout is found at the end of every verb
}

Status writeJson(const std::string &path, const nlohmann::ordered_json &value) {
  return writeOutput(path, value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void printJson(const nlohmann::json &value) {
  std::printf("%s\n", value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

} // namespace nsa::tools
