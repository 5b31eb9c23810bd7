#include "cache/pack.h"

#include "cache/database/fork_fence.h"
#include "cache/pack/pack_file.h"
#include "cache/rows/choice_rows.h"
#include "cache/rows/kernel_rows.h"
#include "cache/rows/route_rows.h"

#include <mutex>

namespace nsa {

namespace {

Result<PackFile> openChecked(const std::string &path, const SignatureRules &rules) {
  Result<PackFile> file = PackFile::open(path);
  if (!file)
    return file;
  NSA_RETURN_IF_ERROR(file->checkSignatures(rules));
  NSA_RETURN_IF_ERROR(file->checkDigest());
  return file;
}

} // namespace

struct Pack::State final : ForkFence::Member {
  mutable std::mutex mutex;
  PackFile file;
  SignatureRules rules;
  std::string trouble;
  StoreCounters counters;

  // An immutable file has no locks to lose, but sqlite may read it at a position that both sides would share.
  void lockAndClose() override {
    mutex.lock();
    file.connection.close();
  }
  void unlock() override { mutex.unlock(); }

  // Runs `body` on the connection. A failure of sqlite's is a damaged row, and what was read is dropped.
  template <typename Value, typename Body> Value use(Body body) {
    std::lock_guard lock(mutex);
    Value value{};
    if (!file.connection && trouble.empty())
      openAgain();
    if (!file.connection)
      return value;
    if (body(value) == SQLITE_OK)
      return value;
    ++counters.damagedRows;
    return Value();
  }

  void openAgain() {
    Result<PackFile> fresh = openChecked(file.path, rules);
    if (!fresh)
      trouble = fresh.status().toString();
    else if (fresh->facts.digest != file.facts.digest)
      trouble = packError(file.path, "it was replaced by another one in use").toString();
    else
      file = std::move(*fresh);
  }
};

Pack::Pack(std::unique_ptr<State> state) : state(std::move(state)) {}

Pack::~Pack() {
  std::unique_lock fence = ForkFence::hold();
  ForkFence::leave(*state);
  state->file.connection.close();
}

Result<std::unique_ptr<Pack>> Pack::open(const std::string &path, const SignatureRules &rules) {
  auto state = std::make_unique<State>();
  state->rules = rules;
  {
    std::unique_lock fence = ForkFence::hold(); // no fork while there is a connection that it does not know
    NSA_ASSIGN_OR_RETURN(state->file, openChecked(path, rules));
    ForkFence::join(*state);
  }
  return std::unique_ptr<Pack>(new Pack(std::move(state)));
}

std::optional<StoredChoice> Pack::findChoice(const std::string &problem, const std::string &device) {
  return state->use<std::optional<StoredChoice>>([&](std::optional<StoredChoice> &choice) {
    const StoredChoice *known = state->file.index.choice(problem, device);
    ++(known ? state->counters.hits : state->counters.misses);
    if (!known)
      return SQLITE_OK;
    choice = *known;
    std::optional<StoredChoice> row; // for its evidence, which is for people
    const sqlite::ShortValues shortOnly(state->file.connection);
    const int code = readChoice(state->file.connection, problem, device, row);
    if (row)
      choice->evidence = std::move(row->evidence);
    return code;
  });
}

std::optional<StoredKernel> Pack::findKernel(const std::string &content) {
  return state->use<std::optional<StoredKernel>>([&](std::optional<StoredKernel> &found) {
    const PackIndex::Kernel *known = state->file.index.kernel(content);
    StoredKernel kernel;
    RowState row = RowState::kMissing;
    const int code = known ? readKernel(state->file.connection, content, kernel, row, &known->digest) : SQLITE_OK;
    const bool isIntact = code == SQLITE_OK && row == RowState::kIntact;
    ++(isIntact ? state->counters.hits : state->counters.misses);
    if (isIntact)
      found = std::move(kernel);
    return known && !isIntact && code == SQLITE_OK ? SQLITE_CORRUPT : code;
  });
}

std::optional<StoredRoute> Pack::findRoute(const std::string &family, const std::string &device,
                                           const std::string &name) {
  return state->use<std::optional<StoredRoute>>([&](std::optional<StoredRoute> &route) {
    const StoredRoute *known = state->file.index.route(family, device, name);
    if (!known)
      return SQLITE_OK;
    route = *known;
    std::optional<StoredRoute> row;
    const sqlite::ShortValues shortOnly(state->file.connection);
    const int code = readRoute(state->file.connection, family, device, name, row);
    if (row)
      route->evidence = std::move(row->evidence);
    return code;
  });
}

void Pack::summarizeChoices(const std::string &op, int layer, std::vector<ChoiceSummary> &choices) {
  const std::vector<ChoiceSummary> found =
      state->use<std::vector<ChoiceSummary>>([&](std::vector<ChoiceSummary> &rows) {
        state->file.index.summarizeChoices(op, layer, rows);
        return SQLITE_OK;
      });
  choices.insert(choices.end(), found.begin(), found.end());
}

std::vector<StoredRoute> Pack::listRoutes() {
  return state->use<std::vector<StoredRoute>>([&](std::vector<StoredRoute> &routes) {
    routes = state->file.index.listRoutes();
    return SQLITE_OK;
  });
}

std::string Pack::path() const { return state->file.path.string(); }

std::string Pack::warning() const {
  std::lock_guard lock(state->mutex);
  return state->file.signatureWarning(state->rules);
}

std::string Pack::trouble() const {
  std::lock_guard lock(state->mutex);
  return state->trouble;
}

StoreCounters Pack::counters() const {
  std::lock_guard lock(state->mutex);
  return state->counters;
}

} // namespace nsa
