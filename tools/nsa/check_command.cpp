// `nsa check` and `nsa fmt`: files of the tile language are checked and laid out, without a device and without a cache.
#include "tools/nsa/command/command.h"
#include "tools/nsa/files/file_io.h"

#include "runtime/base/text.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/options/options.h"

#include <algorithm>
#include <cstdio>

namespace nsa::tools {
namespace {

// The compiler refuses longer programs with a message that names this limit.
constexpr uint64_t kMostBytes = (uint64_t{16} << 20) + 1;

constexpr const char *kProgramFiles = "Kernels or libraries (docs/language.md)";

struct CheckFlags {
  std::vector<std::string> paths, settings;
  std::string target, compilerPath;
  bool explains = false, json = false;
};

struct FormatFlags {
  std::vector<std::string> paths;
  std::string compilerPath;
  bool isCheck = false;
};

Result<std::shared_ptr<const CompilerLibrary>> openCompiler(const std::string &path) {
  nsa::EngineOptions options;
  options.compilerPath = path;
  NSA_RETURN_IF_ERROR(options.resolve(nsa::EngineOptions::processEnvironment()));
  return CompilerLibrary::open(options.compilerPath);
}

Result<ExitCode> check(const CheckFlags &flags) {
  ProgramCheckRequest request;
  request.target = flags.target;
  request.explains = flags.explains;
  NSA_ASSIGN_OR_RETURN(request.values, settingsOf(flags.settings));
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<const CompilerLibrary> compiler, openCompiler(flags.compilerPath));
  bool isGood = true;
  nlohmann::json list = nlohmann::json::array();
  for (const std::string &path : flags.paths) {
    request.path = path;
    NSA_ASSIGN_OR_RETURN(const ProgramReport report, compiler->check(request));
    isGood &= report.isGood;
    if (flags.json) {
      list.push_back({{"file", path}, {"ok", report.isGood}, {"messages", report.messages}, {"text", report.text}});
      continue;
    }
    std::fputs(printable(report.messages, "\n\t").c_str(), stderr);
    std::fputs(report.text.c_str(), stdout);
  }
  if (flags.json)
    printJson({{"files", list}});
  return isGood ? ExitCode::kDone : ExitCode::kFailed;
}

// The number of the first line that two texts do not share.
size_t firstDifference(std::string_view left, std::string_view right) {
  const auto [place, other] = std::ranges::mismatch(left, right);
  return static_cast<size_t>(1 + std::count(left.begin(), place, '\n'));
}

Result<ExitCode> format(const FormatFlags &flags) {
  NSA_ASSIGN_OR_RETURN(const std::shared_ptr<const CompilerLibrary> compiler, openCompiler(flags.compilerPath));
  bool isGood = true;
  for (const std::string &path : flags.paths) {
    NSA_ASSIGN_OR_RETURN(const std::string text, readText(path, kMostBytes));
    NSA_ASSIGN_OR_RETURN(const ProgramReport report, compiler->format(path, text));
    std::fputs(printable(report.messages, "\n\t").c_str(), stderr);
    if (!report.isGood) {
      isGood = false;
    } else if (report.text != text && flags.isCheck) {
      isGood = false;
      std::fprintf(stderr, "%s:%zu: is not laid out as `nsa fmt` does it\n", path.c_str(),
                   firstDifference(text, report.text));
    } else if (report.text != text) {
      NSA_RETURN_IF_ERROR(writeText(path, report.text));
    }
  }
  return isGood ? ExitCode::kDone : ExitCode::kFailed;
}

} // namespace

void addCheckCommand(CLI::App &app, Action &action) {
  auto [verb, flags] = addVerb<CheckFlags>(app, action, "check",
                                           "Check files of the tile language for all targets; needs no device", check);
  verb.add_option("FILE", flags.paths, kProgramFiles)->required()->type_name("");
  verb.add_flag("--explain", flags.explains,
                "Print what the text does not say: the axes of each value, what of it exists, fills and edges");
  addOption(verb, "--target TARGET", flags.target, compileTargetsText(), compileTarget());
  addSettings(verb, flags.settings,
              "A value of the problem or a choice, e.g. columns=1000; may be repeated (default: usual sizes, and the "
              "choices that are predicted to be the fastest)");
  addCompilerOption(verb, flags.compilerPath);
  addJsonFlag(verb, flags.json);
}

void addFmtCommand(CLI::App &app, Action &action) {
  auto [verb, flags] =
      addVerb<FormatFlags>(app, action, "fmt", "Lay out files of the tile language in the one way", format);
  verb.footer("A file with a syntax error is left alone, and the error is printed.");
  verb.add_option("FILE", flags.paths, kProgramFiles)->required()->type_name("");
  verb.add_flag("--check", flags.isCheck, "Change no file, and fail if one is laid out otherwise");
  addCompilerOption(verb, flags.compilerPath);
}

} // namespace nsa::tools
