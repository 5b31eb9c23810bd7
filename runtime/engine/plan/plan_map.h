// A hash table from plan keys to plan cores (the kernels of a plan in the order of their launches). A lookup takes no
// lock and writes no shared memory, so lookups by many threads do not slow each other. No entry of the table is ever
// removed.
// Ownership: a PlanMap keeps every plan core until the PlanMap is destroyed, so that plans may point to plan cores
// without counting references. A plan core is added for each new plan key, and for each later tuning of a plan's
// kernels. The number of plan keys is limited, because plan keys contain lengths that are rounded up to powers of two.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/graph/plan_key.h"

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

  // Returns the plan core that is stored for a plan key, or nullptr if no plan core is stored for the key.
  const PlanCore *find(const PlanKey &key) const;
  // Stores a plan core for a plan key. If the key already has a plan core, the new plan core replaces it in lookups,
  // and the older plan core stays valid.
  const PlanCore *put(const PlanKey &key, std::shared_ptr<const PlanCore> core);
  // Does what `put` does, if lookups of the key still return `expected`. Otherwise `replace` changes nothing and
  // returns false.
  bool replace(const PlanKey &key, const PlanCore *expected, std::shared_ptr<const PlanCore> core);

private:
  // A hash table with open addressing, in which at most half of the slots are used. A writer sets the key of a slot
  // before it stores the pointer `core`, and the key never changes afterwards. Readers therefore need no lock.
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
  const PlanCore *store(const PlanKey &key, std::shared_ptr<const PlanCore> core); // the caller holds `mutex`

  std::atomic<Table *> current;
  std::mutex mutex;                           // taken by writers
  std::vector<std::unique_ptr<Table>> tables; // replaced tables stay, because a thread may be reading one
  std::vector<std::shared_ptr<const PlanCore>> cores;
};

} // namespace nsa
