// The tensors of one step of decode, filled from a seed, and the rows in them.
#pragma once

#include "step_world.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

namespace emulation {

// Memory of a tensor, between pages that cannot be accessed.
class Memory {
public:
  Memory(size_t bytes, size_t shift, unsigned char fill);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  unsigned char *data() const { return begin; }
  size_t size() const { return bytes; }
  // What the memory is expected to hold: what it held when `expectNow` was called, as changed since.
  std::vector<unsigned char> expected;
  void expectNow() { expected.assign(begin, begin + bytes); }

private:
  unsigned char *region = nullptr;
  unsigned char *begin = nullptr;
  size_t bytes = 0;
  size_t regionBytes = 0;
};

// A tensor with its memory, in which every element has a coordinate of up to four numbers and a column.
struct Owned {
  std::unique_ptr<Memory> memory;
  Tensor view;
  bool isBf16 = true;

  uint16_t *row(int a, int b, int c) const {
    return static_cast<uint16_t *>(view.data) + a * view.strides[0] + b * view.strides[1] + c * view.strides[2];
  }
  float get(const uint16_t *at) const { return isBf16 ? nsa::bf16ToFloat(*at) : nsa::fp16ToFloat(*at); }
  uint16_t bits(float value) const { return isBf16 ? nsa::floatToBf16(value) : nsa::floatToFp16(value); }
  template <typename T> T *at(int a, int b = 0, int c = 0, int d = 0) const {
    return static_cast<T *>(view.data) + a * view.strides[0] + b * view.strides[1] + c * view.strides[2] +
           d * view.strides[3];
  }
  // Says that an element holds what it should, so it is no unexpected change.
  void accept(const void *element, size_t bytes) const {
    const size_t offset = static_cast<size_t>(static_cast<const unsigned char *>(element) - memory->data());
    std::copy_n(memory->data() + offset, bytes, memory->expected.begin() + static_cast<ptrdiff_t>(offset));
  }
};

// Everything of a step: `make` fills it. The names of tensors are those of the template's arguments.
class StepTensors {
public:
  StepTensors(const StepVariant &variant, const StepCase &test) : p(variant.problem), test(test), random(test.seed) {
    batch = static_cast<int>(test.lengths.size());
    packed = !test.added.empty();
    if (!packed)
      added.assign(test.lengths.size(), test.tokens);
    else
      added = test.added;
    capacity = test.capacity != 0 ? test.capacity : p.room;
    if (p.pageSize > 0)
      capacity = (capacity + p.pageSize - 1) / p.pageSize * p.pageSize;
  }

  // Makes all tensors and the arguments of the call.
  void make();

  bool works(int s) const { return added[static_cast<size_t>(s)] > 0 && s != test.faultySequence; }
  int length(int s) const { return test.lengths[static_cast<size_t>(s)]; }
  int newTokens(int s) const { return added[static_cast<size_t>(s)]; }
  // The row of the sequence's first new token in tensors of new tokens.
  int entryOf(int s) const { return packed ? 0 : s; }
  int timeOf(int s) const { return packed ? std::accumulate(added.begin(), added.begin() + s, 0) : 0; }
  // Gives a tensor its shape and memory, which is NaN. A shifted tensor has the padding and the shift of the case, and
  // `gap` more elements between its rows.
  void place(Owned &tensor, std::vector<int64_t> shape, int columns, int elementBytes, bool shifted, int gap = 0);
  void fill(const Owned &tensor, uint16_t *at, int columns, float scale);
  // Rows of the cache, with or without pages.
  uint16_t *poolRow(const Owned &pool, int s, int row, int rowsOfPage, int head) const;
  uint16_t *token(const Owned &pool, int s, int row, int head) const { return poolRow(pool, s, row, p.pageSize, head); }
  uint16_t *compressed(const Owned &pool, int s, int row, int head) const;
  int visible(int tokens) const { return tokens < p.cmpBlock ? 0 : (tokens - p.cmpBlock) / p.cmpStride + 1; }
  bool compresses() const { return p.hasCmp || p.hasSel; }
  // The weights that make compressed rows of K, or of V. What is not there has no memory.
  struct Weights {
    Owned pe, w, b, w1, b1, w2, b2;
  };
  void makeWeights(Weights &weights, int columns, bool isLevel, float level);
  void makeFaults();

  const StepProblem &p;
  const StepCase &test;
  std::mt19937_64 random;
  int batch, capacity, pages = 0;
  bool packed;
  std::vector<int> added;
  double scale = 1;
  StepArguments arguments;
  std::vector<Owned *> all;
  Owned q, qCmp, kSelCache, vSelCache, kWinCache, vWinCache, kComp, vComp, gates, out, reads, oCmp, oSel, oWin, lseCmp,
      lseSel, lseWin, blockList, offsets, lengths, table, kSel, vSel, kWin, vWin, kCmp, vCmp, kRaw, vRaw, arrivals,
      status;
  Weights ofK, ofV;
};

} // namespace emulation
