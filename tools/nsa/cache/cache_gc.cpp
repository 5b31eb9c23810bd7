// `nsa cache gc`: makes a database smaller.
#include "tools/nsa/cache/cache_verbs.h"
#include "tools/support/number_option.h"

#include "cache/cache_file.h"
#include "cache/kernel_store.h"

#include <memory>

namespace nsa::tools {
namespace {

struct CollectionFlags {
  std::string path;
  int64_t maxBytes = 0;
  int64_t olderThanDays = -1;
  bool tuned = false, dryRun = false, json = false;
};

Result<CollectionReport> collectFrom(const std::string &path, const CollectionRules &rules, bool dryRun) {
  {
    // Read first: opening to write would put a new file in the place of a damaged one.
    NSA_ASSIGN_OR_RETURN(CacheFile file, CacheFile::open(path));
    if (file.isPack())
      return Status::error(ErrorCode::kIoError, "'" + path + "' is a pack, which never changes",
                           "export another one from a smaller database");
    if (dryRun)
      return file.wouldCollect(rules);
  }
  std::string warning;
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<KernelStore> store, KernelStore::open({.path = path}, warning));
  // Whatever it warns of, the file's own rows are out of reach.
  if (!warning.empty())
    return Status::error(ErrorCode::kIoError, warning);
  return store->collect(rules);
}

Status collectGarbage(const CollectionFlags &flags) {
  NSA_ASSIGN_OR_RETURN(std::string path, cachePathOf(flags.path));
  CollectionRules rules;
  rules.maxBytes = flags.maxBytes;
  if (flags.olderThanDays >= 0)
    rules.maxIdleDays = flags.olderThanDays;
  rules.tuned = flags.tuned;
  NSA_ASSIGN_OR_RETURN(CollectionReport report, collectFrom(path, rules, flags.dryRun));
  const bool isWithin = flags.maxBytes == 0 || report.bytesAfter <= flags.maxBytes;
  if (flags.json) {
    nlohmann::json removed = nlohmann::json::array();
    for (const CollectedKernel &each : report.removed) {
      removed.push_back(toJson(each.kernel));
      removed.back()["reason"] = each.reason;
    }
    printJson({{"path", path},
               {"dry_run", flags.dryRun},
               {"removed", removed},
               {"removed_choices", report.choices},
               {"bytes_before", report.bytesBefore},
               {"bytes_after", report.bytesAfter},
               {"within_limit", isWithin}});
    return Status::ok();
  }
  for (const CollectedKernel &each : report.removed)
    printText("%s %.12s  %s %s %s: %s\n", flags.dryRun ? "would remove" : "removed", each.kernel.content.c_str(),
              each.kernel.op.c_str(), each.kernel.templateName.c_str(), each.kernel.config.c_str(),
              each.reason.c_str());
  printText("%s: %s and %s %sremoved, %s in use of %s before\n", path.c_str(),
            countText(static_cast<int64_t>(report.removed.size()), "kernel").c_str(),
            countText(report.choices, "choice").c_str(), flags.dryRun ? "would be " : "",
            bytesText(report.bytesAfter).c_str(), bytesText(report.bytesBefore).c_str());
  if (!isWithin)
    printText("still more than %s: %s\n", bytesText(flags.maxBytes).c_str(),
              flags.tuned ? "that is the least a database needs" : "tuned kernels stay (--tuned removes them too)");
  return Status::ok();
}

} // namespace

void addCacheGc(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<CollectionFlags>(
      cache, action, "gc",
      "Make a database smaller: kernels that no choice names, and on request kernels that were not used for long",
      collectGarbage);
  addCacheFlag(verb, flags.path);
  addOption(verb, "--max-bytes SIZE", flags.maxBytes,
            "Remove the least recently used kernels until the file is no larger (64MB, 1GiB, ...)")
      ->transform(sizeInBytes());
  addOption(verb, "--older-than-days DAYS", flags.olderThanDays, "Remove kernels that were last used more days ago",
            wholeFrom0());
  verb.add_flag("--tuned", flags.tuned,
                "Kernels of tuned choices, and kernels that have nothing to measure, may go, too");
  verb.add_flag("--dry-run", flags.dryRun, "Change nothing, only say what would be removed");
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
