// A table of the plan cores in memory, by plan key. A lookup takes no lock and writes no shared memory, so lookups by
// many threads do not slow each other. No entry of the table is ever removed.
// Ownership: a PlanMap keeps every core until the PlanMap is destroyed, so that plans may point to cores without
// counting references. The map cannot grow without limit, because lengths are rounded to powers of two: it has one core
// for each plan key and one for each explicit tuning.
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

  // Returns the core of a plan key, or nullptr if the map has no core for the key.
  const PlanCore *find(const PlanKey &key) const;
  // Adds a core, which replaces an older core of the same key. The older core stays valid.
  const PlanCore *put(const PlanKey &key, std::shared_ptr<const PlanCore> core);

private:
  // A hash table with open addressing, of whose slots at most half are used. After a writer has stored a slot's core,
  // the key of the slot never changes, so readers need no lock.
  struct Slot {
    PlanKey key;
    std::atomic<const PlanCore *> core;
  };
  struct Table {
    explicit Table(size_t size) : slots(size) {}
    Slot &place(const PlanKey &key); // for writers: the key's slot, or the free slot where it belongs
    std::vector<Slot> slots;         // their number is a power of two
    size_t used = 0;
  };
  void grow();

  std::atomic<Table *> current;
  std::mutex mutex;                           // taken by writers
  std::vector<std::unique_ptr<Table>> tables; // replaced tables stay, because a thread may be reading one
  std::vector<std::shared_ptr<const PlanCore>> cores;
};

} // namespace nsa
