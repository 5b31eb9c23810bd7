#include "runtime/engine/choices/pinned_table.h"

#include "cache/database/directories.h"
#include "cache/pack/pack_file.h"
#include "cache/rows/kernel_rows.h"
#include "runtime/base/digest.h"
#include "runtime/base/problem.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <unistd.h>

namespace nsa {

namespace {

Status refused(const std::string &source, const std::string &path, const std::string &reason) {
  ErrorInfo info;
  info.code = ErrorCode::kIoError;
  info.field = source;
  info.value = path;
  info.rule = "must be a readable pack or database of kernels";
  info.message = "the pinned table " + path + " cannot be used: " + reason;
  info.hint = "pin_path (NSA_PIN) must name an intact pack or database; without it choices come from the cache";
  return Status(std::move(info));
}

} // namespace

Result<std::unique_ptr<PinnedTable>> PinnedTable::open(const std::string &source, const std::string &path,
                                                       const SignatureRules &rules) {
  if (!mayAccess(path, R_OK))
    return refused(source, path, "there is no such file that this process may read");
  std::unique_ptr<PinnedTable> table(new PinnedTable(path));
  if (isPackFile(path)) {
    Result<std::unique_ptr<Pack>> opened = Pack::open(path, rules);
    if (!opened)
      return refused(source, path, opened.status().toString());
    table->pack = std::move(*opened);
    table->routes = table->pack->listRoutes();
  } else if (rules.requireSignature) {
    return refused(source, path, "a signature is required, and a database has none");
  } else {
    NSA_RETURN_IF_ERROR(table->openDatabase(source));
  }
  for (const OperatorDef &def : operatorTable()) {
    const std::string name(def.name);
    if (table->pack)
      table->pack->summarizeChoices(name, 0, table->choices);
    else
      table->rows.summarizeChoices(name, 0, table->choices);
  }
  std::sort(table->choices.begin(), table->choices.end(), [](const ChoiceSummary &a, const ChoiceSummary &b) {
    return std::tie(a.problem, a.device) < std::tie(b.problem, b.device);
  });
  return table;
}

Status PinnedTable::openDatabase(const std::string &source) {
  std::string warning;
  Result<std::unique_ptr<KernelStore>> opened = KernelStore::open({.path = file, .readOnly = true}, warning);
  if (!opened)
    return refused(source, file, opened.status().toString());
  if (!warning.empty())
    return refused(source, file, warning);
  store = std::move(*opened);
  if (store->path() == ":memory:") // a torn copy, or one that is just being made
    return refused(source, file, "it is empty");
  Result<std::vector<KernelSummary>> kernels = store->listKernels();
  Result<std::vector<StoredChoice>> stored = store->listChoices();
  Result<std::vector<StoredRoute>> thresholds = store->listRoutes();
  for (const Status &status : {kernels.status(), stored.status(), thresholds.status()})
    if (!status.isOk())
      return refused(source, file, status.toString());
  for (KernelSummary &kernel : *kernels)
    rows.addKernel(std::move(kernel.content),
                   {std::move(kernel.templateName), std::move(kernel.target), std::move(kernel.config), kernel.digest});
  for (StoredChoice &choice : *stored)
    rows.addChoice(std::move(choice));
  for (const StoredRoute &route : *thresholds)
    rows.addRoute(route);
  routes = std::move(*thresholds);
  return Status::ok();
}

std::optional<StoredKernel> PinnedTable::findKernel(const std::string &content) {
  if (pack)
    return pack->findKernel(content);
  const PackIndex::Kernel *pinned = rows.kernel(content);
  Result<std::optional<StoredKernel>> kernel = store->findKernel(content);
  if (!pinned || !kernel || !*kernel || digestOf(**kernel) != pinned->digest)
    return std::nullopt;
  return std::move(*kernel);
}

std::optional<ChoiceSource::Hit> PinnedTable::find(const std::string &problem, const std::string &device) {
  std::optional<StoredChoice> choice;
  if (pack)
    choice = pack->findChoice(problem, device);
  else if (const StoredChoice *pinned = rows.choice(problem, device))
    choice = *pinned;
  std::optional<StoredKernel> kernel;
  if (choice)
    kernel = findKernel(choice->content);
  if (!kernel)
    return std::nullopt;
  const int layer = pack ? 1 : 0;
  return Hit{std::move(*choice), std::move(*kernel), layer, layer};
}

std::optional<StoredRoute> PinnedTable::findRoute(const std::string &family, const std::string &device,
                                                  const std::string &name) {
  if (pack)
    return pack->findRoute(family, device, name);
  const StoredRoute *route = rows.route(family, device, name);
  return route ? std::optional(*route) : std::nullopt;
}

std::vector<ChoiceSummary> PinnedTable::choicesOf(const std::string &op) {
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
        .field(choice.tuned ? "tuned" : "not tuned")
        .field(std::span<const std::byte>(choice.digest));
  for (const StoredRoute &route : routes)
    digest.field("route")
        .field(route.family)
        .field(route.device)
        .field(route.name)
        .field(std::to_string(route.threshold));
  return digest.finishHex();
}

} // namespace nsa
