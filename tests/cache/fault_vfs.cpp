#include "tests/cache/fault_vfs.h"

#include <new>
#include <optional>
#include <utility>

#include <sqlite3.h>

namespace nsa::test {

namespace {

struct State {
  sqlite3_vfs *system = nullptr;
  sqlite3_vfs vfs{};
  std::optional<FaultVfs::Fault> fault;
  uint64_t at = 0;
  FaultVfs::Lasting lasting = FaultVfs::Lasting::kOnce;
  uint64_t writes = 0, syncs = 0, bytesRead = 0;
  std::function<void()> beforeOpening, afterOpening;
};
State state;

// The system's own file stands behind it in the same memory.
struct File {
  sqlite3_file base;
  sqlite3_file *real() { return reinterpret_cast<sqlite3_file *>(this + 1); }
};

File &of(sqlite3_file *file) { return *reinterpret_cast<File *>(file); }
const sqlite3_io_methods &methods(sqlite3_file *file) { return *of(file).real()->pMethods; }

bool isDue(uint64_t count) {
  return state.lasting == FaultVfs::Lasting::kForGood ? count >= state.at : count == state.at;
}

bool isArmed(FaultVfs::Fault fault) { return state.fault == fault; }

int writeFault() {
  ++state.writes;
  using Fault = FaultVfs::Fault;
  if (!isDue(state.writes))
    return SQLITE_OK;
  if (isArmed(Fault::kFull))
    return SQLITE_FULL;
  return isArmed(Fault::kWriteError) || isArmed(Fault::kTornWrite) ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

int closeFile(sqlite3_file *file) { return methods(file).xClose(of(file).real()); }
int readFile(sqlite3_file *file, void *to, int bytes, sqlite3_int64 offset) {
  state.bytesRead += static_cast<uint64_t>(bytes);
  return methods(file).xRead(of(file).real(), to, bytes, offset);
}
int writeFile(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 offset) {
  const int code = writeFault();
  if (code == SQLITE_OK)
    return methods(file).xWrite(of(file).real(), from, bytes, offset);
  if (isArmed(FaultVfs::Fault::kTornWrite))
    methods(file).xWrite(of(file).real(), from, bytes / 2, offset);
  return code;
}
int truncateFile(sqlite3_file *file, sqlite3_int64 size) { return methods(file).xTruncate(of(file).real(), size); }
int syncFile(sqlite3_file *file, int flags) {
  ++state.syncs;
  if (isArmed(FaultVfs::Fault::kSyncError) && isDue(state.syncs))
    return SQLITE_IOERR_FSYNC;
  return methods(file).xSync(of(file).real(), flags);
}
int sizeOfFile(sqlite3_file *file, sqlite3_int64 *size) { return methods(file).xFileSize(of(file).real(), size); }
int lockFile(sqlite3_file *file, int level) {
  if (isArmed(FaultVfs::Fault::kLockBusy))
    return SQLITE_BUSY;
  return isArmed(FaultVfs::Fault::kLockError) ? SQLITE_IOERR_LOCK : methods(file).xLock(of(file).real(), level);
}
int unlockFile(sqlite3_file *file, int level) { return methods(file).xUnlock(of(file).real(), level); }
int checkReserved(sqlite3_file *file, int *result) { return methods(file).xCheckReservedLock(of(file).real(), result); }
int controlFile(sqlite3_file *file, int operation, void *argument) {
  return methods(file).xFileControl(of(file).real(), operation, argument);
}
int sectorSize(sqlite3_file *file) { return methods(file).xSectorSize(of(file).real()); }
int characteristics(sqlite3_file *file) { return methods(file).xDeviceCharacteristics(of(file).real()); }
int mapShared(sqlite3_file *file, int region, int bytes, int extend, void volatile **memory) {
  return methods(file).xShmMap(of(file).real(), region, bytes, extend, memory);
}
int lockShared(sqlite3_file *file, int offset, int count, int flags) {
  if (isArmed(FaultVfs::Fault::kNoSharedLocks) && (flags & SQLITE_SHM_LOCK))
    return SQLITE_IOERR_SHMLOCK;
  return methods(file).xShmLock(of(file).real(), offset, count, flags);
}
void barrier(sqlite3_file *file) { methods(file).xShmBarrier(of(file).real()); }
int unmapShared(sqlite3_file *file, int remove) { return methods(file).xShmUnmap(of(file).real(), remove); }

// Version 2: no memory mapping, past which nothing could fail.
constexpr sqlite3_io_methods kMethods = {2,           closeFile,   readFile,        writeFile,  truncateFile,
                                         syncFile,    sizeOfFile,  lockFile,        unlockFile, checkReserved,
                                         controlFile, sectorSize,  characteristics, mapShared,  lockShared,
                                         barrier,     unmapShared, nullptr,         nullptr};

int openFile(sqlite3_vfs *, const char *name, sqlite3_file *file, int flags, int *outFlags) {
  auto *own = new (file) File{};
  const bool isMain = flags & SQLITE_OPEN_MAIN_DB;
  if (isMain && state.beforeOpening)
    state.beforeOpening();
  const int code = state.system->xOpen(state.system, name, own->real(), flags, outFlags);
  if (isMain && state.afterOpening)
    state.afterOpening();
  own->base.pMethods = own->real()->pMethods ? &kMethods : nullptr;
  return code;
}

} // namespace

FaultVfs::FaultVfs() {
  state = State();
  state.system = sqlite3_vfs_find(nullptr);
  state.vfs = *state.system; // all else is the system's; its calls take no state but that in pAppData
  state.vfs.pNext = nullptr;
  state.vfs.zName = "nsa-faults";
  state.vfs.szOsFile = static_cast<int>(sizeof(File)) + state.system->szOsFile;
  state.vfs.xOpen = openFile;
  sqlite3_vfs_register(&state.vfs, 1);
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&state.vfs);
  sqlite3_vfs_register(state.system, 1);
}

void FaultVfs::arm(Fault fault, uint64_t at, Lasting lasting) {
  disarm();
  state.fault = fault;
  state.at = at;
  state.lasting = lasting;
}

void FaultVfs::aroundOpening(std::function<void()> before, std::function<void()> after) {
  state.beforeOpening = std::move(before);
  state.afterOpening = std::move(after);
}

void FaultVfs::disarm() {
  state.fault.reset();
  aroundOpening({}, {});
  state.at = state.writes = state.syncs = state.bytesRead = 0;
}

uint64_t FaultVfs::writes() { return state.writes; }
uint64_t FaultVfs::syncs() { return state.syncs; }
uint64_t FaultVfs::bytesRead() { return state.bytesRead; }

} // namespace nsa::test
