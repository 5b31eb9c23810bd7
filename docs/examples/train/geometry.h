// The sizes of the model: a small one, which trains on two processor cores in minutes. Selection leaves blocks out:
// a query attends kSelCount * kSelBlock = 96 of up to 512 tokens in its selected branch.
#pragma once

#include <cstdint>

namespace example {

constexpr std::int64_t kBytes = 256;                             // the vocabulary
constexpr std::int64_t kSequence = 512;                          // tokens that a sequence has
constexpr std::int64_t kLayers = 2, kWidth = 128, kHidden = 512; // kHidden: between the two matrices of an MLP
constexpr std::int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 32;
constexpr std::int64_t kBranches = 3; // compressed, selected, window: the order of the gates
constexpr std::int64_t kWindow = 8, kCmpBlock = 16, kCmpStride = 8;
constexpr std::int64_t kSelBlock = 16, kSelCount = 6, kInitBlocks = 1, kLocalBlocks = 2;
constexpr std::int64_t kCompressed = (kSequence - kCmpBlock) / kCmpStride + 1; // blocks of a sequence
constexpr std::int64_t kQueryRow = kHeads * kHeadDim, kKeyRow = kKvHeads * kHeadDim;

// What attention reads of a token is one row of the product of the token's state and one matrix. These are the columns
// at which the parts of the row begin.
namespace column {
constexpr std::int64_t kQuery = 0;
constexpr std::int64_t kKeySel = kQuery + kQueryRow, kKeyWin = kKeySel + kKeyRow, kKeyCmp = kKeyWin + kKeyRow;
constexpr std::int64_t kValueSel = kKeyCmp + kKeyRow, kValueWin = kValueSel + kKeyRow, kValueCmp = kValueWin + kKeyRow;
constexpr std::int64_t kGates = kValueCmp + kKeyRow; // logits, [heads, branches]
// Twenty columns behind the gates are not read: they make the row a multiple of a matrix product's tile.
constexpr std::int64_t kEnd = kGates + 32;
} // namespace column

} // namespace example
