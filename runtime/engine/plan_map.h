// The plans in memory: what each problem runs. Reading takes no lock and writes nothing shared, so that planning
// from memory scales over threads; entries are only added or replaced.
// Ownership: owns every core it was ever given until it ends, so that plans need not count references. It is bounded
// by the number of problems (lengths are bucketed) and of explicit tunings.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/plan_key.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace nsa {

struct PlanCore;

class PlanMap {
public:
  PlanMap();
  ~PlanMap();

  // nullptr: not in memory.
  const PlanCore *find(const PlanKey &key) const;
  // Takes the place of an older core of the problem, which stays valid.
  const PlanCore *put(const PlanKey &key, std::shared_ptr<const PlanCore> core);

private:
  // Open addressing, at most half full. A slot's key never changes once its core can be seen.
  struct Slot {
    PlanKey key;
    std::atomic<const PlanCore *> core;
  };
  struct Table {
    explicit Table(size_t size) : slots(size) {}
    Slot &place(const PlanKey &key); // for writers: the key's slot, or the free one where it belongs
    std::vector<Slot> slots;         // a power of two
    size_t used = 0;
  };
  void grow();

  std::atomic<Table *> current;
  std::mutex mutex;                           // of writers
  std::vector<std::unique_ptr<Table>> tables; // outgrown ones too: somebody may be reading them
  std::vector<std::shared_ptr<const PlanCore>> cores;
};

} // namespace nsa
