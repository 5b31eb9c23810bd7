// Marks the time ranges of the library's work with names that a profiler shows. A ProfilerRange uses NVTX 3's own
// mechanism: the profiler sets the variable NVTX_INJECTION64_PATH to the path of a library. Without a profiler a
// ProfilerRange costs a load and a branch.
// Thread-safety: all functions may be called by many threads at once; a range must end on the thread that began it.
#pragma once

#include <atomic>
#include <string>

namespace nsa {

class ProfilerRange {
public:
  // Loads the profiler's library, once for the process. If the profiler's library lacks the functions of NVTX, `attach`
  // ignores the library.
  static void attach(const std::string &library);

  explicit ProfilerRange(const char *name) : pop(nullptr) {
    if (Push *push = pushed.load(std::memory_order_acquire))
      begin(push, name);
  }
  ~ProfilerRange() {
    if (pop)
      pop();
  }
  ProfilerRange(const ProfilerRange &) = delete;
  ProfilerRange &operator=(const ProfilerRange &) = delete;

private:
  using Push = int(const char *name);
  using Pop = int();
  void begin(Push *push, const char *name);

  inline static constinit std::atomic<Push *> pushed{nullptr}; // null: there is no profiler
  Pop *pop;
};

} // namespace nsa
