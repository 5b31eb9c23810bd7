#include "simulator.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <ucontext.h>

Index3 threadIdx, blockIdx, gridDim;
alignas(128) unsigned char shared_memory[simulator::kSharedBytes];

namespace simulator {

namespace {

constexpr size_t kStackBytes = 256 * 1024;

struct Copy {
  uint32_t target;
  const void *source;
  int bytes;
};

struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  bool done = false;
  std::vector<Copy> begun;
  std::vector<std::vector<Copy>> groups;
};

// Threads that wait for each other.
struct Meeting {
  explicit Meeting(int members) : arguments(members) {}
  std::vector<void *> arguments;
  int arrived = 0;
  int generation = 0;
  const char *operation = nullptr;
};

struct Block {
  ucontext_t scheduler;
  std::vector<Fibre> fibres;
  std::vector<Meeting> warps;
  Meeting all;
  const std::function<void()> &body;
  int current = 0;
  bool progressed = false;
  std::string error;

  Block(int threads, const std::function<void()> &body)
      : fibres(threads), warps((threads + kWarpSize - 1) / kWarpSize, Meeting(kWarpSize)), all(threads), body(body) {}
};

Block *block = nullptr;

void yieldThread() { swapcontext(&block->fibres[block->current].context, &block->scheduler); }

// Errors inside a fibre end the simulation: it never runs again.
[[noreturn]] void fail(const std::string &message) {
  if (block->error.empty())
    block->error = "thread " + std::to_string(block->current) + ": " + message;
  for (;;)
    yieldThread();
}

void meet(Meeting &meeting, int place, const char *operation, void *argument,
          const std::function<void(const std::vector<void *> &)> &perform) {
  if (meeting.arrived == 0)
    meeting.operation = operation;
  else if (std::strcmp(meeting.operation, operation) != 0)
    fail(std::string("meets at ") + operation + ", others at " + meeting.operation);
  meeting.arguments[place] = argument;
  block->progressed = true;
  if (++meeting.arrived == static_cast<int>(meeting.arguments.size())) {
    perform(meeting.arguments);
    meeting.arrived = 0;
    ++meeting.generation;
    return;
  }
  for (int generation = meeting.generation; meeting.generation == generation;)
    yieldThread();
}

void runThread() {
  block->body();
  block->fibres[block->current].done = true;
  block->progressed = true;
  for (;;)
    yieldThread();
}

int threadAt(Order order, int turn, int threads) {
  switch (order) {
  case Order::kForward:
    return turn;
  case Order::kBackward:
    return threads - 1 - turn;
  case Order::kWarpsBackward:
    return (threads / kWarpSize - 1 - turn / kWarpSize) * kWarpSize + turn % kWarpSize;
  }
  return turn;
}

} // namespace

void runBlock(int threads, Index3 index, Order order, const std::function<void()> &body) {
  Block running(threads, body);
  block = &running;
  blockIdx = index;
  std::memset(shared_memory, 0xff, kSharedBytes);
  for (Fibre &fibre : running.fibres) {
    getcontext(&fibre.context);
    fibre.context.uc_stack = {.ss_sp = fibre.stack.get(), .ss_flags = 0, .ss_size = kStackBytes};
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, runThread, 0);
  }
  for (bool left = true; left && running.error.empty();) {
    left = running.progressed = false;
    for (int turn = 0; turn < threads && running.error.empty(); ++turn) {
      running.current = threadAt(order, turn, threads);
      Fibre &fibre = running.fibres[running.current];
      if (fibre.done)
        continue;
      threadIdx.x = running.current;
      swapcontext(&running.scheduler, &fibre.context);
      left |= !fibre.done;
    }
    if (left && !running.progressed && running.error.empty())
      running.error = "threads wait for others that never come";
  }
  block = nullptr;
  if (!running.error.empty())
    throw std::runtime_error(running.error);
}

void meetWarp(const char *operation, void *argument, const std::function<void(void *const *)> &perform) {
  meet(block->warps[block->current / kWarpSize], block->current % kWarpSize, operation, argument,
       [&](const std::vector<void *> &arguments) { perform(arguments.data()); });
}

void meetBlock(const char *operation, void *argument, const std::function<void(const std::vector<void *> &)> &perform) {
  meet(block->all, block->current, operation, argument, perform);
}

void check(bool condition, const char *message) {
  if (!condition)
    fail(message);
}

// The bytes arrive when they are waited for; until then the destination is NaN, so a read that comes too early shows.
void beginCopy(uint32_t target, const void *source, int bytes) {
  check(target % 16 == 0 && target + 16 <= kSharedBytes, "cp.async to a bad shared address");
  check(bytes >= 0 && bytes <= 16, "cp.async of a bad size");
  check(bytes == 0 || reinterpret_cast<uintptr_t>(source) % 16 == 0, "cp.async from an unaligned address");
  std::memset(shared_memory + target, 0xff, 16);
  block->fibres[block->current].begun.push_back({target, source, bytes});
}

void commitCopies() {
  Fibre &fibre = block->fibres[block->current];
  fibre.groups.push_back(std::exchange(fibre.begun, {}));
}

void waitCopies(int pending) {
  std::vector<std::vector<Copy>> &groups = block->fibres[block->current].groups;
  while (static_cast<int>(groups.size()) > pending) {
    for (const Copy &copy : groups.front()) {
      std::memset(shared_memory + copy.target, 0, 16);
      if (copy.bytes > 0)
        std::memcpy(shared_memory + copy.target, copy.source, copy.bytes);
    }
    groups.erase(groups.begin());
  }
}

} // namespace simulator
