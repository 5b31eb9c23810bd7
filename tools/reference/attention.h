// The four attention operators exactly as the contract states them (docs/specification.md 1, 2, 4, 6, 7), in fp64 on
// the inputs as they were rounded to their io type: plain loops to read, not to be fast. They differ in the keys that a
// query may attend and in nothing else. Keys that no query may attend are never read. Checked against brute_force.h,
// which shares nothing with it but the argument types. Ownership: views borrow. Thread-safety: pure functions; `attend`
// starts its own threads.
#pragma once

#include "tools/reference/block_list.h"
#include "tools/reference/sequence.h"

#include <cstdint>
#include <vector>

namespace nsa::reference {

struct Attention {
  Spec spec{};              // op: dense, window, cmp or sel
  TensorView q{}, k{}, v{}; // cmp: compressed keys and values
  BlockLists blockLists{};  // sel: by row
  std::vector<Sequence> sequences{};
};

// A half-open range that is never empty. Keys count from the sequence's first key. For cmp the keys are compressed
// blocks.
struct KeyRange {
  int64_t begin = 0, end = 0;
};

// What the query may attend: ascending and disjoint.
std::vector<KeyRange> allowedKeys(const Attention &attention, const Sequence &sequence, int64_t query, int64_t kvHead);

// The inner product of two rows.
double dot(const double *a, const double *b, int64_t count);

// The softmax scale in fp64: never derived from v_dim.
double softmaxScale(const Spec &spec);

struct AttentionResult {
  std::vector<double> out;    // [rows, query_heads, v_dim]; zeros where no key is allowed
  std::vector<double> lse;    // [rows, query_heads], natural logarithm; -inf where no key is allowed
  std::vector<int64_t> reads; // [rows, kv_heads]: keys attended
};

// threads = 0: one per core.
AttentionResult attend(const Attention &attention, int threads = 0);

} // namespace nsa::reference
