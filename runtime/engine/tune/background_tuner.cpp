#include "runtime/engine/tune/background_tuner.h"

#include "runtime/process/attempt.h"
#include "runtime/process/process.h"
#include "runtime/process/signals_blocked.h"

#include <cstdlib>
#include <pthread.h>
#include <set>
#include <unistd.h>

namespace nsa {

// The tuners of this process that may have a thread. A host may end without having destroyed its engines: then their
// threads must be over before the compilers' static objects go, which the thread may be using.
class LiveTuners {
public:
  static LiveTuners &all() {
    static LiveTuners *tuners = new LiveTuners; // never destroyed: threads use it to the end
    return *tuners;
  }
  void add(BackgroundTuner *tuner) {
    std::lock_guard lock(mutex);
    if (generation != processGeneration()) { // they belong to the parent of a fork
      tuners.clear();
      ending = nullptr;
      generation = processGeneration();
    }
    tuners.insert(tuner);
  }
  // Afterwards nothing here knows of it.
  void remove(BackgroundTuner *tuner) {
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return ending != tuner; });
    tuners.erase(tuner);
  }
  // What is registered last is called first, so this is to be called after a library was opened that must outlive the
  // threads.
  static void endBeforeTheProcess() { std::atexit(endAll); }
  // A compiler registers more of its objects when it compiles for the first time, and those would go first. But before
  // all that is registered, exit() destroys what is local to the thread that calls it, as a rule the main one: called
  // there, the threads end before anything goes.
  static void endWithTheMainThread() {
    static thread_local const AtThreadEnd end{};
    (void)end;
  }

private:
  struct AtThreadEnd {
    ~AtThreadEnd() {
      if (gettid() == getpid())
        endAll();
    }
  };
  static void endAll() {
    LiveTuners &live = all();
    // In the child of a fork a thread of the parent may have held the lock, and no thread of its own is there.
    if (live.generation.load() != processGeneration())
      return;
    std::unique_lock lock(live.mutex);
    for (BackgroundTuner *tuner : live.tuners)
      tuner->signal();
    // Without the lock, as a host that is being told of a plan may make others.
    while (!live.tuners.empty()) {
      live.ending = live.tuners.extract(live.tuners.begin()).value();
      lock.unlock();
      live.ending->stop();
      live.ending->join();
      lock.lock();
      live.ending = nullptr;
      live.ended.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable ended;
  std::set<BackgroundTuner *> tuners;
  BackgroundTuner *ending = nullptr; // whose thread is waited for
  std::atomic<uint32_t> generation{processGeneration()};
};

BackgroundTuner::BackgroundTuner(std::function<void()> prepare, Counters &counters, Logger logger)
    : prepare(std::move(prepare)), counters(counters), logger(std::move(logger)) {}

BackgroundTuner::~BackgroundTuner() {
  stop();
  LiveTuners::all().remove(this);
  join();
}

void BackgroundTuner::add(Job job) {
  if (stopping)
    return;
  LiveTuners::endWithTheMainThread();
  LiveTuners::all().add(this); // before the own lock, which the end of the process takes after that of the list
  std::lock_guard lock(mutex);
  if (stopping || !known.insert(job.key).second)
    return;
  queue.push_back(std::move(job));
  Counters::raise(counters.backgroundPending);
  if (!thread.joinable()) {
    try {
      SignalsBlocked blocked;
      thread = std::thread([this] {
        own = std::this_thread::get_id();
        run();
        own = std::thread::id();
      });
      pthread_setname_np(thread.native_handle(), "nsa-tune");
    } catch (const std::exception &) { // no thread is to be had: what was served goes on serving
      queue.clear();
      counters.backgroundPending = 0;
      Counters::raise(counters.backgroundFailed);
      logger.log(LogLevel::kWarning, "tuner", "no thread to tune in the background");
      return;
    }
  }
  changed.notify_one();
}

bool BackgroundTuner::isOwnThread() const { return own.load() == std::this_thread::get_id(); }

void BackgroundTuner::signal() {
  std::lock_guard lock(mutex);
  stopping = true;
  counters.backgroundPending -= queue.size();
  queue.clear();
  changed.notify_all();
}

void BackgroundTuner::stop() {
  signal();
  std::unique_lock lock(mutex);
  if (!isOwnThread())
    changed.wait(lock, [&] { return !telling; });
}

void BackgroundTuner::warn(const char *what, const Status &why) {
  (void)attempt("to log", [&] {
    logger.log(LogLevel::kWarning, "tuner", what + why.toString());
    return Status::ok();
  });
}

void BackgroundTuner::tell(const Job &job) {
  {
    std::lock_guard lock(mutex);
    if (stopping)
      return;
    telling = true;
  }
  if (Status status = attempt("to tell the host of a better plan",
                              [&] {
                                job.tell();
                                return Status::ok();
                              });
      !status.isOk())
    warn("the host's callback for better plans failed: ", status);
  {
    std::lock_guard lock(mutex);
    telling = false;
  }
  changed.notify_all();
}

void BackgroundTuner::join() {
  if (isOwnThread()) // the host ends the process while it is told of a plan
    return;
  std::lock_guard lock(joinMutex);
  if (thread.joinable())
    thread.join();
}

void BackgroundTuner::run() {
  (void)attempt("to tune", [&] {
    prepare();
    return Status::ok();
  });
  LiveTuners::endBeforeTheProcess();
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !queue.empty(); });
      if (stopping)
        return;
      job = std::move(queue.front());
      queue.pop_front();
    }
    // The first compilation may have opened another library.
    int looks = 0;
    auto stop = [&] {
      if (++looks == 2)
        LiveTuners::endBeforeTheProcess();
      return stopping.load();
    };
    bool better = false;
    const Status status = attempt("to tune", [&] { return job.tune(stop, better); });
    const bool isStopped = stopping;
    if (!isStopped) {
      Counters::raise(status.isOk() ? counters.backgroundDone : counters.backgroundFailed);
      if (!status.isOk())
        warn("tuning in the background: ", status);
    }
    if (better && job.tell)
      tell(job);
    counters.backgroundPending -= 1; // the last of it: who waits for none to be pending finds what came of them
    if (isStopped)
      return;
  }
}

} // namespace nsa
