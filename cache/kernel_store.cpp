#include "cache/kernel_store.h"

#include "cache/cache_file.h"
#include "cache/database/database_file.h"
#include "cache/database/fork_fence.h"
#include "cache/database/schema.h"
#include "cache/rows/choice_rows.h"
#include "cache/rows/kernel_rows.h"
#include "cache/rows/route_rows.h"
#include "cache/rows/use_rows.h"

#include <mutex>

namespace nsa {

namespace {

using sqlite::Query;

// A store that closes writes down what was used, unless another process is at it: then the next one will.
constexpr std::chrono::milliseconds kClosingWait{50};

} // namespace

struct KernelStore::State final : ForkFence::Member {
  explicit State(const Options &options) : options(options) {
    std::unique_lock fence = ForkFence::hold();
    open(options.path);
    ForkFence::join(*this);
  }
  ~State() {
    std::unique_lock fence = ForkFence::hold();
    ForkFence::leave(*this);
    writeUses();
    file.connection.close();
  }

  DatabaseFile file;
  const Options options;
  bool replaced = false; // a file is replaced once per store: what breaks twice is not the file
  StoreCounters counters;
  UseLog uses;
  mutable std::mutex mutex;

  void open(const std::string &path, std::optional<FileIdentity> damaged = {}) {
    const FileUse use = options.takeBack ? FileUse::kReadMended : FileUse::kRead;
    file =
        openDatabaseFile(path, options.readOnly ? use : FileUse::kWrite, options.lockedWait, options.journal, damaged);
  }
  void lockAndClose() override {
    mutex.lock();
    // What is in memory has no locks to lose; each side goes on with its copy.
    if (isInMemory() || !file.connection)
      return;
    file.connection.leaveFileAlone(); // a fork is no moment to copy a log
    file.connection.close();
  }
  void unlock() override { mutex.unlock(); }

  // The connection for one call.
  class Use {
  public:
    explicit Use(State &state) : lock(state.mutex) {
      if (!state.file.connection)
        state.open(state.file.path);
    }

  private:
    std::lock_guard<std::mutex> lock;
  };
  bool isInMemory() const { return file.path == ":memory:"; }

  // What is left of them when the store closes. Nothing but the order of a later collection depends on it.
  void writeUses();

  // After a put of that kernel, when there is a limit: inside its transaction.
  int makeRoom(const std::string &content, uint64_t &collected);

  // Runs `body` between BEGIN IMMEDIATE and COMMIT; all or nothing of it is kept.
  template <typename Body> int transact(Body body);
  // The same as a status, counted when it fails.
  template <typename Body> Status write(Body body);
  Status failedWrite(Status status) {
    ++counters.failedWrites;
    return status;
  }

  // The error of the call that gave `code`, with what that means for the file.
  Status failed(int code) {
    Status status = Status::error(ErrorCode::kIoError, "cache file '" + file.path + "': " + sqlite3_errstr(code));
    noteFailure(code);
    return status;
  }
  Status readOnlyError() const {
    return Status::error(ErrorCode::kIoError, "cache file '" + file.path + "' is open for reading only");
  }
  // Counts what sqlite calls corrupt. Such a file stays so: it makes room for a new one. One that cannot be locked any
  // more is copied.
  void noteFailure(int code);
};

template <typename Body> int KernelStore::State::transact(Body body) {
  const sqlite::WriteLimit held(file.connection); // once for all of its statements
  int code = Query(file.connection, "BEGIN IMMEDIATE").run();
  if (code == SQLITE_OK)
    code = body();
  if (code == SQLITE_OK)
    code = Query(file.connection, "COMMIT").run();
  if (code != SQLITE_OK)
    file.connection.execute("ROLLBACK");
  return code;
}

template <typename Body> Status KernelStore::State::write(Body body) {
  if (file.readOnly)
    return failedWrite(readOnlyError());
  const int code = transact(body);
  return code == SQLITE_OK ? Status::ok() : failedWrite(failed(code));
}

int KernelStore::State::makeRoom(const std::string &content, uint64_t &collected) {
  if (options.maxBytes == 0)
    return SQLITE_OK;
  int64_t bytes = 0;
  if (const int code = usedBytes(file.connection, bytes); code != SQLITE_OK || bytes <= options.maxBytes)
    return code;
  CollectionReport report;
  CollectionRules rules;
  rules.maxBytes = options.maxBytes;
  rules.unnamed = false;
  rules.keep = content;
  const int code = nsa::collect(file.connection, rules, today(), report);
  collected = report.removed.size();
  return code;
}

void KernelStore::State::writeUses() {
  if (uses.isEmpty() || !file.connection || file.readOnly || isInMemory())
    return;
  file.connection.setBusyTimeout(kClosingWait);
  const int64_t day = today();
  if (uses.leaveOutKnown(file.connection, day) == SQLITE_OK && !uses.isEmpty())
    (void)transact([&] { return uses.write(file.connection, day); });
}

void KernelStore::State::noteFailure(int code) {
  if (isLackOfLocks(code) && !isInMemory()) {
    file.connection.leaveFileAlone();
    file.connection.close();
    file = copyDatabaseFile(file.path);
    return;
  }
  int primary = code & 0xff;
  if (primary != SQLITE_CORRUPT && primary != SQLITE_NOTADB)
    return;
  ++counters.damagedRows;
  if (replaced || file.readOnly || isInMemory())
    return;
  replaced = true;
  FileIdentity damaged = file.identity;
  file.connection.leaveFileAlone();
  file.connection.close();
  open(file.path, damaged);
  if (!isInMemory())
    ++counters.replacedFiles;
}

KernelStore::KernelStore(const Options &options) : state(std::make_unique<State>(options)) {}
KernelStore::~KernelStore() = default;

Result<std::unique_ptr<KernelStore>> KernelStore::open(const Options &options, std::string &warning) {
  warning.clear();
  if (options.path.empty())
    return Status::invalid("cache_path", "''", "must name a file", "':memory:' keeps nothing");
  std::unique_ptr<KernelStore> store(new KernelStore(options));
  State::Use use(*store->state); // a fork may have closed it by now
  warning = store->state->file.warning;
  if (!store->state->file.connection)
    return Status::error(ErrorCode::kOutOfMemory, "sqlite cannot make a database in memory");
  return store;
}

Result<std::optional<StoredChoice>> KernelStore::findChoice(const std::string &problem, const std::string &device) {
  State::Use use(*state);
  std::optional<StoredChoice> choice;
  const int code = readChoice(state->file.connection, problem, device, choice);
  if (code == SQLITE_OK && choice) {
    ++state->counters.hits;
    return choice;
  }
  ++state->counters.misses;
  state->noteFailure(code);
  return std::optional<StoredChoice>();
}

Result<std::optional<StoredKernel>> KernelStore::findKernel(const std::string &content, bool isUse) {
  State::Use use(*state);
  StoredKernel kernel;
  RowState row;
  const int code = readKernel(state->file.connection, content, kernel, row);
  if (code == SQLITE_OK && row == RowState::kIntact) {
    ++state->counters.hits;
    if (isUse)
      state->uses.note(content);
    return std::optional<StoredKernel>(std::move(kernel));
  }
  ++state->counters.misses;
  if (row == RowState::kDamaged)
    ++state->counters.damagedRows;
  state->noteFailure(code);
  return std::optional<StoredKernel>();
}

void KernelStore::noteUse(const std::string &content) {
  const std::lock_guard lock(state->mutex);
  state->uses.note(content);
}

Status KernelStore::put(const StoredKernel &kernel, const StoredChoice *choice) {
  Result<KernelRow> row = KernelRow::make(kernel); // outside the lock: it compresses
  State::Use use(*state);
  if (!row)
    return state->failedWrite(row.status());
  if (choice && choice->content != kernel.content)
    return state->failedWrite(Status::invalid("choice.content", "'" + choice->content + "'",
                                              "must be that of the kernel put with it, '" + kernel.content + "'"));
  state->uses.note(kernel.content);
  uint64_t collected = 0;
  Status status = state->write([&] {
    int code = writeKernelRow(state->file.connection, *row);
    if (code == SQLITE_OK && choice)
      code = putChoiceRow(state->file.connection, *choice);
    if (code == SQLITE_OK)
      code = state->uses.write(state->file.connection, today());
    return code == SQLITE_OK ? state->makeRoom(kernel.content, collected) : code;
  });
  if (status.isOk()) {
    state->uses.clear();
    state->counters.collectedKernels += collected;
  }
  return status;
}

Status KernelStore::putRoute(const StoredRoute &route) {
  State::Use use(*state);
  for (const auto &[field, value] : {std::pair<const char *, const std::string &>{"route.family", route.family},
                                     {"route.device", route.device},
                                     {"route.name", route.name}})
    if (value.empty())
      return state->failedWrite(Status::invalid(field, "''", "must not be empty"));
  if (route.threshold < StoredRoute::kNever)
    return state->failedWrite(
        Status::invalid("route.threshold", std::to_string(route.threshold), "must be -1 (never) or a size"));
  return state->write([&] { return writeRouteRow(state->file.connection, route); });
}

Result<std::optional<StoredRoute>> KernelStore::findRoute(const std::string &family, const std::string &device,
                                                          const std::string &name) {
  State::Use use(*state);
  std::optional<StoredRoute> route;
  if (const int code = readRoute(state->file.connection, family, device, name, route)) {
    route.reset();
    state->noteFailure(code);
  }
  return route;
}

Result<MergeReport> KernelStore::merge(CacheFile &from, Prefer prefer) {
  State::Use use(*state);
  MergeReport report;
  NSA_RETURN_IF_ERROR(
      state->write([&] { return mergeRows(state->file.connection, from.connection(), prefer, today(), report); }));
  return report;
}

Result<CollectionReport> KernelStore::collect(const CollectionRules &rules) {
  State::Use use(*state);
  if (state->file.readOnly)
    return state->readOnlyError();
  CollectionReport report;
  const int code = state->transact([&] { return nsa::collect(state->file.connection, rules, today(), report); });
  if (code != SQLITE_OK)
    return state->failed(code);
  if (!report.removed.empty())
    state->file.connection.execute("VACUUM"); // fails while another process reads; then the pages serve the next puts
  return report;
}

Result<std::optional<LeaseRow>> KernelStore::findLease(const LeaseKey &key) {
  State::Use use(*state);
  if (state->file.readOnly)
    return state->readOnlyError();
  std::optional<LeaseRow> row;
  if (int code = readLease(state->file.connection, key, row))
    return state->failed(code);
  return row;
}

Result<bool> KernelStore::swapLease(const LeaseKey &key, const std::optional<LeaseRow> &expected, const LeaseRow &row) {
  State::Use use(*state);
  if (state->file.readOnly)
    return state->readOnlyError();
  bool swapped = false;
  int code = state->transact([&] {
    std::optional<LeaseRow> current;
    int result = readLease(state->file.connection, key, current);
    swapped = result == SQLITE_OK && current == expected;
    return swapped ? writeLease(state->file.connection, key, row) : result;
  });
  if (code != SQLITE_OK)
    return state->failed(code);
  return swapped;
}

Result<bool> KernelStore::renewLease(const LeaseKey &key, const std::string &owner, int64_t expiresMs) {
  State::Use use(*state);
  if (int code = nsa::renewLease(state->file.connection, key, owner, expiresMs))
    return state->failed(code);
  return state->file.connection.changes() != 0;
}

void KernelStore::dropLease(const LeaseKey &key, const std::string &owner) {
  State::Use use(*state);
  // One that cannot be deleted is not renewed any more.
  if (int code = deleteLease(state->file.connection, key, owner))
    state->noteFailure(code);
}

template <typename Row, typename List> Result<std::vector<Row>> KernelStore::listRows(List list) {
  State::Use use(*state);
  std::vector<Row> rows;
  if (const int code = list(state->file.connection, rows))
    return state->failed(code);
  return rows;
}

Result<std::vector<KernelSummary>> KernelStore::listKernels() { return listRows<KernelSummary>(listKernelRows); }

Result<std::vector<StoredChoice>> KernelStore::listChoices() { return listRows<StoredChoice>(listChoiceRows); }

Result<std::vector<StoredRoute>> KernelStore::listRoutes() { return listRows<StoredRoute>(listRouteRows); }

Result<std::vector<ChoiceSummary>> KernelStore::summarizeChoices(const std::string &op) {
  return listRows<ChoiceSummary>([&](sqlite::Connection &connection, std::vector<ChoiceSummary> &rows) {
    return listChoiceSummaries(connection, op, 0, rows);
  });
}

StoreCounters KernelStore::counters() const {
  std::lock_guard lock(state->mutex);
  return state->counters;
}

std::string KernelStore::path() const {
  std::lock_guard lock(state->mutex);
  return state->file.path;
}

bool KernelStore::isReadOnly() const {
  std::lock_guard lock(state->mutex);
  return state->file.readOnly;
}

std::string KernelStore::note() const {
  std::lock_guard lock(state->mutex);
  return state->file.note;
}

std::string KernelStore::trouble() const {
  std::lock_guard lock(state->mutex);
  return state->file.warning;
}

} // namespace nsa
