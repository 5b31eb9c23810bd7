// What the emulator knows of the threads, blocks and clusters of a running launch.
#pragma once

#include "emulator.h"

#include <csetjmp>
#include <map>
#include <memory>
#include <vector>

#include <ucontext.h>

namespace emulator {

struct Copy {
  uint32_t target;
  const void *source;
  int bytes;
};

struct Message {
  uint32_t target;
  int bytes;
  unsigned char value[16];
};

struct Fibre;

struct Barrier { // an mbarrier
  int arrivals = 0;
  int pending = 0;
  int64_t expected = 0; // bytes of the phase
  int64_t issued = 0;
  int phase = 0;
  std::vector<Message> messages;
  std::vector<Copy> copies;
  std::vector<Fibre *> waiting;
};

struct Meeting {
  int arrived = 0;
  const char *operation = nullptr;
  void *arguments[kWarpSize] = {};
  Fibre *lanes[kWarpSize] = {};
};

struct NamedBarrier {
  const char *operation = nullptr;
  int arrived = 0;
  int threads = 0;
  bool any = false;
  bool result = false;
  std::vector<Fibre *> waiting;
};

struct Cluster;

struct Block {
  Cluster *cluster = nullptr;
  Index3 index;
  int live = 0;
  unsigned char *memory = nullptr;
  std::vector<Meeting> warps;
  NamedBarrier named[16];
  std::map<uint32_t, Barrier> barriers;
};

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  int live = 0;
  int arrived = 0;
  int generation = 0;
  std::vector<Fibre *> waiting;
};

struct Place { // where something left off that goes on later
  ucontext_t context;
  jmp_buf jump;
  bool wasLeft = false;
};

struct Fibre {
  Place place;
  Block *block = nullptr;
  int thread = 0;
  char *stack = nullptr;
  std::vector<Copy> begun;
  std::vector<std::vector<Copy>> groups;
  int clusterArrivals = 0;
  const char *waitsAt = "";
};

} // namespace emulator
