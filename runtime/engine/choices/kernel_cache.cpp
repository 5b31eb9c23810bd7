#include "runtime/engine/choices/kernel_cache.h"

#include <cerrno>
#include <sys/stat.h>

namespace nsa {

namespace {
constexpr std::string_view kInMemory = ":memory:";
} // namespace

KernelCache::KernelCache(CacheSettings settings, Logger logger)
    : settings(std::move(settings)), logger(std::move(logger)) {}

KernelStore *KernelCache::store() {
  std::string warning, note;
  KernelStore *result = nullptr;
  {
    std::lock_guard lock(mutex);
    if (tried)
      return opened.get();
    tried = true;
    KernelStore::Options options;
    options.path = settings.path;
    options.maxBytes = settings.maxBytes;
    Result<std::unique_ptr<KernelStore>> fresh = KernelStore::open(options, warning);
    if (fresh) {
      opened = std::move(*fresh);
      note = opened->note();
    } else {
      warning = notOpened = fresh.status().toString();
    }
    result = opened.get();
  }
  if (!warning.empty())
    warn(warning);
  if (!note.empty())
    logger.log(LogLevel::kInfo, "cache", note);
  return result;
}

bool KernelCache::isOpen() const {
  std::lock_guard lock(mutex);
  return tried;
}

bool KernelCache::isMissing() const {
  struct stat ignored;
  return !isOpen() && ::stat(settings.path.c_str(), &ignored) != 0 && errno == ENOENT;
}

std::unique_ptr<KernelStore> KernelCache::openToRead(std::string &trouble) const {
  KernelStore::Options options;
  options.path = settings.path;
  options.readOnly = true;
  options.takeBack = true;
  Result<std::unique_ptr<KernelStore>> fresh = KernelStore::open(options, trouble);
  if (fresh)
    return std::move(*fresh);
  trouble = fresh.status().toString();
  return nullptr;
}

const KernelCache::Packs &KernelCache::packs() {
  std::call_once(packsTried, [this] { openPacks(); });
  return openedPacks;
}

void KernelCache::openPacks() {
  for (const std::string &path : settings.packs) {
    Result<std::unique_ptr<Pack>> pack = Pack::open(path, settings.signatures);
    if (pack) {
      if (const std::string warning = (*pack)->warning(); !warning.empty())
        warn(warning);
      openedPacks.push_back(std::move(*pack));
    } else {
      ++refusedPacks;
      warn(pack.status().toString());
    }
  }
  packsReady = true;
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
    warn("cache file '" + settings.path +
         "' holds damaged rows; they are skipped, and written anew when they are compiled again");
}

void KernelCache::warnOfTrouble(const Pack &pack) {
  if (const std::string trouble = pack.trouble(); !trouble.empty())
    warn(trouble);
  if (pack.counters().damagedRows != 0)
    warn("pack '" + pack.path() + "' holds damaged rows; they are skipped (`nsa cache verify` names them)");
}

void KernelCache::open() {
  if (!isMissing())
    store();
}

void KernelCache::noteUse(const Hit &hit) {
  packHits += hit.kernelLayer > 0;
  std::lock_guard lock(mutex);
  if (opened)
    opened->noteUse(hit.kernel.content);
}

KernelStore *KernelCache::look(std::unique_ptr<KernelStore> &own) {
  if (isOpen())
    return store();
  if (isMissing())
    return nullptr;
  std::string warning;
  own = openToRead(warning);
  if (!warning.empty())
    warn(warning);
  return own.get();
}

std::optional<KernelCache::Hit> KernelCache::find(const std::string &problem, const std::string &device) {
  std::unique_ptr<KernelStore> own;
  KernelStore *from = look(own);
  std::vector<Hit> untuned; // in the order in which they would serve
  // Returns the hit if it serves at once. A choice whose kernel is in no layer cannot serve.
  const auto take = [&](std::optional<StoredChoice> choice, int layer) -> std::optional<Hit> {
    if (!choice)
      return std::nullopt;
    Hit hit{std::move(*choice), {}, layer};
    if (hit.choice.tuned)
      return addKernel(from, hit) ? std::optional(std::move(hit)) : std::nullopt;
    untuned.push_back(std::move(hit));
    return std::nullopt;
  };
  if (from) {
    std::optional<Hit> hit = take(orWarn(from->findChoice(problem, device)), 0);
    warnOfTrouble(*from);
    if (hit)
      return hit;
  }
  int layer = 0;
  for (const std::unique_ptr<Pack> &pack : packs()) {
    std::optional<Hit> hit = take(pack->findChoice(problem, device), ++layer);
    warnOfTrouble(*pack);
    if (hit)
      return hit;
  }
  for (Hit &hit : untuned)
    if (addKernel(from, hit))
      return std::move(hit);
  return std::nullopt;
}

bool KernelCache::addKernel(KernelStore *from, Hit &hit) {
  const auto add = [&](std::optional<StoredKernel> kernel, int layer) {
    if (!kernel)
      return false;
    hit.kernel = std::move(*kernel);
    hit.kernelLayer = layer;
    return true;
  };
  if (from) {
    const bool isThere = add(orWarn(from->findKernel(hit.choice.content, /*isUse=*/false)), 0);
    warnOfTrouble(*from);
    if (isThere)
      return true;
  }
  int layer = 0;
  for (const std::unique_ptr<Pack> &pack : packs()) {
    const bool isThere = add(pack->findKernel(hit.choice.content), ++layer);
    warnOfTrouble(*pack);
    if (isThere)
      return true;
  }
  return false;
}

std::vector<ChoiceSummary> KernelCache::choicesOf(const std::string &op) {
  std::unique_ptr<KernelStore> own;
  KernelStore *from = look(own);
  std::vector<ChoiceSummary> choices;
  if (from)
    choices = orWarn(from->summarizeChoices(op));
  int layer = 0;
  for (const std::unique_ptr<Pack> &pack : packs())
    pack->summarizeChoices(op, ++layer, choices);
  return choices;
}

std::optional<StoredRoute> KernelCache::findRoute(const std::string &family, const std::string &device,
                                                  const std::string &name) {
  std::unique_ptr<KernelStore> own;
  if (KernelStore *from = look(own))
    if (std::optional<StoredRoute> route = orWarn(from->findRoute(family, device, name)))
      return route;
  for (const std::unique_ptr<Pack> &pack : packs())
    if (std::optional<StoredRoute> route = pack->findRoute(family, device, name))
      return route;
  return std::nullopt;
}

Status KernelCache::put(const StoredKernel &kernel, const StoredChoice *choice) {
  KernelStore *into = store();
  return into ? written(*into, into->put(kernel, choice)) : Status::error(ErrorCode::kIoError, trouble());
}

Status KernelCache::putRoute(const StoredRoute &route) {
  KernelStore *into = store();
  return into ? written(*into, into->putRoute(route)) : Status::error(ErrorCode::kIoError, trouble());
}

Status KernelCache::checkKept() {
  KernelStore *into = store();
  if (into && !into->isReadOnly() && (into->path() != kInMemory || settings.path == kInMemory))
    return Status::ok();
  return Status::error(ErrorCode::kIoError, "what is made would not be kept: " + trouble(),
                       "name a database that can be written (--cache, NSA_CACHE_DIR)");
}

Status KernelCache::written(const KernelStore &into, Status status) {
  // That the file cannot be written was said when it was opened.
  if (!status.isOk() && !into.isReadOnly())
    warn(status.toString());
  warnOfTrouble(into);
  // The store keeps its rows in memory when it cannot use the file.
  if (status.isOk() && into.path() == kInMemory && settings.path != kInMemory)
    return Status::error(ErrorCode::kIoError, trouble());
  return status;
}

std::unique_ptr<KeyLease> KernelCache::lease(const std::string &problem, const std::string &device,
                                             const std::string &work) {
  KernelStore *in = store();
  return in ? std::make_unique<KeyLease>(*in, LeaseKey{problem, device, work}) : nullptr;
}

std::string KernelCache::layerPath(int layer) {
  if (layer == 0)
    return settings.path;
  const Packs &all = packs();
  return static_cast<size_t>(layer) <= all.size() ? all[static_cast<size_t>(layer) - 1]->path() : "";
}

std::string KernelCache::places() {
  const Packs &serving = packs();
  const size_t refused = settings.packs.size() - serving.size();
  std::string text = settings.path;
  if (serving.size() == 1)
    text += " and the pack " + serving.front()->path();
  else if (!serving.empty())
    text += " and " + std::to_string(serving.size()) + " packs";
  if (refused == 1)
    text += ", and one pack was refused";
  else if (refused != 0)
    text += ", and " + std::to_string(refused) + " packs were refused";
  return text;
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

CacheCounters KernelCache::counters() const {
  CacheCounters counters;
  {
    std::lock_guard lock(mutex);
    if (opened)
      static_cast<StoreCounters &>(counters) = opened->counters();
  }
  if (packsReady)
    for (const std::unique_ptr<Pack> &pack : openedPacks)
      counters.damagedRows += pack->counters().damagedRows;
  counters.packHits = packHits;
  counters.refusedPacks = refusedPacks;
  return counters;
}

} // namespace nsa
