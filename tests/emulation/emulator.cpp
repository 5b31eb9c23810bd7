// glibc's fortified longjmp takes a jump to another stack for an error.
#undef _FORTIFY_SOURCE
#include "emulator.h"

#include "emulator_state.h"
#include "ending_memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <sys/mman.h>

emulator::Index3 threadIdx, blockIdx, gridDim;

namespace emulator {

namespace {

constexpr size_t kStackBytes = 128 * 1024;
constexpr uint32_t kRankUnit = 1u << 24; // shared::cluster addresses: (rank + 1) * kRankUnit + offset

struct Pool { // memory that all launches use
  std::vector<unsigned char *> shared;
  size_t sharedBytes = 0;
  std::vector<char *> stacks;
};
Pool pool;

struct Run {
  const Launch *launch;
  const std::function<void()> *kernel;
  Place back;
  std::vector<std::unique_ptr<Fibre>> fibres;
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::vector<Fibre *> ready;
  std::vector<unsigned char *> freeShared;
  std::vector<char *> freeStacks;
  std::string error;
  uint64_t random;
  bool starves;
  int starved = -1; // a warp number of each block
  int picksLeft = 0;
  int nextCluster = 0;
  int live = 0;
};
Run *state = nullptr;
Fibre *self = nullptr;

uint64_t draw() {
  state->random += 0x9e3779b97f4a7c15ull;
  uint64_t x = state->random;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

// Goes on at `to`. Returns when something switches back to `from`.
void switchTo(Place &to, Place &from) {
#ifdef NSA_ADDRESS_SANITIZER // The sanitizer takes a longjmp to another stack for an error.
  swapcontext(&from.context, &to.context);
#else // A longjmp, unlike swapcontext, asks nothing of the operating system.
  if (_setjmp(from.jump) != 0)
    return;
  from.wasLeft = true;
  if (!to.wasLeft) // starts
    setcontext(&to.context);
  _longjmp(to.jump, 1);
#endif
}

// Picks a thread that is ready. Where the launch starves warps, one warp number of all blocks runs for some time only
// if hardly any other thread is ready. Threads that are drawn alike keep together, and never fall a whole barrier
// behind. In half of the launches the first such warp falls behind to the end: what it hands over early may be read
// late.
size_t draw(const std::vector<Fibre *> &ready) {
  size_t picked = draw() % ready.size();
  if (!state->starves)
    return picked;
  constexpr uint64_t kMostPicks = 16000;
  if (state->picksLeft-- == 0) {
    const bool toTheEnd = state->starved < 0 && draw() % 2 == 0;
    state->picksLeft = toTheEnd ? std::numeric_limits<int>::max() : static_cast<int>(draw() % kMostPicks);
    state->starved = static_cast<int>(draw() % static_cast<uint64_t>(state->launch->threads / kWarpSize));
  }
  for (int tries = 0; tries < 400 && ready[picked]->thread / kWarpSize == state->starved; ++tries)
    picked = draw() % ready.size();
  return picked;
}

// Returns where to go on: with a thread that is ready, which becomes `self`, or with `run` if none is.
Place &pickNext() {
  std::vector<Fibre *> &ready = state->ready;
  self = nullptr;
  if (ready.empty())
    return state->back;
  std::swap(ready[draw(ready)], ready.back());
  self = ready.back();
  ready.pop_back();
  threadIdx.x = static_cast<unsigned>(self->thread);
  blockIdx = self->block->index;
  return self->place;
}

// Lets others run until something makes this thread ready again.
void suspend(const char *where) {
  self->waitsAt = where;
  Place &mine = self->place;
  switchTo(pickNext(), mine);
}

void runThread();

void makeReady(Fibre *fibre) { state->ready.push_back(fibre); }
void makeReady(std::vector<Fibre *> &fibres) {
  for (Fibre *fibre : fibres)
    makeReady(fibre);
  fibres.clear();
}

void startCluster() {
  const Launch &launch = *state->launch;
  const int number = state->nextCluster++;
  const int perRow = static_cast<int>(launch.grid.x) / launch.cluster;
  auto cluster = std::make_unique<Cluster>();
  // As floats NaN, or great numbers, since comparisons ignore a NaN.
  const int poison = draw() % 2 == 0 ? 0xff : 0x7f;
  for (int rank = 0; rank < launch.cluster; ++rank) {
    auto block = std::make_unique<Block>();
    block->cluster = cluster.get();
    block->index.x = static_cast<unsigned>(number % perRow * launch.cluster + rank);
    block->index.y = static_cast<unsigned>(number / perRow) % launch.grid.y;
    block->index.z = static_cast<unsigned>(number / perRow) / launch.grid.y;
    block->live = launch.threads;
    block->warps.resize(static_cast<size_t>(launch.threads) / kWarpSize);
    block->memory = state->freeShared.back();
    state->freeShared.pop_back();
    protectMemory(block->memory, pool.sharedBytes, PROT_READ | PROT_WRITE);
    std::memset(block->memory, poison, pool.sharedBytes);
    for (int thread = 0; thread < launch.threads; ++thread) {
      auto fibre = std::make_unique<Fibre>();
      fibre->block = block.get();
      fibre->thread = thread;
      fibre->stack = state->freeStacks.back();
      state->freeStacks.pop_back();
      getcontext(&fibre->place.context);
      fibre->place.context.uc_stack = {.ss_sp = fibre->stack, .ss_flags = 0, .ss_size = kStackBytes};
      fibre->place.context.uc_link = nullptr;
      makecontext(&fibre->place.context, runThread, 0);
      makeReady(fibre.get());
      state->fibres.push_back(std::move(fibre));
    }
    cluster->live += launch.threads;
    cluster->blocks.push_back(std::move(block));
  }
  state->live += cluster->live;
  state->clusters.push_back(std::move(cluster));
}

void completeCluster(Cluster &cluster) {
  cluster.arrived = 0;
  ++cluster.generation;
  makeReady(cluster.waiting);
}

void passNamed(NamedBarrier &barrier) {
  barrier.result = barrier.any;
  barrier.any = false;
  barrier.arrived = 0;
  makeReady(barrier.waiting);
}

void endBlock(Block &block) {
  for (auto &[offset, barrier] : block.barriers)
    if (!barrier.messages.empty())
      fail("a block ends while messages to it are under way");
  protectMemory(block.memory, pool.sharedBytes, PROT_NONE);
  state->freeShared.push_back(block.memory);
  block.memory = nullptr;
}

void runThread() {
  (*state->kernel)();
  Block &block = *self->block;
  Cluster &cluster = *block.cluster;
  if (self->clusterArrivals > cluster.generation)
    fail("a thread ends between arrive and wait of the cluster's barrier");
  if (!self->begun.empty() || !self->groups.empty())
    fail("a thread ends while its copies are under way");
  --state->live;
  --block.live;
  --cluster.live;
  if (block.live == 0)
    endBlock(block);
  if (cluster.live > 0 && cluster.arrived == cluster.live)
    completeCluster(cluster);
  switchTo(state->back, self->place);
}

Block &blockOf(uint32_t address) {
  const uint32_t rank = address / kRankUnit;
  check(rank >= 1 && rank <= self->block->cluster->blocks.size(), "an address is no address of the cluster's memory");
  return *self->block->cluster->blocks[rank - 1];
}

void finishCopies(unsigned char *memory, const std::vector<Copy> &copies) {
  for (const Copy &copy : copies) {
    std::memset(memory + copy.target, 0, 16);
    if (copy.bytes > 0)
      std::memcpy(memory + copy.target, copy.source, static_cast<size_t>(copy.bytes));
  }
}

// Ends the phase of an mbarrier if all has come. Messages and copies arrive only now, when a thread waits for them.
void completeBarrier(Block &block, Barrier &barrier) {
  if (barrier.pending > 0 || barrier.issued != barrier.expected)
    return;
  for (const Message &message : barrier.messages)
    std::memcpy(block.memory + message.target, message.value, static_cast<size_t>(message.bytes));
  barrier.messages.clear();
  finishCopies(block.memory, barrier.copies);
  barrier.copies.clear();
  barrier.expected = barrier.issued = 0;
  barrier.pending = barrier.arrivals;
  ++barrier.phase;
  makeReady(barrier.waiting);
}

Barrier &ownBarrier(uint32_t address) {
  auto found = self->block->barriers.find(address);
  check(found != self->block->barriers.end(), "an mbarrier was not initialised");
  return found->second;
}

} // namespace

void run(const Launch &launch, const std::function<void()> &kernel) {
  Run running = {};
  state = &running;
  running.launch = &launch;
  running.kernel = &kernel;
  running.random = launch.seed;
  running.starves = launch.starves;
  gridDim = launch.grid;
  const int clusters = static_cast<int>(launch.grid.x * launch.grid.y * launch.grid.z) / launch.cluster;
  const int atOnce = std::min(launch.clustersAtOnce, clusters);
  const size_t bytes = (launch.sharedBytes + 127) / 128 * 128;
  if (bytes != pool.sharedBytes) {
    pool.shared.clear(); // other sizes are rare, so their memory is left to the end of the process
    pool.sharedBytes = bytes;
  }
  while (pool.shared.size() < static_cast<size_t>(atOnce * launch.cluster))
    pool.shared.push_back(endingMemory(bytes));
  while (pool.stacks.size() < static_cast<size_t>(atOnce * launch.cluster * launch.threads)) {
    constexpr size_t kMany = 256;
    void *region =
        mmap(nullptr, kMany * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
      throw std::runtime_error("no memory for stacks");
    for (size_t i = 0; i < kMany; ++i)
      pool.stacks.push_back(static_cast<char *>(region) + i * kStackBytes);
  }
  running.freeShared = pool.shared;
  running.freeStacks = pool.stacks;
  for (int i = 0; i < atOnce; ++i)
    startCluster();
  while (running.live > 0) {
    // Comes back when a thread ends, on an error, and when no thread is ready.
    switchTo(pickNext(), running.back);
    if (!self || !running.error.empty())
      break;
    running.freeStacks.push_back(self->stack);
    if (self->block->cluster->live == 0 && running.nextCluster < clusters)
      startCluster();
  }
  if (running.error.empty() && running.live > 0) {
    running.error = "threads wait for others that never come:";
    std::map<std::string, int> places;
    for (const auto &fibre : running.fibres)
      if (fibre->block->memory && fibre->waitsAt[0] != '\0')
        ++places[fibre->waitsAt];
    for (const auto &[place, count] : places)
      running.error += " " + std::to_string(count) + " at " + place;
  }
  for (unsigned char *memory : pool.shared)
    protectMemory(memory, bytes, PROT_NONE);
  state = nullptr;
  self = nullptr;
  if (!running.error.empty())
    throw std::runtime_error(running.error);
}

void fail(const char *message) {
  if (state->error.empty())
    state->error = "block " + std::to_string(blockIdx.x) + " " + std::to_string(blockIdx.y) + " " +
                   std::to_string(blockIdx.z) + ", thread " + std::to_string(threadIdx.x) + ": " + message;
  switchTo(state->back, self->place);
  std::abort();
}

unsigned char *sharedMemory() { return self->block->memory; }

uint32_t sharedOffset(const void *pointer) {
  const auto offset = static_cast<const unsigned char *>(pointer) - self->block->memory;
  check(offset >= 0 && offset <= static_cast<ptrdiff_t>(pool.sharedBytes), "a pointer is not in shared memory");
  return static_cast<uint32_t>(offset);
}

unsigned char *sharedPointer(uint32_t address, size_t bytes) {
  check(address + bytes <= pool.sharedBytes, "an address is not in shared memory");
  return self->block->memory + address;
}

void **meetWarp(const char *operation, void *argument) {
  Meeting &meeting = self->block->warps[static_cast<size_t>(self->thread / kWarpSize)];
  if (meeting.arrived == 0)
    meeting.operation = operation;
  else
    check(std::strcmp(meeting.operation, operation) == 0, "lanes of a warp meet at different instructions");
  const int lane = self->thread % kWarpSize;
  meeting.arguments[lane] = argument;
  meeting.lanes[lane] = self;
  if (++meeting.arrived == kWarpSize)
    return meeting.arguments;
  suspend(operation);
  return nullptr;
}

void leaveWarp() {
  Meeting &meeting = self->block->warps[static_cast<size_t>(self->thread / kWarpSize)];
  meeting.arrived = 0;
  for (Fibre *lane : meeting.lanes)
    if (lane != self)
      makeReady(lane);
}

namespace {

// The thread arrives at a named barrier. Returns whether it was the last.
bool arriveNamed(NamedBarrier &barrier, const char *operation, int name, int threads, bool condition) {
  check(name >= 0 && name < 16 && threads % kWarpSize == 0, "a named barrier has a bad number");
  if (barrier.arrived == 0) {
    barrier.operation = operation;
    barrier.threads = threads;
  }
  check(std::strcmp(barrier.operation, operation) == 0, "threads of a block meet at different instructions");
  check(barrier.threads == threads, "threads disagree on the size of a named barrier");
  barrier.any = barrier.any || condition;
  ++barrier.arrived;
  if (barrier.arrived != (threads == 0 ? state->launch->threads : threads))
    return false;
  passNamed(barrier);
  return true;
}

} // namespace

bool meetBlock(const char *operation, int name, int threads, bool condition) {
  NamedBarrier &barrier = self->block->named[name];
  if (!arriveNamed(barrier, operation, name, threads, condition)) {
    barrier.waiting.push_back(self);
    suspend(operation);
  }
  return barrier.result;
}

void arriveBlock(const char *operation, int name, int threads) {
  arriveNamed(self->block->named[name], operation, name, threads, false);
  // Others may run before what the thread does next.
  makeReady(self);
  suspend(operation);
}

void beginCopy(uint32_t target, const void *source, int bytes) {
  check(target % 16 == 0, "cp.async to an unaligned address");
  check(bytes >= 0 && bytes <= 16, "cp.async of a bad size");
  check(bytes == 0 || reinterpret_cast<uintptr_t>(source) % 16 == 0, "cp.async from an unaligned address");
  std::memset(sharedPointer(target, 16), 0xff, 16);
  self->begun.push_back({target, source, bytes});
}

void commitCopies() {
  self->groups.emplace_back(std::move(self->begun));
  self->begun.clear();
}

void waitCopies(int pending) {
  std::vector<std::vector<Copy>> &groups = self->groups;
  while (static_cast<int>(groups.size()) > pending) {
    finishCopies(self->block->memory, groups.front());
    groups.erase(groups.begin());
  }
}

void arriveCluster() {
  Cluster &cluster = *self->block->cluster;
  check(self->clusterArrivals == cluster.generation, "a thread arrives twice at the cluster's barrier");
  self->clusterArrivals = cluster.generation + 1;
  if (++cluster.arrived == cluster.live)
    completeCluster(cluster);
  // Others may run before what the thread does next.
  makeReady(self);
  suspend("barrier.cluster.arrive");
}

void waitCluster() {
  Cluster &cluster = *self->block->cluster;
  check(self->clusterArrivals > 0, "a thread waits at the cluster's barrier before it arrives");
  if (self->clusterArrivals > cluster.generation) {
    cluster.waiting.push_back(self);
    suspend("barrier.cluster");
  }
}

uint32_t clusterAddress(uint32_t address, uint32_t rank) {
  check(address < pool.sharedBytes && rank < self->block->cluster->blocks.size(), "mapa of a bad address or block");
  return (rank + 1) * kRankUnit + address;
}

void initBarrier(uint32_t address, int arrivals) {
  check(address % 8 == 0 && sharedPointer(address, 8) != nullptr, "an mbarrier at an unaligned address");
  Barrier &barrier = self->block->barriers[address];
  barrier.arrivals = barrier.pending = arrivals;
}

// Bytes may come before the arrival that says how many there will be.
static void checkBytes(const Barrier &barrier) {
  check(barrier.pending > 0 || barrier.issued <= barrier.expected, "an mbarrier gets more bytes than it waits for");
}

void arriveExpect(uint32_t address, int bytes) {
  Barrier &barrier = ownBarrier(address);
  barrier.expected += bytes;
  check(--barrier.pending >= 0, "an mbarrier gets more arrivals than it waits for");
  checkBytes(barrier);
  if (!barrier.waiting.empty())
    completeBarrier(*self->block, barrier);
}

void arrive(uint32_t address, bool afterCopies) {
  Barrier &barrier = ownBarrier(address);
  if (afterCopies) {
    commitCopies();
    for (const std::vector<Copy> &group : self->groups)
      barrier.copies.insert(barrier.copies.end(), group.begin(), group.end());
    self->groups.clear();
  }
  check(--barrier.pending >= 0, "an mbarrier gets more arrivals than it waits for");
  if (!barrier.waiting.empty())
    completeBarrier(*self->block, barrier);
}

void waitBarrier(uint32_t address, int parity) {
  Barrier &barrier = ownBarrier(address);
  if (barrier.phase % 2 == parity)
    completeBarrier(*self->block, barrier);
  if (barrier.phase % 2 != parity)
    return;
  barrier.waiting.push_back(self);
  suspend("an mbarrier");
}

void push(uint32_t address, const void *value, int bytes, uint32_t barrierAddress) {
  check(self->clusterArrivals > 0 && self->clusterArrivals <= self->block->cluster->generation,
        "a thread writes to another block before the cluster has met");
  check(state->launch->cluster > 1, "st.async needs a cluster of at least two blocks");
  Block &block = blockOf(address);
  check(&blockOf(barrierAddress) == &block, "st.async counts at an mbarrier of another block");
  check(block.memory != nullptr, "st.async to a block that has ended");
  const uint32_t target = address % kRankUnit;
  check(target % static_cast<uint32_t>(bytes) == 0 && target + bytes <= pool.sharedBytes, "st.async to a bad address");
  auto found = block.barriers.find(barrierAddress % kRankUnit);
  check(found != block.barriers.end(), "st.async counts at what is no mbarrier");
  Barrier &barrier = found->second;
  check(barrier.phase == 0, "st.async behind the last message of its mbarrier");
  Message message = {target, bytes, {}};
  std::memcpy(message.value, value, static_cast<size_t>(bytes));
  std::memset(block.memory + target, 0xff, static_cast<size_t>(bytes));
  barrier.messages.push_back(message);
  barrier.issued += bytes;
  checkBytes(barrier);
  if (!barrier.waiting.empty())
    completeBarrier(block, barrier);
}

} // namespace emulator
