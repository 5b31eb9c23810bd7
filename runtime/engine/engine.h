// The engine: one device, one cache, the plans in memory. The C++ side of nsa_engine.
// Ownership: shared by the handle and its plans, so that either may be destroyed first.
// Thread-safety: all functions may be called by many threads at once. Finding a plan in memory takes a shared lock;
// running one touches nothing of the engine but its device.
#pragma once

#include "runtime/engine/plan_key.h"
#include "runtime/engine/planner.h"

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace nsa {

class Engine : public std::enable_shared_from_this<Engine> {
public:
  // Opens the device and the cache; neither the compiler nor NVRTC.
  static Result<std::shared_ptr<Engine>> open(EngineOptions options, const EngineOptions::Environment &environment);

  Result<std::unique_ptr<Plan>> plan(const Spec &spec, const Maxima &maxima, void *stream);
  Result<std::string> explain(const Spec &spec, const Maxima &maxima);
  Result<std::string> tune(const Spec &spec, const Maxima &maxima);
  std::string describe() const;

  Device &device() { return *ownDevice; }
  const Counters &counters() const { return ownCounters; }
  StoreCounters storeCounters() const { return cache->counters(); }
  void countRun() { Counters::raise(ownCounters.runs); }

private:
  Engine() = default;
  Status openDevice();
  std::shared_ptr<const PlanCore> findInMemory(const PlanKey &key) const;
  std::shared_ptr<const PlanCore> remember(const PlanKey &key, std::shared_ptr<const PlanCore> core);

  EngineOptions options;
  Logger logger;
  std::string gpuTrouble;
  Counters ownCounters;
  std::unique_ptr<Device> ownDevice;
  std::unique_ptr<KernelCache> cache;
  std::unique_ptr<Planner> planner; // holds kernels, which must go before the device

  mutable std::shared_mutex plansMutex;
  std::unordered_map<PlanKey, std::shared_ptr<const PlanCore>, PlanKeyHash> plans;
  // Misses of one problem wait for each other and find the first one's plan; other problems rarely share a lock.
  std::array<std::mutex, 16> missMutexes;
};

} // namespace nsa
