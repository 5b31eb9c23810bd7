#include "tests/cache/death_watch.h"

#include "tests/harness/seed.h"

#include <csignal>
#include <string_view>
#include <unistd.h>

#include <sqlite3.h>

namespace nsa::test {

namespace {

DeathWatch *watch = nullptr;
// Of the write transaction that this thread has open.
thread_local bool isWriting = false;
thread_local int insertedKernels = 0;

// Called when a statement has ended.
int noteStatement(unsigned, void *context, void *statement, void *) {
  auto *database = static_cast<sqlite3 *>(context);
  const char *text = sqlite3_sql(static_cast<sqlite3_stmt *>(statement));
  const std::string_view sql = text ? text : "";
  const bool isOpen = sqlite3_get_autocommit(database) == 0;
  if (sql == "BEGIN IMMEDIATE" && isOpen) {
    isWriting = true;
    insertedKernels = 0;
    ++watch->openTransactions;
  } else if (isWriting && !isOpen) { // COMMIT or ROLLBACK
    isWriting = false;
    if (sql == "COMMIT")
      watch->committedKernels += insertedKernels;
    --watch->openTransactions;
  }
  return 0;
}

void noteRow(void *, int operation, const char *, const char *table, sqlite3_int64) {
  if (operation == SQLITE_INSERT && std::string_view(table) == "kernels")
    ++insertedKernels;
}

int watchConnection(sqlite3 *database, char **, const sqlite3_api_routines *) {
  sqlite3_trace_v2(database, SQLITE_TRACE_PROFILE, noteStatement, database);
  sqlite3_update_hook(database, noteRow, nullptr);
  return SQLITE_OK;
}

template <typename Write> ssize_t writeOrDie(size_t count, Write write) {
  if (++watch->writes != watch->fatalWrite)
    return write(count);
  (void)write(count * watch->fatalShare / 256);
  kill(getpid(), SIGKILL);
  return -1;
}

ssize_t watchedWrite(int file, const void *bytes, size_t count) {
  return writeOrDie(count, [&](size_t part) { return write(file, bytes, part); });
}

ssize_t watchedWriteAt(int file, const void *bytes, size_t count, off_t offset) {
  return writeOrDie(count, [&](size_t part) { return pwrite(file, bytes, part, offset); });
}

} // namespace

void DeathWatch::install(DeathWatch &page) {
  watch = &page;
  sqlite3_auto_extension(reinterpret_cast<void (*)()>(watchConnection));
  sqlite3_vfs *system = sqlite3_vfs_find(nullptr);
  for (const char *name : {"pwrite", "pwrite64"})
    system->xSetSystemCall(system, name, reinterpret_cast<sqlite3_syscall_ptr>(watchedWriteAt));
  system->xSetSystemCall(system, "write", reinterpret_cast<sqlite3_syscall_ptr>(watchedWrite));
}

int killsInAll() { return repeats("NSA_TEST_KILLS", 150); }

} // namespace nsa::test
