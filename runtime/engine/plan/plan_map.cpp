#include "runtime/engine/plan/plan_map.h"

#include "runtime/engine/graph/plan_core.h"

namespace nsa {

namespace {
constexpr size_t kFirstSlots = 64;
} // namespace

PlanMap::PlanMap() {
  tables.push_back(std::make_unique<Table>(kFirstSlots));
  current.store(tables.back().get());
}

PlanMap::~PlanMap() = default;

const PlanCore *PlanMap::find(const PlanKey &key) const {
  const std::vector<Slot> &slots = current.load(std::memory_order_acquire)->slots;
  for (size_t i = key.hash();; ++i) {
    const Slot &slot = slots[i & (slots.size() - 1)];
    const PlanCore *core = slot.core.load(std::memory_order_acquire);
    // A slot that is being filled counts as free: the reader misses, and asks again before it makes the plan.
    if (!core || slot.key == key)
      return core;
  }
}

PlanMap::Slot &PlanMap::Table::place(const PlanKey &key) {
  for (size_t i = key.hash();; ++i) {
    Slot &slot = slots[i & (slots.size() - 1)];
    if (!slot.core.load(std::memory_order_relaxed) || slot.key == key)
      return slot;
  }
}

const PlanCore *PlanMap::put(const PlanKey &key, std::shared_ptr<const PlanCore> core) {
  std::lock_guard lock(mutex);
  return store(key, std::move(core));
}

bool PlanMap::replace(const PlanKey &key, const PlanCore *expected, std::shared_ptr<const PlanCore> core) {
  std::lock_guard lock(mutex);
  if (find(key) != expected)
    return false;
  store(key, std::move(core));
  return true;
}

const PlanCore *PlanMap::store(const PlanKey &key, std::shared_ptr<const PlanCore> core) {
  cores.push_back(std::move(core));
  if ((tables.back()->used + 1) * 2 > tables.back()->slots.size())
    grow();
  Slot &slot = tables.back()->place(key);
  if (!slot.core.load(std::memory_order_relaxed)) {
    slot.key = key;
    ++tables.back()->used;
  }
  slot.core.store(cores.back().get(), std::memory_order_release);
  return cores.back().get();
}

void PlanMap::grow() {
  auto larger = std::make_unique<Table>(tables.back()->slots.size() * 2);
  for (const Slot &slot : tables.back()->slots)
    if (const PlanCore *core = slot.core.load(std::memory_order_relaxed)) {
      Slot &copy = larger->place(slot.key);
      copy.key = slot.key;
      copy.core.store(core, std::memory_order_relaxed);
      ++larger->used;
    }
  tables.push_back(std::move(larger));
  current.store(tables.back().get(), std::memory_order_release);
}

} // namespace nsa
