#include "compiler/check/ProgramCheck.h"

#include "compiler/check/KernelNames.h"
#include "compiler/cpu/Cpu.h"
#include "compiler/dialect/Diagnostics.h"
#include "compiler/dialect/TileProgram.h"
#include "compiler/language/lowering/Lower.h"
#include "compiler/language/types/Explain.h"
#include "compiler/passes/Passes.h"
#include "runtime/base/cpu_features.h"
#include "runtime/base/text.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>

namespace nsa {

namespace {

using language::Diagnostic;
using language::Diagnostics;
using language::GivenValues;
using language::SourceRange;

// Configurations that are predicted to be slower than so many others are not tried where those need too much memory.
constexpr size_t kMostTries = 64;

mlir::DialectRegistry dialects() {
  mlir::DialectRegistry registry;
  tile::registerTileProgramDialects(registry);
  return registry;
}

std::string textOf(const GivenValues &values) {
  std::string text;
  for (const auto &[name, value] : values)
    text.append(text.empty() ? "" : " ").append(name).append("=").append(value);
  return text;
}

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'); }

// Takes "file:line:column: " from the front of a line of a message: the word that stands there.
SourceRange takePlace(std::string_view &line, const TileFiles &files) {
  const std::string_view whole = line;
  const size_t end = line.find(": ");
  const size_t second = end == std::string_view::npos ? end : line.rfind(':', end - 1);
  const size_t first = second == std::string_view::npos || second == 0 ? second : line.rfind(':', second - 1);
  uint32_t number = 0, column = 0;
  if (first == std::string_view::npos || !parseInteger(line.substr(first + 1, second - first - 1), number) ||
      !parseInteger(line.substr(second + 1, end - second - 1), column))
    return {};
  const language::SourceFile *file = files.find(line.substr(0, first));
  line.remove_prefix(end + 2);
  if (!file || number < 1 || number > file->lineCount()) {
    line = whole;
    return {};
  }
  // Columns count characters.
  uint32_t begin = file->lineBegin(number);
  for (uint32_t i = 1; i < column && begin < file->text().size(); ++i)
    begin += std::max<uint32_t>(1, language::firstCharacter(file->text().substr(begin)).length);
  uint32_t past = begin;
  while (past < file->text().size() && isLetter(file->text()[past]))
    ++past;
  return {file, begin, std::max(past, std::min<uint32_t>(begin + 1, static_cast<uint32_t>(file->text().size())))};
}

// The declaration of a line, or what it asks for.
SourceRange declarationAt(const language::SyntaxTree &kernel, int line) {
  for (const language::Item *item : kernel.items) {
    if (static_cast<int>(item->range.position().line) != line)
      continue;
    const auto *require = language::asIf<language::RequireItem>(item);
    return require ? require->condition->range : item->range;
  }
  return kernel.kernel->name.range;
}

} // namespace

void reportHeader(const language::SyntaxTree &kernel, const Status &error, Diagnostics &diagnostics) {
  const ErrorInfo &info = error.error();
  int line = 0;
  const std::string_view place = info.value;
  if (info.code != ErrorCode::kCompileFailed || !parseInteger(place.substr(place.rfind(':') + 1), line))
    line = 0;
  Diagnostic &message = diagnostics.error(declarationAt(kernel, line), line ? info.rule : error.toString());
  if (line && !info.hint.empty())
    message.hint(info.hint);
}

ProgramCheck::ProgramCheck(const language::SyntaxTree &kernel, TemplateHeader header,
                           const language::LibraryResolver &libraries, const TileFiles &files, bool explains)
    : kernel(kernel), header(std::move(header)), libraries(libraries), files(files), explains(explains),
      context(dialects(), mlir::MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
}

std::string ProgramCheck::describe(const Target &target, const GivenValues &problem, const GivenValues &choices) {
  std::string text(target.name);
  for (const GivenValues *values : {&problem, &choices})
    if (!values->empty())
      text += (values == &problem ? ", " : "; ") + textOf(*values);
  return text;
}

Status ProgramCheck::run(const Target &target, const std::vector<CheckedProblem> &problems) {
  NSA_ASSIGN_OR_RETURN(const int lanes, target.isGpu ? Result<int>(1) : cpuVectorLanes(hostCpuFeatures()));
  // Of each operator and type one problem has to be served.
  for (size_t i = 0; i < problems.size();) {
    bool isServed = false;
    Exclusion last;
    const CheckedProblem &first = problems[i];
    for (; i < problems.size() && problems[i].op == first.op && problems[i].dtype == first.dtype; ++i)
      isServed |= check(target, lanes, problems[i], last);
    if (isServed)
      continue;
    Diagnostics diagnostics;
    Diagnostic &message = diagnostics.error(declarationAt(kernel, last.line), "no configuration is left");
    // The line says what a `require` asks for, but not what other lines may say.
    if (!last.values.empty())
      message.note((last.rule.starts_with("require") ? "it does not hold" : last.rule) + " for " + last.values);
    ++programCount;
    GivenValues shown = first.fixed;
    shown.try_emplace("dtype", dtypeName(first.dtype));
    keep(diagnostics, describe(target, shown, {}));
  }
  return Status::ok();
}

bool ProgramCheck::check(const Target &target, int lanes, const CheckedProblem &problem, Exclusion &last) {
  const Values known = target.values(operatorName(problem.op), problem.dtype, lanes);
  GivenValues values = problem.fixed;
  values.try_emplace("dtype", dtypeName(problem.dtype));
  for (const DriverValue &value : driverValues())
    if (const std::string *text = known.find(value.name))
      values.insert_or_assign(std::string(value.name), *text);
  if (kernel.kernel->operators.empty())
    values.erase("op");

  GivenValues shown = problem.fixed;
  shown.try_emplace("dtype", dtypeName(problem.dtype));
  if (!kernel.kernel->operators.empty())
    shown.insert_or_assign("op", values["op"]);
  Values fixed;
  for (const auto &[name, value] : values)
    fixed.set(name, value);
  std::map<std::string, std::string> pinned;
  for (const TemplateHeader::Choice &choice : header.choices)
    if (const auto given = problem.fixed.find(choice.name); given != problem.fixed.end())
      pinned.insert(*given);
  TemplateExclusion excluding;
  const Result<std::vector<TemplateCandidate>> candidates =
      enumerateCandidates(header, fixed, pinned, target.limits(), &excluding);
  if (!candidates) {
    const Status status = candidates.status();
    if (status.code() == ErrorCode::kUnsupported) {
      last = {excluding.place.line, excluding.rule, status.error().value};
      return false;
    }
    Diagnostics declared;
    if (status.code() == ErrorCode::kInvalidArgument && !kernel.kernel->operators.empty())
      reportFixed(kernel, problem.op, status.error().field, declared);
    if (!declared.hasErrors())
      reportHeader(kernel, status, declared);
    ++programCount;
    keep(declared, describe(target, shown, {}));
    return true;
  }
  std::string sharedMemory;
  const size_t tries = std::min(kMostTries, candidates->size());
  for (size_t i = 0; i < tries; ++i) {
    GivenValues choices, given = values;
    for (const auto &[name, value] : (*candidates)[i].config) {
      given.insert_or_assign(name, value);
      if (!pinned.contains(name))
        choices.emplace(name, value);
    }
    Diagnostics diagnostics;
    if (explains && explanationText.empty())
      if (const auto program = language::typeProgram(kernel, libraries, given, diagnostics))
        explanationText = describe(target, shown, choices) + "\n" + language::explain(*program);
    Diagnostics compiled;
    const Outcome outcome = compile(target, given, compiled, sharedMemory);
    if (outcome == Outcome::kTooLarge && i + 1 < tries)
      continue;
    if (outcome == Outcome::kTooLarge) {
      Diagnostic &message = *reportMlir(sharedMemory, compiled);
      message.text = "no configuration fits: " + message.text.substr(0, message.text.find(':'));
      message.hint("require shared_bytes <= shared_limit, with a const shared_bytes that counts the tiles, excludes "
                   "configurations that do not fit");
    }
    ++programCount;
    keep(compiled, describe(target, shown, choices));
    break;
  }
  return true;
}

// Makes no CUDA and no machine code.
ProgramCheck::Outcome ProgramCheck::compile(const Target &target, const GivenValues &values, Diagnostics &diagnostics,
                                            std::string &sharedMemory) {
  mlir::OwningOpRef<mlir::ModuleOp> module =
      language::lowerTileProgram(kernel, libraries, values, context, diagnostics);
  if (!module)
    return Outcome::kDone;
  tile::DiagnosticText text(context);
  if (mlir::failed(mlir::verify(*module))) {
    reportMlir(text.text(), diagnostics);
    return Outcome::kDone;
  }
  if (target.isGpu) {
    mlir::PassManager manager(&context);
    tile::buildGpuPipeline(manager, target.sharedBytesPerBlock);
    if (mlir::succeeded(manager.run(*module)))
      return Outcome::kDone;
    if (text.text().find("error: needs ") != std::string::npos) {
      sharedMemory = text.text();
      return Outcome::kTooLarge;
    }
    reportMlir(text.text(), diagnostics);
    return Outcome::kDone;
  }
  Timings timings;
  const Result<cpu::CpuKernel> made =
      cpu::compileForCpu(*module, {.features = "", .stage = cpu::CpuStage::kScheduled}, timings);
  if (!made)
    reportMlir(made.status().error().message, diagnostics);
  return Outcome::kDone;
}

// What MLIR says about the operations of a program, as messages about the text that they come from. Returns the last.
Diagnostic *ProgramCheck::reportMlir(const std::string &text, Diagnostics &diagnostics) const {
  Diagnostic *message = nullptr;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty())
      continue;
    const SourceRange place = takePlace(line, files);
    const bool isNote = line.starts_with("note: ") && message;
    if (const size_t begin = line.find(": "); line.starts_with("note: ") || line.starts_with("error: "))
      line.remove_prefix(begin + 2);
    if (isNote)
      message->note(place, std::string(line));
    else
      message = &diagnostics.error(place.file ? place : kernel.kernel->name.range, std::string(line));
  }
  return message;
}

void ProgramCheck::keep(const Diagnostics &diagnostics, const std::string &where) {
  for (const Diagnostic &message : diagnostics.list()) {
    const std::string text = message.toString();
    const auto found = std::ranges::find(kept, text, &Message::text);
    if (found != kept.end()) {
      ++found->count;
      continue;
    }
    if (message.severity == language::Severity::kError)
      ++errorCount;
    kept.push_back({text, where, 1});
  }
}

std::string ProgramCheck::messages() const {
  std::string text;
  size_t shown = 0;
  for (const Message &message : kept) {
    if (shown++ == Diagnostics::kMostErrors)
      return text + "too many messages: the rest is left out\n";
    text += message.text;
    if (message.count < programCount)
      text += "note: for " + message.where + "\n";
  }
  return text;
}

} // namespace nsa
