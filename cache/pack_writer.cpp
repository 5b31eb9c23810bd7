#include "cache/pack_writer.h"

#include "cache/pack/pack_digest.h"
#include "cache/rows/choice_rows.h"
#include "cache/rows/kernel_rows.h"
#include "cache/rows/route_rows.h"
#include "cache/verification.h"
#include "runtime/base/problem.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

// A pack's bytes depend on its rows and on these settings, so the settings are fixed. No other process sees the file,
// so its journal need not survive. A failed export leaves nothing.
constexpr const char *kSettings =
    "PRAGMA page_size = 4096; PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = MEMORY;"
    "PRAGMA temp_store = MEMORY; PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = ON";
constexpr const char *kPutFact = "INSERT OR REPLACE INTO pack (key, value) VALUES (?1, ?2)";

std::span<const std::byte> bytesOf(const std::string &text) { return std::as_bytes(std::span(text)); }

Connection openNew(const std::string &path, int &code) {
  Connection connection = Connection::open(path, SQLITE_OPEN_READWRITE, code);
  if (connection) {
    connection.liftGuard(); // its schema is made here, or copied from a pack that was checked
    code = connection.execute(kSettings);
  }
  return connection;
}

Status writeFailure(const std::string &path, int code) {
  return Status::error(ErrorCode::kIoError, "pack '" + path + "' cannot be written: " + sqlite3_errstr(code));
}

struct Selection {
  std::vector<StoredChoice> choices;
  std::map<std::string, KernelRow> kernels; // by content, ascending
  std::vector<StoredRoute> routes;
};

bool takes(const PackRequest &request, const std::string &device, const std::string &name, char end) {
  const std::string op = name.substr(0, name.find(end));
  return device.find(request.device) != std::string::npos &&
         (request.operators.empty() ||
          std::find(request.operators.begin(), request.operators.end(), op) != request.operators.end());
}

Status select(CacheFile &from, const PackRequest &request, Selection &selection, PackReport &report) {
  NSA_ASSIGN_OR_RETURN(std::vector<StoredChoice> choices, from.choices());
  for (StoredChoice &choice : choices) {
    if (!takes(request, choice.device, choice.problem, ' ') ||
        (request.tunedOnly && !choice.tuned && isTunedProblem(choice.problem)))
      continue;
    auto known = selection.kernels.find(choice.content);
    if (known == selection.kernels.end()) {
      KernelRow row;
      RowState state;
      if (const int code = readKernelRow(from.connection(), choice.content, row, state))
        return from.failed(code);
      if (state == RowState::kIntact && request.compression > 0)
        NSA_RETURN_IF_ERROR(row.compressAgain(request.compression));
      if (state == RowState::kIntact)
        known = selection.kernels.emplace(choice.content, std::move(row)).first;
      else
        report.damaged.push_back(choice.content);
    }
    if (known == selection.kernels.end())
      continue;
    if (request.isBrief)
      choice.evidence.clear();
    selection.choices.push_back(std::move(choice));
  }
  NSA_ASSIGN_OR_RETURN(std::vector<KernelSummary> kernels, from.kernels());
  report.unnamed = std::ranges::count_if(kernels, [&](const KernelSummary &kernel) {
    return !selection.kernels.contains(kernel.content) &&
           std::ranges::find(report.damaged, kernel.content) == report.damaged.end();
  });
  NSA_ASSIGN_OR_RETURN(std::vector<StoredRoute> routes, from.routes());
  for (StoredRoute &route : routes)
    if (takes(request, route.device, route.name, '.'))
      selection.routes.push_back(std::move(route));
  return Status::ok();
}

int writeRows(Connection &connection, const Selection &selection) {
  for (const auto &[content, row] : selection.kernels)
    if (const int code = writeKernelRow(connection, row))
      return code;
  for (const StoredChoice &choice : selection.choices)
    if (const int code = writeChoiceRow(connection, choice))
      return code;
  for (const StoredRoute &route : selection.routes)
    if (const int code = writeRouteRow(connection, route))
      return code;
  return SQLITE_OK;
}

int writeFacts(Connection &connection, const std::string &source, PackReport &report) {
  Digest::Bytes evidence;
  if (const int code = digestEvidence(connection, evidence))
    return code;
  if (const int code = digestRows(connection, source, evidence, report.digest))
    return code;
  const std::string format = std::to_string(kPackFormat);
  const std::pair<const char *, std::span<const std::byte>> facts[] = {{"digest", report.digest},
                                                                       {"evidence_digest", evidence},
                                                                       {"format", bytesOf(format)},
                                                                       {"source", bytesOf(source)}};
  for (const auto &[key, value] : facts)
    if (const int code = Query(connection, kPutFact, key, value).run())
      return code;
  return SQLITE_OK;
}

int createTables(Connection &connection) {
  for (const char *tables : {kCreateKernels, kCreateRoutes, kCreatePack})
    if (const int code = connection.execute(tables))
      return code;
  const std::string marks = "PRAGMA application_id = " + std::to_string(kPackApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(kSchemaVersion);
  return connection.execute(marks.c_str());
}

// Everything in one transaction, then its pages in order.
template <typename Body> int fill(Connection &connection, Body body) {
  const sqlite::WriteLimit held(connection); // once for all of its statements
  int code = connection.execute("BEGIN EXCLUSIVE");
  if (code == SQLITE_OK)
    code = body();
  if (code == SQLITE_OK)
    code = connection.execute("COMMIT");
  return code == SQLITE_OK ? connection.execute("VACUUM") : code;
}

} // namespace

Result<PackReport> writePack(CacheFile &from, const std::string &path, const PackRequest &request) {
  PackReport report;
  Selection selection;
  NSA_RETURN_IF_ERROR(select(from, request, selection, report));
  if (selection.choices.empty() && selection.routes.empty())
    return Status::error(ErrorCode::kInvalidArgument,
                         "nothing in '" + from.path() + "' is of that kind: a pack would be empty",
                         "`nsa cache list` shows the choices and their devices");
  NSA_ASSIGN_OR_RETURN(ReplacingFile target, ReplacingFile::create(path, request.existing));
  {
    int code;
    Connection connection = openNew(target.temporaryPath(), code);
    if (code == SQLITE_OK)
      code = fill(connection, [&] {
        int result = createTables(connection);
        if (result == SQLITE_OK)
          result = writeRows(connection, selection);
        return result == SQLITE_OK ? writeFacts(connection, request.source, report) : result;
      });
    if (code != SQLITE_OK)
      return writeFailure(path, code);
  }
  report.kernels = static_cast<int64_t>(selection.kernels.size());
  report.choices = static_cast<int64_t>(selection.choices.size());
  report.routes = static_cast<int64_t>(selection.routes.size());
  std::error_code error;
  report.bytes = static_cast<int64_t>(std::filesystem::file_size(target.temporaryPath(), error));
  NSA_RETURN_IF_ERROR(target.commit());
  return report;
}

Status signPack(const std::string &path, const SecretKey &key) {
  NSA_ASSIGN_OR_RETURN(CacheFile pack, openSource(path, {}, Databases::kAccepted));
  if (!pack.isPack())
    return packError(path, "it is no pack");
  // The file itself, not a link to it.
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error)
    return packError(path, error.message());
  NSA_ASSIGN_OR_RETURN(ReplacingFile target, ReplacingFile::create(real, ReplacingFile::Existing::kReplace));
  {
    int code;
    Connection connection = openNew(target.temporaryPath(), code);
    if (code == SQLITE_OK)
      code = pack.connection().copyTo(connection);
    if (code == SQLITE_OK)
      code = fill(connection, [&] {
        return Query(connection, kPutFact, "signature " + key.publicKey().hex(),
                     key.sign(signedMessage(pack.pack().digest)))
            .run();
      });
    if (code != SQLITE_OK)
      return writeFailure(path, code);
  }
  return target.commit();
}

} // namespace nsa
