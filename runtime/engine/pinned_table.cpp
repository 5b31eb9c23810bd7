#include "runtime/engine/pinned_table.h"

#include "cache/pack_file.h"
#include "runtime/base/digest.h"
#include "runtime/base/problem.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unistd.h>

namespace nsa {

namespace {

Status refused(const std::string &path, const std::string &reason) {
  ErrorInfo info;
  info.code = ErrorCode::kIoError;
  info.field = "pin_path";
  info.value = path;
  info.rule = "must be a readable pack or database of kernels";
  info.message = "the pinned table " + path + " cannot be used: " + reason;
  info.hint = "pin_path (NSA_PIN) must name an intact pack or database; without it choices come from the cache";
  return Status(std::move(info));
}

} // namespace

Result<std::unique_ptr<PinnedTable>> PinnedTable::open(const std::string &path, const SignatureRules &rules) {
  if (access(path.c_str(), R_OK) != 0)
    return refused(path, "there is no such file that this process may read");
  std::unique_ptr<PinnedTable> table(new PinnedTable(path));
  if (isPackFile(path)) {
    Result<std::unique_ptr<Pack>> opened = Pack::open(path, rules);
    if (!opened)
      return refused(path, opened.status().toString());
    table->pack = std::move(*opened);
    for (int op = 0; op < kOperators; ++op)
      table->pack->summarizeChoices(std::string(operatorName(static_cast<Operator>(op))), 0, table->choices);
    table->routes = table->pack->listRoutes();
  } else if (rules.requireSignature) {
    return refused(path, "a signature is required, and a database has none");
  } else {
    NSA_RETURN_IF_ERROR(table->openDatabase());
  }
  std::sort(table->choices.begin(), table->choices.end(), [](const ChoiceSummary &a, const ChoiceSummary &b) {
    return std::tie(a.problem, a.device) < std::tie(b.problem, b.device);
  });
  return table;
}

Status PinnedTable::openDatabase() {
  std::string warning;
  Result<std::unique_ptr<KernelStore>> opened = KernelStore::open({.path = file, .readOnly = true}, warning);
  if (!opened)
    return refused(file, opened.status().toString());
  if (!warning.empty())
    return refused(file, warning);
  store = std::move(*opened);
  if (store->path() == ":memory:") // a torn copy, or one that is just being made
    return refused(file, "it is empty");
  Result<std::vector<KernelSummary>> kernels = store->listKernels();
  Result<std::vector<StoredChoice>> stored = store->listChoices();
  Result<std::vector<StoredRoute>> thresholds = store->listRoutes();
  for (const Status &status : {kernels.status(), stored.status(), thresholds.status()})
    if (!status.isOk())
      return refused(file, status.toString());
  routes = std::move(*thresholds);
  std::map<std::string, const KernelSummary *> byContent;
  for (const KernelSummary &kernel : *kernels)
    byContent[kernel.content] = &kernel;
  for (StoredChoice &choice : *stored)
    if (auto found = byContent.find(choice.content); found != byContent.end())
      choices.push_back({std::move(choice.problem), std::move(choice.device), std::move(choice.content), choice.tuned,
                         found->second->target, found->second->templateName, found->second->config, 0});
  return Status::ok();
}

std::optional<KernelCache::Hit> PinnedTable::find(const std::string &problem, const std::string &device) {
  std::optional<StoredChoice> choice;
  std::optional<StoredKernel> kernel;
  if (pack) {
    choice = pack->findChoice(problem, device);
    if (choice)
      kernel = pack->findKernel(choice->content);
  } else {
    if (Result<std::optional<StoredChoice>> found = store->findChoice(problem, device))
      choice = std::move(*found);
    if (choice)
      if (Result<std::optional<StoredKernel>> found = store->findKernel(choice->content))
        kernel = std::move(*found);
  }
  if (!kernel)
    return std::nullopt;
  return KernelCache::Hit{std::move(*choice), std::move(*kernel)};
}

std::optional<StoredRoute> PinnedTable::findRoute(const std::string &family, const std::string &device,
                                                  const std::string &name) {
  if (pack)
    return pack->findRoute(family, device, name);
  Result<std::optional<StoredRoute>> route = store->findRoute(family, device, name);
  return route ? std::move(*route) : std::nullopt;
}

std::vector<ChoiceSummary> PinnedTable::choicesOf(const std::string &op) const {
  std::vector<ChoiceSummary> result;
  for (const ChoiceSummary &choice : choices)
    if (choice.problem.starts_with(op + " "))
      result.push_back(choice);
  return result;
}

std::string PinnedTable::digest() const {
  Digest digest;
  for (const ChoiceSummary &choice : choices)
    digest.field(choice.problem)
        .field(choice.device)
        .field(choice.templateName)
        .field(choice.config)
        .field(choice.tuned ? "tuned" : "not tuned");
  for (const StoredRoute &route : routes)
    digest.field("route")
        .field(route.family)
        .field(route.device)
        .field(route.name)
        .field(std::to_string(route.threshold));
  return digest.finishHex();
}

} // namespace nsa
