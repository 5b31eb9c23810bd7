// Names the library's work to a profiler that is there: NVTX 3's own way to one, which is a library that the variable
// NVTX_INJECTION64_PATH names, set by the profiler. Without one a range costs a load and a branch.
// Thread-safety: all functions may be called by many threads at once; a range ends on the thread that began it.
#pragma once

#include <atomic>
#include <string>

namespace nsa {

class ProfilerRange {
public:
  // Loads the profiler's library, the first time for the process; what is no such library is left alone.
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

  inline static constinit std::atomic<Push *> pushed{nullptr}; // null: nobody looks
  Pop *pop;
};

} // namespace nsa
