// The key under which PlanMap finds a plan: a problem (runtime/base/problem.h) as a struct of numbers, so that finding
// a plan composes no text. Two requests whose sizes are rounded up to the same buckets have the same plan key, because
// they have the same stored choice. Two requests have equal keys exactly when their steps (pipeline.h) have equal
// Problem::key() texts.
// Thread-safety: values.
#pragma once

#include "runtime/base/bucket.h"
#include "runtime/engine/graph/pipeline.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace nsa {

struct PlanKey {
  uint8_t op, dtype, layout;
  uint8_t batchBits, kvHeadsBits, seqlenQBits, seqlenKBits, windowBits; // base-2 logarithms of the buckets
  int32_t group, qkDim, vDim;
  uint8_t routes, cmpKind, activation, gate; // here and below, a field that the operator does not read is zero
  int32_t cmpBlock, cmpStride, selBlock;
  int32_t mlpHidden;
  uint8_t selCount, gatePerGroup, branches, slots; // slots: KeySplits::slots; 0 where keys are not shared
  int32_t pageSize;
  bool operator==(const PlanKey &) const = default;

  // The spec and the maxima must have passed validate().
  static PlanKey make(const Spec &spec, const Maxima &maxima) {
    uint32_t fields = fieldsOf(spec.op);
    // In some plans of decode, several programs of a grid share the keys of a query (sharesKeys). The kernels of a plan
    // that shares keys depend neither on the layout nor on routesOf (pipeline.h). If a plan that shares keys has the
    // branch sel, it uses the kernel that can compute both sel and win, even if the branch win is off.
    const bool shares = sharesKeys(spec, maxima);
    const bool isJoined = shares && spec.hasBranch(kBranchSel);
    const int64_t window = isJoined && !spec.hasBranch(kBranchWin) ? maxima.seqlenK : spec.window;
    if (isWhole(spec.op)) {
      if (!spec.hasBranch(kBranchWin) && !isJoined)
        fields &= ~uint32_t{kWindowField};
      if (!spec.hasBranch(kBranchSel))
        fields &= ~uint32_t{kSelGeometry};
      if (!spec.hasBranch(kBranchSel) && !spec.hasBranch(kBranchCmp))
        fields &= ~uint32_t{kCmpGeometry | kPhi};
    }
    auto number = [&](uint32_t field, auto value) { return fields & field ? value : decltype(value){}; };
    auto byte = [&](uint32_t field, auto value) { return fields & field ? static_cast<uint8_t>(value) : uint8_t{0}; };
    const bool isMlp = spec.cmpKind == CmpKind::kMlp;
    return {static_cast<uint8_t>(spec.op),
            static_cast<uint8_t>(spec.dtype),
            shares ? uint8_t{0} : static_cast<uint8_t>(spec.layout),
            bucketBits(maxima.batch),
            bucketBits(spec.kvHeads),
            bucketBits(maxima.seqlenQ),
            bucketBits(maxima.seqlenK),
            byte(kWindowField, bucketBits(std::min(window, maxima.seqlenK))),
            number(kHeads, spec.group()),
            number(kQk, spec.qkDim),
            number(kV, spec.vDim),
            shares ? uint8_t{0} : routesOf(spec, maxima),
            byte(kPhi, spec.cmpKind),
            isMlp ? byte(kPhi, spec.mlpActivation) : uint8_t{0},
            byte(kGates, spec.gate),
            number(kCmpGeometry, spec.cmpBlock),
            number(kCmpGeometry, spec.cmpStride),
            number(kSelGeometry, spec.selBlock),
            isMlp ? number(kPhi, spec.mlpHidden) : 0,
            byte(kSelGeometry, spec.selCount),
            byte(kGates, spec.gatePerGroup),
            isJoined           ? uint8_t{kAllBranches}
            : isWhole(spec.op) ? branchSteps(spec)
                               : uint8_t{0},
            shares ? static_cast<uint8_t>(KeySplits::make(spec, maxima).slots(spec)) : uint8_t{0},
            number(kPages, spec.pageSize)};
  }

  size_t hash() const {
    // The hash multiplies pairs of 64-bit words and combines the two halves of each product by XOR, so that the result
    // depends on every bit of both words.
    auto fold = [](uint64_t a, uint64_t b) {
      auto product = static_cast<unsigned __int128>(a) * b;
      return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    };
    auto words = std::bit_cast<std::array<uint64_t, 6>>(*this);
    const uint64_t first = fold(words[0] ^ 0x9e3779b97f4a7c15, words[1] ^ 0xd1b54a32d192ed03);
    const uint64_t second = fold(words[2] ^ 0x8bb84b93962eacc9, words[3] ^ 0x2d358dccaa6c78a5);
    return fold(first ^ words[4], second ^ words[5] ^ 0xa0761d6478bd642f);
  }

private:
  // Returns as bits of Spec::branches the branches that have kernels in the plan. The branch sel needs the kernels of
  // the branch cmp, so the bit of cmp is set with the bit of sel.
  static uint8_t branchSteps(const Spec &spec) {
    return static_cast<uint8_t>(spec.branches | (spec.hasBranch(kBranchSel) ? kBranchCmp : 0));
  }
};
static_assert(std::has_unique_object_representations_v<PlanKey>, "the bytes are the key");

} // namespace nsa
