#include "cache/cache_file.h"

#include "cache/database/database_file.h"
#include "cache/database/key_lengths.h"
#include "cache/rows/choice_rows.h"
#include "cache/rows/kernel_rows.h"
#include "cache/rows/route_rows.h"
#include "cache/rows/use_rows.h"

#include <filesystem>

namespace nsa {

namespace {

constexpr std::chrono::milliseconds kLockedWait{20000};

} // namespace

Result<CacheFile> CacheFile::open(const std::string &path, Check check, Empty empty, const SignatureRules &rules) {
  CacheFile file;
  file.name = path;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return Status::error(ErrorCode::kIoError, "there is no kernel database or pack at '" + path + "'",
                         "`nsa run` and `nsa tune` make a database, `nsa cache export` makes a pack");
  if (isPackFile(path)) {
    NSA_ASSIGN_OR_RETURN(PackFile pack, PackFile::open(path));
    NSA_RETURN_IF_ERROR(checkKeyLengths(pack.connection, path));
    if (check == Check::kRows) {
      NSA_RETURN_IF_ERROR(pack.checkSignatures(rules));
      NSA_RETURN_IF_ERROR(pack.checkDigest());
      NSA_RETURN_IF_ERROR(pack.checkEvidence());
      file.unsignedWarning = pack.signatureWarning(rules);
    }
    file.link = std::move(pack.connection);
    file.facts = std::move(pack.facts);
    return file; // nothing changes in it
  }
  DatabaseFile database = openDatabaseFile(path, FileUse::kReadMended, kLockedWait);
  if (!database.warning.empty())
    return Status::error(ErrorCode::kIoError, database.warning);
  if (database.isEmpty && empty == Empty::kRefused)
    return Status::error(ErrorCode::kIoError, "cache file '" + path + "' holds nothing yet: it is empty",
                         "a database that was copied must be copied again; `nsa run` and `nsa tune` fill a new one");
  file.holdsNothing = database.isEmpty;
  file.link = std::move(database.connection);
  if (const int code = file.link.limitWorkBySize())
    return file.failed(code);
  // All that is read from here on is of one moment.
  if (const int code = file.link.execute("BEGIN"))
    return file.failed(code);
  NSA_RETURN_IF_ERROR(checkKeyLengths(file.link, path));
  return file;
}

Status CacheFile::failed(int code) const {
  return Status::error(ErrorCode::kIoError, "cache file '" + name + "': " + sqlite3_errstr(code));
}

template <typename Row>
Result<std::vector<Row>> CacheFile::list(int (*read)(sqlite::Connection &, std::vector<Row> &)) {
  std::vector<Row> rows;
  if (const int code = read(link, rows))
    return failed(code);
  return rows;
}

Result<std::vector<KernelSummary>> CacheFile::kernels() { return list(listKernelRows); }
Result<std::vector<StoredChoice>> CacheFile::choices() { return list(listChoiceRows); }
Result<std::vector<StoredRoute>> CacheFile::routes() { return list(listRouteRows); }

Result<std::optional<StoredKernel>> CacheFile::kernel(const std::string &content) {
  StoredKernel kernel;
  RowState state;
  if (const int code = readKernel(link, content, kernel, state))
    return failed(code);
  if (state == RowState::kDamaged)
    return Status::error(ErrorCode::kIoError, "kernel " + content + " is damaged: its digest does not match",
                         "the next run that needs it makes it anew");
  return state == RowState::kIntact ? std::optional(std::move(kernel)) : std::nullopt;
}

Result<CollectionReport> CacheFile::wouldCollect(const CollectionRules &rules) {
  int code = SQLITE_OK;
  sqlite::Connection copy = sqlite::Connection::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, code);
  if (code == SQLITE_OK)
    code = link.copyTo(copy);
  if (code != SQLITE_OK)
    return failed(code);
  // One of an older schema gets what it lacks.
  if (adoptDatabase(copy, true, Journal::kWriteAheadLog, std::chrono::steady_clock::now()) != FileVerdict::kUsable)
    return failed(SQLITE_CORRUPT);
  CollectionReport report;
  if ((code = collect(copy, rules, today(), report)))
    return failed(code);
  return report;
}

} // namespace nsa
