#include "cache/kernel_store.h"

#include "cache/database_file.h"
#include "cache/fork_fence.h"
#include "cache/schema.h"
#include "runtime/base/digest.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include <zstd.h>

namespace nsa {

namespace {

using sqlite::Query;

// Kernels are a few hundred KiB and read on every start: the level trades a few ms once for a small file.
constexpr int kCompressionLevel = 12;
// No kernel is near this; a damaged size must not become an allocation.
constexpr int64_t kMaxBinaryBytes = int64_t{256} << 20;

constexpr const char *kSelectKernel = "SELECT manifest, binary_bytes, binary, digest FROM kernels WHERE content = ?1";
constexpr const char *kListKernels =
    "SELECT content, template, operator, target, config, length(binary), binary_bytes FROM kernels ORDER BY content";
// The same content twice is the same kernel, but the row that stands may be damaged: write it again.
constexpr const char *kPutKernel =
    "INSERT INTO kernels (content, template, operator, target, config, manifest, binary_bytes, binary, digest)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    " ON CONFLICT (content) DO UPDATE SET template = excluded.template, operator = excluded.operator,"
    " target = excluded.target, config = excluded.config, manifest = excluded.manifest,"
    " binary_bytes = excluded.binary_bytes, binary = excluded.binary, digest = excluded.digest";

// A choice and its evidence come from one statement, so from one moment of the database.
#define NSA_SELECT_CHOICES                                                                                             \
  "SELECT c.problem, c.device, c.content, c.tuned, c.provenance,"                                                      \
  " e.template, e.config, e.outcome, e.milliseconds, e.ratio, e.detail, e.position IS NOT NULL"                        \
  " FROM choices AS c LEFT JOIN evidence AS e USING (problem, device)"
constexpr const char *kSelectChoice = NSA_SELECT_CHOICES " WHERE c.problem = ?1 AND c.device = ?2 ORDER BY e.position";
constexpr const char *kListChoices = NSA_SELECT_CHOICES " ORDER BY c.problem, c.device, e.position";
#undef NSA_SELECT_CHOICES

constexpr const char *kTunedContent = "SELECT content FROM choices WHERE problem = ?1 AND device = ?2 AND tuned = 1";
constexpr const char *kPutChoice =
    "INSERT INTO choices (problem, device, content, tuned, provenance) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT (problem, device) DO UPDATE SET content = excluded.content, tuned = excluded.tuned,"
    " provenance = excluded.provenance";
constexpr const char *kDeleteEvidence = "DELETE FROM evidence WHERE problem = ?1 AND device = ?2";
constexpr const char *kPutEvidence =
    "INSERT INTO evidence (problem, device, position, template, config, outcome, milliseconds, ratio, detail)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

// Over everything that a launch trusts, the name included, so that rows cannot trade places.
Digest::Bytes digestOf(const StoredKernel &kernel) {
  return Digest().field(kernel.content).field(kernel.manifest).field(kernel.binary).finish();
}

bool decompress(std::span<const std::byte> compressed, int64_t size, std::vector<std::byte> &result) {
  if (size < 0 || size > kMaxBinaryBytes ||
      ZSTD_getFrameContentSize(compressed.data(), compressed.size()) != static_cast<unsigned long long>(size))
    return false;
  result.resize(static_cast<size_t>(size));
  size_t written = ZSTD_decompress(result.data(), result.size(), compressed.data(), compressed.size());
  return !ZSTD_isError(written) && written == result.size();
}

Result<std::vector<std::byte>> compress(std::span<const std::byte> bytes) {
  std::vector<std::byte> result(ZSTD_compressBound(bytes.size()));
  size_t written = ZSTD_compress(result.data(), result.size(), bytes.data(), bytes.size(), kCompressionLevel);
  if (ZSTD_isError(written))
    return Status::error(ErrorCode::kInternal, std::string("zstd: ") + ZSTD_getErrorName(written));
  result.resize(written);
  return result;
}

// sqlite stores a NaN as NULL, which the column refuses; neither it nor infinity is a measurement.
double finiteOrZero(double value) { return std::isfinite(value) ? value : 0; }

} // namespace

struct KernelStore::State final : ForkFence::Member {
  explicit State(const Options &options) : askedReadOnly(options.readOnly), lockedWait(options.lockedWait) {
    std::unique_lock fence = ForkFence::hold();
    file = openDatabaseFile(options.path, askedReadOnly, lockedWait);
    ForkFence::join(*this);
  }
  ~State() {
    std::unique_lock fence = ForkFence::hold();
    ForkFence::leave(*this);
    file.connection.close();
  }

  DatabaseFile file;
  const bool askedReadOnly;
  const std::chrono::milliseconds lockedWait;
  bool replaced = false; // a file is replaced once per store: what breaks twice is not the file
  StoreCounters counters;
  mutable std::mutex mutex;

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
        state.file = openDatabaseFile(state.file.path, state.askedReadOnly, state.lockedWait);
    }

  private:
    std::lock_guard<std::mutex> lock;
  };
  bool isInMemory() const { return file.path == ":memory:"; }

  enum class RowState { kIntact, kMissing, kDamaged };
  int readKernel(const std::string &content, StoredKernel &kernel, RowState &row);
  int readChoices(Query &query, std::vector<StoredChoice> &choices);
  int writeKernel(const StoredKernel &kernel, const Manifest &manifest, std::span<const std::byte> compressed);
  int writeChoice(const StoredChoice &choice);
  Status write(const StoredKernel &kernel, const Manifest &manifest, std::span<const std::byte> compressed,
               const StoredChoice *choice);

  // Runs `body` between BEGIN IMMEDIATE and COMMIT; all or nothing of it is kept.
  template <typename Body> int transact(Body body);

  // The error of the call that gave `code`, with what that means for the file.
  Status failed(int code) {
    Status status = Status::error(ErrorCode::kIoError, "cache file '" + file.path + "': " + sqlite3_errstr(code));
    noteFailure(code);
    return status;
  }
  Status readOnlyError() const {
    return Status::error(ErrorCode::kIoError, "cache file '" + file.path + "' is open for reading only");
  }
  // Counts what sqlite calls corrupt. Such a file stays so: it makes room for a new one.
  void noteFailure(int code);
};

int KernelStore::State::readKernel(const std::string &content, StoredKernel &kernel, RowState &row) {
  Query query(file.connection, kSelectKernel);
  query.bind(1, content);
  row = RowState::kMissing;
  if (!query.step())
    return query.code();
  kernel.content = content;
  kernel.manifest = query.text(0);
  row = RowState::kDamaged;
  if (!decompress(query.bytes(2), query.integer(1), kernel.binary))
    return SQLITE_OK;
  Digest::Bytes digest = digestOf(kernel);
  std::span<const std::byte> stored = query.bytes(3);
  if (std::equal(stored.begin(), stored.end(), digest.begin(), digest.end()))
    row = RowState::kIntact;
  return SQLITE_OK;
}

int KernelStore::State::readChoices(Query &query, std::vector<StoredChoice> &choices) {
  while (query.step()) {
    std::string problem = query.text(0), device = query.text(1);
    if (choices.empty() || choices.back().problem != problem || choices.back().device != device)
      choices.push_back(
          {std::move(problem), std::move(device), query.text(2), query.integer(3) == 1, query.text(4), {}});
    if (query.integer(11) == 1)
      choices.back().evidence.push_back(
          {query.text(5), query.text(6), query.text(7), query.real(8), query.real(9), query.text(10)});
  }
  return query.code();
}

int KernelStore::State::writeKernel(const StoredKernel &kernel, const Manifest &manifest,
                                    std::span<const std::byte> compressed) {
  std::string config = formatValues(manifest.config);
  Digest::Bytes digest = digestOf(kernel);
  return Query(file.connection, kPutKernel)
      .bind(1, kernel.content)
      .bind(2, manifest.templateName)
      .bind(3, manifest.op)
      .bind(4, manifest.target)
      .bind(5, config)
      .bind(6, kernel.manifest)
      .bind(7, static_cast<int64_t>(kernel.binary.size()))
      .bind(8, compressed)
      .bind(9, std::span<const std::byte>(digest))
      .run();
}

int KernelStore::State::writeChoice(const StoredChoice &choice) {
  if (!choice.tuned) {
    std::string tuned;
    {
      Query query(file.connection, kTunedContent);
      query.bind(1, choice.problem).bind(2, choice.device);
      if (query.step())
        tuned = query.text(0);
      if (query.code() != SQLITE_OK)
        return query.code();
    }
    // A tuned choice whose kernel cannot be read serves nobody: then the default takes its place, or every
    // process would compile it again.
    if (!tuned.empty()) {
      StoredKernel kernel;
      RowState row;
      int code = readKernel(tuned, kernel, row);
      if (code != SQLITE_OK || row == RowState::kIntact)
        return code;
    }
  }
  int code = Query(file.connection, kPutChoice)
                 .bind(1, choice.problem)
                 .bind(2, choice.device)
                 .bind(3, choice.content)
                 .bind(4, int64_t{choice.tuned})
                 .bind(5, choice.provenance)
                 .run();
  if (code == SQLITE_OK)
    code = Query(file.connection, kDeleteEvidence).bind(1, choice.problem).bind(2, choice.device).run();
  for (size_t i = 0; code == SQLITE_OK && i < choice.evidence.size(); ++i) {
    const Measurement &measurement = choice.evidence[i];
    code = Query(file.connection, kPutEvidence)
               .bind(1, choice.problem)
               .bind(2, choice.device)
               .bind(3, static_cast<int64_t>(i))
               .bind(4, measurement.templateName)
               .bind(5, measurement.config)
               .bind(6, measurement.outcome)
               .bind(7, finiteOrZero(measurement.milliseconds))
               .bind(8, finiteOrZero(measurement.ratioToIncumbent))
               .bind(9, measurement.detail)
               .run();
  }
  return code;
}

template <typename Body> int KernelStore::State::transact(Body body) {
  int code = Query(file.connection, "BEGIN IMMEDIATE").run();
  if (code == SQLITE_OK)
    code = body();
  if (code == SQLITE_OK)
    code = Query(file.connection, "COMMIT").run();
  if (code != SQLITE_OK)
    file.connection.execute("ROLLBACK");
  return code;
}

Status KernelStore::State::write(const StoredKernel &kernel, const Manifest &manifest,
                                 std::span<const std::byte> compressed, const StoredChoice *choice) {
  int code = transact([&] {
    int result = writeKernel(kernel, manifest, compressed);
    return result == SQLITE_OK && choice ? writeChoice(*choice) : result;
  });
  return code == SQLITE_OK ? Status::ok() : failed(code);
}

void KernelStore::State::noteFailure(int code) {
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
  file = openDatabaseFile(file.path, false, lockedWait, damaged);
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
  std::vector<StoredChoice> choices;
  int code;
  {
    Query query(state->file.connection, kSelectChoice);
    query.bind(1, problem).bind(2, device);
    code = state->readChoices(query, choices);
  }
  if (code == SQLITE_OK && !choices.empty()) {
    ++state->counters.hits;
    return std::optional<StoredChoice>(std::move(choices.front()));
  }
  ++state->counters.misses;
  state->noteFailure(code);
  return std::optional<StoredChoice>();
}

Result<std::optional<StoredKernel>> KernelStore::findKernel(const std::string &content) {
  State::Use use(*state);
  StoredKernel kernel;
  State::RowState row;
  int code = state->readKernel(content, kernel, row);
  if (code == SQLITE_OK && row == State::RowState::kIntact) {
    ++state->counters.hits;
    return std::optional<StoredKernel>(std::move(kernel));
  }
  ++state->counters.misses;
  if (row == State::RowState::kDamaged)
    ++state->counters.damagedRows;
  state->noteFailure(code);
  return std::optional<StoredKernel>();
}

Status KernelStore::put(const StoredKernel &kernel, const StoredChoice *choice) {
  auto fail = [&](Status status) {
    std::lock_guard lock(state->mutex);
    ++state->counters.failedWrites;
    return status;
  };
  if (kernel.content.empty())
    return fail(Status::invalid("content", "''", "must name the kernel"));
  if (kernel.binary.size() > static_cast<size_t>(kMaxBinaryBytes))
    return fail(Status::invalid("binary", std::to_string(kernel.binary.size()) + " bytes",
                                "must be at most " + std::to_string(kMaxBinaryBytes) + " bytes"));
  if (choice && choice->content != kernel.content)
    return fail(Status::invalid("choice.content", "'" + choice->content + "'",
                                "must be that of the kernel put with it, '" + kernel.content + "'"));
  Result<Manifest> manifest = Manifest::parse(kernel.manifest);
  if (!manifest)
    return fail(manifest.status());
  Result<std::vector<std::byte>> compressed = compress(kernel.binary);
  if (!compressed)
    return fail(compressed.status());

  State::Use use(*state);
  if (state->file.readOnly) {
    ++state->counters.failedWrites;
    return state->readOnlyError();
  }
  Status status = state->write(kernel, *manifest, *compressed, choice);
  if (!status.isOk())
    ++state->counters.failedWrites;
  return status;
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

Result<std::vector<KernelSummary>> KernelStore::listKernels() {
  std::vector<KernelSummary> kernels;
  State::Use use(*state);
  int code;
  {
    Query query(state->file.connection, kListKernels);
    while (query.step())
      kernels.push_back({query.text(0), query.text(1), query.text(2), query.text(3), query.text(4), query.integer(5),
                         query.integer(6)});
    code = query.code();
  }
  if (code == SQLITE_OK)
    return kernels;
  return state->failed(code);
}

Result<std::vector<StoredChoice>> KernelStore::listChoices() {
  std::vector<StoredChoice> choices;
  State::Use use(*state);
  int code;
  {
    Query query(state->file.connection, kListChoices);
    code = state->readChoices(query, choices);
  }
  if (code == SQLITE_OK)
    return choices;
  return state->failed(code);
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

std::string KernelStore::trouble() const {
  std::lock_guard lock(state->mutex);
  return state->file.warning;
}

} // namespace nsa
