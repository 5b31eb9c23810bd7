// `nsa cache list|show`: what a kernel database holds. Reads only, and says so when there is no database.
#include "tools/nsa/command.h"

#include "cache/kernel_store.h"
#include "runtime/engine/options.h"

#include <cstdio>
#include <map>
#include <memory>
#include <sys/stat.h>

namespace nsa::tools {
namespace {

struct CacheFlags {
  std::string path, key;
  bool json = false;
};

Result<std::unique_ptr<KernelStore>> openStore(const CacheFlags &flags) {
  nsa::EngineOptions options;
  options.cachePath = flags.path;
  NSA_RETURN_IF_ERROR(options.resolve(nsa::EngineOptions::processEnvironment()));
  struct stat facts{};
  if (stat(options.cachePath.c_str(), &facts) != 0)
    return Status::error(ErrorCode::kIoError, "no kernel database at " + options.cachePath,
                         "the first `nsa run` or `nsa tune` makes it; another file is chosen with --cache");
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store =
      KernelStore::open({.path = options.cachePath, .readOnly = true}, warning);
  if (store && !warning.empty())
    return Status::error(ErrorCode::kIoError, warning);
  return store;
}

nlohmann::json toJson(const StoredChoice &choice) {
  nlohmann::json evidence = nlohmann::json::array();
  for (const Measurement &measurement : choice.evidence)
    evidence.push_back({{"template", measurement.templateName},
                        {"config", measurement.config},
                        {"outcome", measurement.outcome},
                        {"milliseconds", measurement.milliseconds},
                        {"ratio", measurement.ratioToIncumbent},
                        {"detail", measurement.detail}});
  return {{"problem", choice.problem}, {"device", choice.device},         {"kernel", choice.content},
          {"tuned", choice.tuned},     {"provenance", choice.provenance}, {"evidence", evidence}};
}

Status list(const CacheFlags &flags) {
  Result<std::unique_ptr<KernelStore>> store = openStore(flags);
  if (!store)
    return store.status();
  Result<std::vector<KernelSummary>> kernels = (*store)->listKernels();
  if (!kernels)
    return kernels.status();
  Result<std::vector<StoredChoice>> choices = (*store)->listChoices();
  if (!choices)
    return choices.status();

  if (flags.json) {
    nlohmann::json kernelList = nlohmann::json::array(), choiceList = nlohmann::json::array();
    for (const KernelSummary &kernel : *kernels)
      kernelList.push_back({{"key", kernel.content},
                            {"template", kernel.templateName},
                            {"op", kernel.op},
                            {"target", kernel.target},
                            {"config", kernel.config},
                            {"compressed_bytes", kernel.compressedBytes},
                            {"binary_bytes", kernel.binaryBytes}});
    for (const StoredChoice &choice : *choices)
      choiceList.push_back(toJson(choice));
    printJson({{"path", (*store)->path()}, {"kernels", kernelList}, {"choices", choiceList}});
    return Status::ok();
  }
  std::printf("%s: %zu kernels, %zu choices\n", (*store)->path().c_str(), kernels->size(), choices->size());
  for (const KernelSummary &kernel : *kernels)
    std::printf("kernel %.12s  %-8s %-8s %-16s %s  (%lld bytes, %lld stored)\n", kernel.content.c_str(),
                kernel.target.c_str(), kernel.op.c_str(), kernel.templateName.c_str(), kernel.config.c_str(),
                static_cast<long long>(kernel.binaryBytes), static_cast<long long>(kernel.compressedBytes));
  for (const StoredChoice &choice : *choices)
    std::printf("choice %.12s  %s  %s  [%s]\n", choice.content.c_str(), choice.tuned ? "tuned  " : "default",
                choice.problem.c_str(), choice.device.c_str());
  return Status::ok();
}

void printEvidence(const StoredChoice &choice) {
  std::printf("\nchosen for %s\non %s, %s; %s\n", choice.problem.c_str(), choice.device.c_str(),
              choice.tuned ? "measured" : "not measured", choice.provenance.c_str());
  for (const Measurement &measurement : choice.evidence) {
    if (measurement.outcome == "pruned")
      continue;
    const std::string time = measurement.milliseconds > 0 ? millisecondsText(measurement.milliseconds) : "-";
    std::printf("  %-8s %12s  %s %s%s%s\n", measurement.outcome.c_str(), time.c_str(), measurement.templateName.c_str(),
                measurement.config.c_str(), measurement.detail.empty() ? "" : ": ", measurement.detail.c_str());
  }
  std::printf("%s", prunedText(toJson(choice)["evidence"]).c_str());
}

// The content that `key` begins, if it is exactly one.
Result<std::string> uniqueContent(KernelStore &store, const std::string &key) {
  Result<std::vector<KernelSummary>> kernels = store.listKernels();
  if (!kernels)
    return kernels.status();
  std::vector<std::string> matches;
  for (const KernelSummary &kernel : *kernels)
    if (kernel.content.starts_with(key))
      matches.push_back(kernel.content);
  if (matches.size() == 1)
    return matches.front();
  return Status::invalid("KEY", key,
                         matches.empty()
                             ? "must begin the key of a stored kernel"
                             : "begins the keys of " + std::to_string(matches.size()) + " kernels: give more of it",
                         "`nsa cache list` shows the keys");
}

Status show(const CacheFlags &flags) {
  Result<std::unique_ptr<KernelStore>> store = openStore(flags);
  if (!store)
    return store.status();
  Result<std::string> content = uniqueContent(**store, flags.key);
  if (!content)
    return content.status();
  Result<std::optional<StoredKernel>> kernel = (*store)->findKernel(*content);
  if (!kernel)
    return kernel.status();
  if (!*kernel)
    return Status::error(ErrorCode::kIoError, "kernel " + *content + " is damaged: its digest does not match",
                         "the next run that needs it makes it anew");
  Result<std::vector<StoredChoice>> choices = (*store)->listChoices();
  if (!choices)
    return choices.status();

  if (flags.json) {
    nlohmann::json choiceList = nlohmann::json::array();
    for (const StoredChoice &choice : *choices)
      if (choice.content == *content)
        choiceList.push_back(toJson(choice));
    printJson({{"key", *content},
               {"manifest", (*kernel)->manifest},
               {"binary_bytes", (*kernel)->binary.size()},
               {"choices", choiceList}});
    return Status::ok();
  }
  std::printf("kernel %s, %zu bytes\n\n%s", content->c_str(), (*kernel)->binary.size(), (*kernel)->manifest.c_str());
  for (const StoredChoice &choice : *choices)
    if (choice.content == *content)
      printEvidence(choice);
  return Status::ok();
}

} // namespace

void addCacheCommand(CLI::App &app, Action &action) {
  auto flags = std::make_shared<CacheFlags>();
  CLI::App *command = app.add_subcommand("cache", "Look into a kernel database");
  command->require_subcommand(1);
  CLI::App *listCommand =
      command->add_subcommand("list", "The stored kernels, and which problem on which device chose which");
  CLI::App *showCommand =
      command->add_subcommand("show", "One kernel: manifest, and the measurements behind its choice");
  showCommand->add_option("KEY", flags->key, "The kernel's key or its first digits")->required();
  for (CLI::App *verb : {listCommand, showCommand}) {
    verb->add_option("--cache", flags->path,
                     "Database of kernels (default: NSA_CACHE_DIR/kernels.db, else in the user's cache folder)")
        ->type_name("FILE");
    verb->add_flag("--json", flags->json, "Print a JSON report");
  }
  listCommand->callback([flags, &action] { action = [flags] { return list(*flags); }; });
  showCommand->callback([flags, &action] { action = [flags] { return show(*flags); }; });
}

} // namespace nsa::tools
