// `nsa cache stats`: how much a file holds of what.
#include "tools/nsa/cache/cache_verbs.h"

#include "cache/statistics.h"

#include <chrono>
#include <cstdio>

namespace nsa::tools {
namespace {

std::string dateText(int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()));
  return text;
}

nlohmann::json dateJson(const std::optional<int64_t> &day) {
  return day ? nlohmann::json(dateText(*day)) : nlohmann::json();
}

void printCounts(const char *title, const std::map<std::string, int64_t> &counts) {
  for (const auto &[name, count] : counts)
    printText("  %-9s %6lld  %s\n", title, static_cast<long long>(count), name.c_str());
}

Status stats(const FileFlags &flags) {
  NSA_ASSIGN_OR_RETURN(CacheFile file, openCache(flags.path));
  NSA_ASSIGN_OR_RETURN(const CacheStatistics counts, summarizeCache(file));
  const double share =
      counts.choices ? static_cast<double>(counts.tunedChoices) / static_cast<double>(counts.choices) : 0;
  if (flags.json) {
    nlohmann::json report = {{"path", file.path()},
                             {"kind", file.isPack() ? "pack" : "database"},
                             {"file_bytes", counts.fileBytes},
                             {"used_bytes", counts.usedBytes},
                             {"kernels", counts.kernels},
                             {"unnamed_kernels", counts.unnamedKernels},
                             {"compressed_bytes", counts.compressedBytes},
                             {"binary_bytes", counts.binaryBytes},
                             {"choices", counts.choices},
                             {"tuned_choices", counts.tunedChoices},
                             {"tuned_share", share},
                             {"remade_choices", counts.remadeChoices},
                             {"measurements", counts.measurements},
                             {"routes", counts.routes},
                             {"choices_by_device", counts.choicesByDevice},
                             {"choices_by_operator", counts.choicesByOperator},
                             {"kernels_by_target", counts.kernelsByTarget},
                             {"first_use", dateJson(counts.firstUse)},
                             {"last_use", dateJson(counts.lastUse)}};
    if (file.isPack())
      report["source"] = file.pack().source;
    printJson(report);
    return Status::ok();
  }
  printText("%s: a %s of %s, %s in use\n", file.path().c_str(), file.isPack() ? "pack" : "database",
            bytesText(counts.fileBytes).c_str(), bytesText(counts.usedBytes).c_str());
  printText("%s (%lld that no choice names), %s compressed, %s unpacked\n", countText(counts.kernels, "kernel").c_str(),
            static_cast<long long>(counts.unnamedKernels), bytesText(counts.compressedBytes).c_str(),
            bytesText(counts.binaryBytes).c_str());
  printText("%s, %.0f %% of them tuned; %s; %s\n", countText(counts.choices, "choice").c_str(), 100 * share,
            countText(counts.measurements, "measurement").c_str(), countText(counts.routes, "route").c_str());
  if (counts.remadeChoices)
    printText("%s measured by an earlier revision of the compiler, compiled again since: nsa tune measures again\n",
              countText(counts.remadeChoices, "choice").c_str());
  if (counts.lastUse)
    printText("kernels last used from %s to %s\n", dateText(*counts.firstUse).c_str(),
              dateText(*counts.lastUse).c_str());
  printCounts("device", counts.choicesByDevice);
  printCounts("operator", counts.choicesByOperator);
  printCounts("target", counts.kernelsByTarget);
  return Status::ok();
}

} // namespace

void addCacheStats(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<FileFlags>(
      cache, action, "stats",
      "Rows and bytes, by device, operator and target; what was tuned and when kernels were used", stats);
  flags.add(verb, kDatabaseOrPack);
}

} // namespace nsa::tools
