#include "runtime/engine/kernel_cache.h"

namespace nsa {

namespace {
constexpr std::string_view kInMemory = ":memory:";
} // namespace

KernelCache::KernelCache(std::string path, Logger logger) : file(std::move(path)), logger(std::move(logger)) {}

KernelStore *KernelCache::store() {
  std::string warning;
  KernelStore *result = nullptr;
  {
    std::lock_guard lock(mutex);
    if (tried)
      return opened.get();
    tried = true;
    Result<std::unique_ptr<KernelStore>> fresh = KernelStore::open({.path = file, .readOnly = false}, warning);
    if (fresh)
      opened = std::move(*fresh);
    else
      warning = notOpened = fresh.status().toString();
    result = opened.get();
  }
  if (!warning.empty())
    warn(warning);
  return result;
}

bool KernelCache::isOpen() const {
  std::lock_guard lock(mutex);
  return tried;
}

std::unique_ptr<KernelStore> KernelCache::openToRead(std::string &trouble) const {
  Result<std::unique_ptr<KernelStore>> fresh = KernelStore::open({.path = file, .readOnly = true}, trouble);
  if (fresh)
    return std::move(*fresh);
  trouble = fresh.status().toString();
  return nullptr;
}

void KernelCache::warn(const std::string &text) {
  {
    std::lock_guard lock(mutex);
    if (!warned.insert(text).second)
      return;
  }
  logger.log(LogLevel::kWarning, "cache", text);
}

template <typename T> T KernelCache::orWarn(Result<T> result) {
  if (result)
    return std::move(*result);
  warn(result.status().toString());
  return T();
}

void KernelCache::warnOfTrouble(const KernelStore &store) {
  if (std::string trouble = store.trouble(); !trouble.empty())
    warn(trouble);
  StoreCounters counters = store.counters();
  if (counters.damagedRows != 0 && counters.replacedFiles == 0 && store.path() != kInMemory)
    warn("cache file '" + file +
         "' holds damaged rows; they are skipped, and written anew when they are compiled again");
}

std::optional<KernelCache::Hit> KernelCache::find(const std::string &problem, const std::string &device) {
  KernelStore *from = store();
  return from ? findIn(*from, problem, device) : std::nullopt;
}

KernelStore *KernelCache::look(std::unique_ptr<KernelStore> &own) {
  if (isOpen())
    return store();
  std::string warning;
  own = openToRead(warning);
  if (!warning.empty())
    warn(warning);
  return own.get();
}

std::optional<KernelCache::Hit> KernelCache::peek(const std::string &problem, const std::string &device) {
  std::unique_ptr<KernelStore> own;
  KernelStore *from = look(own);
  return from ? findIn(*from, problem, device) : std::nullopt;
}

std::vector<ChoiceSummary> KernelCache::choicesOf(const std::string &op) {
  std::unique_ptr<KernelStore> own;
  KernelStore *from = look(own);
  return from ? orWarn(from->summarizeChoices(op)) : std::vector<ChoiceSummary>();
}

std::optional<StoredRoute> KernelCache::findRoute(const std::string &family, const std::string &device,
                                                  const std::string &name) {
  std::unique_ptr<KernelStore> own;
  KernelStore *from = look(own);
  return from ? orWarn(from->findRoute(family, device, name)) : std::nullopt;
}

std::optional<KernelCache::Hit> KernelCache::findIn(KernelStore &from, const std::string &problem,
                                                    const std::string &device) {
  std::optional<StoredChoice> choice = orWarn(from.findChoice(problem, device));
  std::optional<StoredKernel> kernel;
  if (choice)
    kernel = orWarn(from.findKernel(choice->content));
  warnOfTrouble(from);
  if (!kernel)
    return std::nullopt;
  return Hit{std::move(*choice), std::move(*kernel)};
}

Status KernelCache::put(const StoredKernel &kernel, const StoredChoice *choice) {
  KernelStore *into = store();
  return into ? written(*into, into->put(kernel, choice)) : Status::error(ErrorCode::kIoError, trouble());
}

Status KernelCache::putRoute(const StoredRoute &route) {
  KernelStore *into = store();
  return into ? written(*into, into->putRoute(route)) : Status::error(ErrorCode::kIoError, trouble());
}

Status KernelCache::written(const KernelStore &into, Status status) {
  // That the file cannot be written was said when it was opened.
  if (!status.isOk() && !into.isReadOnly())
    warn(status.toString());
  warnOfTrouble(into);
  // The store keeps its rows in memory when it cannot use the file.
  if (status.isOk() && into.path() == kInMemory && file != kInMemory)
    return Status::error(ErrorCode::kIoError, trouble());
  return status;
}

std::unique_ptr<KeyLease> KernelCache::lease(const std::string &problem, const std::string &device,
                                             const std::string &work) {
  KernelStore *in = store();
  return in ? std::make_unique<KeyLease>(*in, LeaseKey{problem, device, work}) : nullptr;
}

std::string KernelCache::trouble() const {
  if (!isOpen()) {
    std::string found;
    (void)openToRead(found);
    return found;
  }
  std::lock_guard lock(mutex);
  return opened ? opened->trouble() : notOpened;
}

StoreCounters KernelCache::counters() const {
  std::lock_guard lock(mutex);
  return opened ? opened->counters() : StoreCounters();
}

} // namespace nsa
