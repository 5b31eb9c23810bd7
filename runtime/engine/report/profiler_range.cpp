#include "runtime/engine/report/profiler_range.h"

#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <mutex>

namespace nsa {

namespace {

// NVTX 3 as a tool sees it (nvtxDetail/nvtxTypes.h of the CUDA toolkit): it asks for a table of callbacks, through that
// for a module's functions, and writes its own into the places it is given. We offer the core module's range functions.
using Function = void (*)();
constexpr uint32_t kCallbacks = 1, kVersionInfo = 3; // export tables
constexpr int kCoreModule = 1;
constexpr size_t kRangePush = 9, kRangePop = 11, kCoreFunctions = 16;
constexpr uint32_t kNvtxVersion = 3;

Function functions[kCoreFunctions];
Function *places[kCoreFunctions + 1]; // one past the end is null

int giveModule(int module, Function ***table, unsigned *size) {
  if (module != kCoreModule)
    return 0;
  for (size_t i = 0; i < kCoreFunctions; ++i)
    places[i] = &functions[i];
  if (table)
    *table = places;
  if (size)
    *size = kCoreFunctions;
  return 1;
}

struct Callbacks {
  size_t size = sizeof(Callbacks);
  int (*module)(int module, Function ***table, unsigned *size) = giveModule;
} callbacks;

struct VersionInfo {
  size_t size = sizeof(VersionInfo);
  uint32_t version = kNvtxVersion;
  uint32_t reserved = 0;
  void (*attached)(uint8_t) = [](uint8_t) {};
} versionInfo;

const void *exportTable(uint32_t table) {
  if (table == kCallbacks)
    return &callbacks;
  return table == kVersionInfo ? &versionInfo : nullptr;
}

} // namespace

void ProfilerRange::attach(const std::string &library) {
  static std::once_flag once;
  if (library.empty())
    return;
  std::call_once(once, [&] {
    void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    using Initialize = int(const void *(*)(uint32_t));
    auto *initialize = handle ? reinterpret_cast<Initialize *>(dlsym(handle, "InitializeInjectionNvtx2")) : nullptr;
    if (!initialize || initialize(exportTable) == 0 || !functions[kRangePush] || !functions[kRangePop])
      return;
    pushed.store(reinterpret_cast<Push *>(functions[kRangePush]), std::memory_order_release);
  });
}

void ProfilerRange::begin(Push *push, const char *name) {
  push(name);
  pop = reinterpret_cast<Pop *>(functions[kRangePop]);
}

} // namespace nsa
