// The key under which the choice of a kernel is stored, as a value. Keys of operators (Problem::key) and of programs of
// one's own have one form: what is computed, the values that are compiled in, and the sizes that only choose a kernel.
//   window dtype=bf16 group=8 qk_dim=64 v_dim=64 | batch=1 seqlen_k=1024 seqlen_q=16
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace nsa {

struct ProblemKey {
  std::string op; // the operator's name, or the program's name and digest
  std::map<std::string, std::string> fixed;
  std::map<std::string, int64_t> buckets; // powers of two

  static ProblemKey of(const Problem &problem);
  // Returns nullopt for a text that no version of this library has written: words out of order, a value without a name,
  // or a bucket that is no power of two.
  static std::optional<ProblemKey> parse(std::string_view text);
  std::string text() const;

  // Returns whether a kernel that was compiled for one of the keys computes what the other one asks for.
  bool hasKernelOf(const ProblemKey &other) const { return op == other.op && fixed == other.fixed; }
  // Returns how many of the values in the code of this key's kernel another key lacks or has otherwise.
  size_t fixedDifferences(const ProblemKey &other) const;
  // The distance of another key's buckets.
  struct Distance {
    int powers = 0; // of two, added up over the buckets
    int size = 0;   // the logarithms of the other's buckets, added up: of two equally near keys the larger one is taken
  };
  // Returns nullopt if the keys have not the same buckets.
  std::optional<Distance> distanceTo(const ProblemKey &other) const;
  // Returns the values that another key has otherwise: "dtype=fp32 instead of bf16, seqlen_k=65536 instead of 1024".
  std::string differenceText(const ProblemKey &other) const;

  bool operator==(const ProblemKey &) const = default;
};

// Returns the name of the program of one's own for which `op` stands (ProgramSource::key), or "" for an operator.
inline std::string_view programNameOf(std::string_view op) {
  const size_t at = op.find('@');
  return at == std::string_view::npos ? std::string_view() : op.substr(0, at);
}

} // namespace nsa
