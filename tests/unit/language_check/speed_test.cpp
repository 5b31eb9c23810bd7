// How long the front end takes: a kernel's text to the tile dialect in at most 3 ms. The test prints the times; the
// limit that it holds leaves room for busy machines and for builds that are not optimised.
#include "compiler/dialect/TileProgram.h"
#include "compiler/language/lowering/Lower.h"
#include "compiler/render/Candidates.h"
#include "compiler/render/TileHeader.h"

#include "compiler/check/CheckedProblems.h"
#include "compiler/driver/Target.h"
#include "compiler/driver/TileFiles.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

namespace nsa {
namespace {

#ifdef NDEBUG
constexpr double kMostMilliseconds = 12;
#else
constexpr double kMostMilliseconds = 200;
#endif
constexpr int kRuns = 15;

double millisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

language::GivenValues valuesOf(const language::SyntaxTree &kernel, const language::LibraryResolver &libraries) {
  const Target &target = **Target::find("sm_90a");
  std::set<std::string, std::less<>> assumed;
  language::Diagnostics diagnostics;
  const auto fixed = fixedNames(language::filesOf(kernel, libraries, diagnostics));
  for (const CheckedProblem &problem : checkedProblems(kernel, fixed, {}, assumed)) {
    Values values = target.values(operatorName(problem.op), problem.dtype, 1);
    values.set("dtype", std::string(dtypeName(problem.dtype)));
    for (const auto &[name, value] : problem.fixed)
      values.set(name, value);
    if (const auto candidates = enumerateCandidates(*readTileHeader(kernel), values, {}, target.limits()))
      return candidates->front().values.all();
  }
  ADD_FAILURE() << "no configuration of " << kernel.kernel->name.text << "\n" << diagnostics.toString();
  return {};
}

TEST(LanguageSpeed, AKernelIsReadTypedAndLoweredSoon) {
  mlir::DialectRegistry registry;
  tile::registerTileProgramDialects(registry);
  for (const auto &entry : std::filesystem::directory_iterator(NSA_SOURCE_DIR "/templates/tile")) {
    if (entry.path().extension() != ".tile")
      continue;
    const std::string path = entry.path().string();
    TileFiles files;
    const language::SyntaxTree &kernel = **files.read(path);
    const language::GivenValues values = valuesOf(kernel, files.libraries(path));
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    std::vector<double> times;
    for (int i = 0; i < kRuns; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      TileFiles again;
      language::Diagnostics &found = again.diagnostics();
      const language::SyntaxTree &tree = **again.read(path);
      const auto module = language::lowerTileProgram(tree, again.libraries(path), values, context, found);
      times.push_back(millisecondsSince(begin));
      EXPECT_TRUE(module) << found.toString();
    }
    std::ranges::sort(times);
    std::printf("%-22s %.2f ms, the median of %d\n", entry.path().filename().c_str(), times[kRuns / 2], kRuns);
    EXPECT_LT(times[kRuns / 2], kMostMilliseconds) << path;
  }
}

} // namespace
} // namespace nsa
