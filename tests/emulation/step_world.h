// A cache of keys and values, one step of decode on it, and the check of all that the step wrote. A world draws its
// data from a seed, runs a variant of decode_step in the emulator, and compares with the definition of
// docs/specification.md, sections 3 to 10, computed in fp64.
#pragma once

#include "decode_step_variant.h"

#include <string>
#include <vector>

namespace emulation {

struct StepCase {
  std::vector<int> lengths; // of the cache, before the step
  int kvHeads = 1;
  int window = 512;
  int initBlocks = 1;
  int localBlocks = 2;
  int tokens = 1;         // new tokens of each sequence
  std::vector<int> added; // new tokens of each sequence, up to `tokens`. If it is not empty, the queries are packed
  bool onePool = false;   // the selected branch and the window share keys and values
  bool ownQCmp = false;   // q_cmp is a tensor of its own
  bool oneQCmp = false;   // q_cmp begins where q does and has one row for all heads
  bool outputs = true;    // optional outputs are there
  int padding = 0;        // elements between heads
  int shift = 0;          // bytes that tensors begin behind a multiple of 16
  int weightPadding = 0;  // elements between rows of weights
  int weightGap = 0;      // rows between the weights of two tokens
  bool addsPe = true;     // weights have position embeddings
  bool addsBias = true;   // and biases
  float sharpness = 4;    // of the queries
  bool equalKeys = false; // all compressed keys are equal, so all selection blocks tie
  float level = 0;        // if not 0, the score of all compressed keys in base 2
  int oddKey = -1;        // a compressed key and a token that hold oddValue
  float oddValue = 0;
  uint64_t seed = 1;  // of the data
  uint64_t order = 1; // of threads. An odd number starves warps
  int clustersAtOnce = 2;
  // Faults: what is written over the lengths and tables, and the code that is reported.
  int faultySequence = -1;
  int faultyLength = 0;
  bool faultyPage = false;
  bool faultyOffset = false;
  int code = 0;
  int capacity = 0;   // 0: enough
  int maxSeqlenK = 0; // 0: the room
};

struct StepReport {
  std::vector<std::string> errors;
  std::vector<unsigned char> results; // the bytes of all outputs, to compare runs
  double worst = 0;                   // greatest relative error of a row
  int differingLists = 0;
};

StepReport runStepCase(const StepVariant &variant, const StepCase &test);

} // namespace emulation
