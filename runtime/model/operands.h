// The tensors that each operator takes, and the views that plans pass to its kernels besides: what the rows of the
// table in operators.cpp point to. Thread-safety: constants.
#pragma once

#include "runtime/model/operators.h"

namespace nsa::operands {

using enum Operand::Role;
using T = TensorName;
using V = View;

inline constexpr Operand kAttention[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                         {T::kKWin, T::kK, kIn, V::kK},
                                         {T::kVWin, T::kV, kIn, V::kV},
                                         {T::kKOffset, T::kKOffset, kIn, V::kKOffset},
                                         {T::kOut, T::kOut, kOut, V::kOut},
                                         {T::kLse, T::kLse, kOptionalOut, V::kLse},
                                         {T::kReads, T::kReads, kOptionalOut, V::kReads}};

// Weights, shared by compress and nsa.
#define NSA_PHI_OPERANDS(peK, peV)                                                                                     \
  {T::kPeK, T::kPeK, kOptionalIn, V::peK}, {T::kPeV, T::kPeV, kOptionalIn, V::peV}, {T::kWK, T::kWK, kIn, V::kWK},     \
      {T::kWV, T::kWV, kIn, V::kWV}, {T::kBK, T::kBK, kOptionalIn, V::kBK}, {T::kBV, T::kBV, kOptionalIn, V::kBV},     \
      {T::kW1K, T::kW1K, kIn, V::kW1K}, {T::kW1V, T::kW1V, kIn, V::kW1V}, {T::kB1K, T::kB1K, kOptionalIn, V::kB1K},    \
      {T::kB1V, T::kB1V, kOptionalIn, V::kB1V}, {T::kW2K, T::kW2K, kIn, V::kW2K}, {T::kW2V, T::kW2V, kIn, V::kW2V},    \
      {T::kB2K, T::kB2K, kOptionalIn, V::kB2K}, {                                                                      \
    T::kB2V, T::kB2V, kOptionalIn, V::kB2V                                                                             \
  }

inline constexpr Operand kCompressOperands[] = {{T::kKCmp, T::kK, kIn, V::kK},
                                                {T::kVCmp, T::kV, kIn, V::kV},
                                                NSA_PHI_OPERANDS(kPeK, kPeV),
                                                {T::kKComp, T::kKComp, kOut, V::kKComp},
                                                {T::kVComp, T::kVComp, kOut, V::kVComp}};

// Each one on request.
#define NSA_PHI_GRADIENTS                                                                                              \
  {T::kDPeK, T::kDPeK, kOptionalOut, V::kDPeK}, {T::kDPeV, T::kDPeV, kOptionalOut, V::kDPeV},                          \
      {T::kDWK, T::kDWK, kOptionalOut, V::kDWK}, {T::kDWV, T::kDWV, kOptionalOut, V::kDWV},                            \
      {T::kDBK, T::kDBK, kOptionalOut, V::kDBK}, {T::kDBV, T::kDBV, kOptionalOut, V::kDBV},                            \
      {T::kDW1K, T::kDW1K, kOptionalOut, V::kDWK}, {T::kDW1V, T::kDW1V, kOptionalOut, V::kDWV},                        \
      {T::kDB1K, T::kDB1K, kOptionalOut, V::kDBK}, {T::kDB1V, T::kDB1V, kOptionalOut, V::kDBV},                        \
      {T::kDW2K, T::kDW2K, kOptionalOut, V::kDW2K}, {T::kDW2V, T::kDW2V, kOptionalOut, V::kDW2V},                      \
      {T::kDB2K, T::kDB2K, kOptionalOut, V::kDB2K}, {                                                                  \
    T::kDB2V, T::kDB2V, kOptionalOut, V::kDB2V                                                                         \
  }

inline constexpr Operand kCompressBwdOperands[] = {{T::kKCmp, T::kK, kIn, V::kK},
                                                   {T::kVCmp, T::kV, kIn, V::kV},
                                                   NSA_PHI_OPERANDS(kPeKElements, kPeVElements),
                                                   {T::kDKComp, T::kDKComp, kIn, V::kDKComp},
                                                   {T::kDVComp, T::kDVComp, kIn, V::kDVComp},
                                                   {T::kDKCmp, T::kDK, kOut, V::kDK},
                                                   {T::kDVCmp, T::kDV, kOut, V::kDV},
                                                   NSA_PHI_GRADIENTS};

inline constexpr Operand kCmpOperands[] = {{T::kQCmp, T::kQ, kIn, V::kQ},
                                           {T::kKComp, T::kKComp, kIn, V::kK},
                                           {T::kVComp, T::kVComp, kIn, V::kV},
                                           {T::kKOffset, T::kKOffset, kIn, V::kKOffset},
                                           {T::kOut, T::kOut, kOut, V::kOut},
                                           {T::kLse, T::kLse, kOptionalOut, V::kLse},
                                           {T::kReads, T::kReads, kOptionalOut, V::kReads}};

inline constexpr Operand kSelectOperands[] = {{T::kQCmp, T::kQ, kIn, V::kQ},
                                              {T::kKComp, T::kKComp, kIn, V::kK},
                                              {T::kLse, T::kLse, kOptionalIn, V::kLse},
                                              {T::kBlockList, T::kBlockList, kOut, V::kBlockList},
                                              {T::kBlockIndex, T::kBlockIndex, kOptionalOut, V::kBlockIndex}};

inline constexpr Operand kInvertOperands[] = {{T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                              {T::kBlockIndex, T::kBlockIndex, kOut, V::kBlockIndex}};

inline constexpr Operand kSelOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                           {T::kKSel, T::kK, kIn, V::kK},
                                           {T::kVSel, T::kV, kIn, V::kV},
                                           {T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                           {T::kOut, T::kOut, kOut, V::kOut},
                                           {T::kLse, T::kLse, kOptionalOut, V::kLse},
                                           {T::kReads, T::kReads, kOptionalOut, V::kReads}};

inline constexpr Operand kCombineOperands[] = {{T::kOCmp, T::kOCmp, kIn, V::kOCmp},
                                               {T::kOSel, T::kOSel, kIn, V::kOSel},
                                               {T::kOWin, T::kOWin, kIn, V::kOWin},
                                               {T::kGates, T::kGates, kIn, V::kGates},
                                               {T::kOut, T::kOut, kOut, V::kOut}};

inline constexpr Operand kCombineBwdOperands[] = {{T::kOCmp, T::kOCmp, kIn, V::kOCmp},
                                                  {T::kOSel, T::kOSel, kIn, V::kOSel},
                                                  {T::kOWin, T::kOWin, kIn, V::kOWin},
                                                  {T::kGates, T::kGates, kIn, V::kGates},
                                                  {T::kDOut, T::kDOut, kIn, V::kDOut},
                                                  {T::kDGates, T::kDGates, kOut, V::kDGates},
                                                  {T::kDOCmp, T::kDOCmp, kOptionalOut, V::kDOCmp},
                                                  {T::kDOSel, T::kDOSel, kOptionalOut, V::kDOSel},
                                                  {T::kDOWin, T::kDOWin, kOptionalOut, V::kDOWin}};

// The gradients of attention. A call binds d_k_win if it binds k_win, and d_k if it binds k.
#define NSA_ATTENTION_BWD_OPERANDS                                                                                     \
  {T::kOut, T::kOut, kIn, V::kOut}, {T::kLse, T::kLse, kIn, V::kLse}, {T::kDOut, T::kDOut, kIn, V::kDOut}, {           \
    T::kDelta, T::kDelta, kOptionalOut, V::kDelta                                                                      \
  }
inline constexpr Operand kAttentionBwdOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},       {T::kKWin, T::kK, kIn, V::kK},
                                                    {T::kVWin, T::kV, kIn, V::kV},    NSA_ATTENTION_BWD_OPERANDS,
                                                    {T::kDQ, T::kDQ, kOut, V::kDQ},   {T::kDKWin, T::kDK, kOut, V::kDK},
                                                    {T::kDVWin, T::kDV, kOut, V::kDV}};
inline constexpr Operand kCmpBwdOperands[] = {
    {T::kQCmp, T::kQ, kIn, V::kQ},         {T::kKComp, T::kKComp, kIn, V::kK},
    {T::kVComp, T::kVComp, kIn, V::kV},    NSA_ATTENTION_BWD_OPERANDS,
    {T::kDQCmp, T::kDQ, kOut, V::kDQ},     {T::kDKComp, T::kDKComp, kOut, V::kDK},
    {T::kDVComp, T::kDVComp, kOut, V::kDV}};
inline constexpr Operand kSelBwdOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                              {T::kKSel, T::kK, kIn, V::kK},
                                              {T::kVSel, T::kV, kIn, V::kV},
                                              {T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                              {T::kBlockIndex, T::kBlockIndex, kOptionalIn, V::kBlockIndex},
                                              NSA_ATTENTION_BWD_OPERANDS,
                                              {T::kDQ, T::kDQ, kOut, V::kDQ},
                                              {T::kDKSel, T::kDK, kOut, V::kDK},
                                              {T::kDVSel, T::kDV, kOut, V::kDV}};
#undef NSA_ATTENTION_BWD_OPERANDS
// What the tuner draws for the kernels of these gradients. Tokens are compressed blocks of one token.
inline constexpr Operand kDeltasOperands[] = {
    {T::kOut, T::kOut, kIn, V::kOut}, {T::kDOut, T::kDOut, kIn, V::kDOut}, {T::kDelta, T::kDelta, kOut, V::kDelta}};
inline constexpr Operand kAttentionDqOperands[] = {
    {T::kQ, T::kQ, kIn, V::kQ},          {T::kKComp, T::kKComp, kIn, V::kK}, {T::kVComp, T::kVComp, kIn, V::kV},
    {T::kDOut, T::kDOut, kIn, V::kDOut}, {T::kLse, T::kLse, kIn, V::kLse},   {T::kDelta, T::kDelta, kIn, V::kDelta},
    {T::kDQ, T::kDQ, kOut, V::kDQ}};
inline constexpr Operand kAttentionDkvOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                                    {T::kKComp, T::kKComp, kIn, V::kK},
                                                    {T::kVComp, T::kVComp, kIn, V::kV},
                                                    {T::kDOut, T::kDOut, kIn, V::kDOut},
                                                    {T::kLse, T::kLse, kIn, V::kLse},
                                                    {T::kDelta, T::kDelta, kIn, V::kDelta},
                                                    {T::kDKComp, T::kDKComp, kOut, V::kDK},
                                                    {T::kDVComp, T::kDVComp, kOut, V::kDV}};

inline constexpr Operand kSelDqOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                             {T::kKSel, T::kKSel, kIn, V::kK},
                                             {T::kVSel, T::kVSel, kIn, V::kV},
                                             {T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                             {T::kDOut, T::kDOut, kIn, V::kDOut},
                                             {T::kLse, T::kLse, kIn, V::kLse},
                                             {T::kDelta, T::kDelta, kIn, V::kDelta},
                                             {T::kDQ, T::kDQ, kOut, V::kDQ}};
inline constexpr Operand kSelDkvOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                              {T::kKSel, T::kKSel, kIn, V::kK},
                                              {T::kVSel, T::kVSel, kIn, V::kV},
                                              {T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                              {T::kDOut, T::kDOut, kIn, V::kDOut},
                                              {T::kLse, T::kLse, kIn, V::kLse},
                                              {T::kDelta, T::kDelta, kIn, V::kDelta}};

inline constexpr V kDqViews[] = {V::kDqSum, V::kDqBase, V::kWeight, V::kDeltaNext};
inline constexpr V kSelDqViews[] = {V::kDqSum, V::kDqBase, V::kWeight, V::kListLengths, V::kDeltaNext};
inline constexpr V kPartsViews[] = {V::kDkParts, V::kDvParts, V::kWeight};
// The kernel takes the inverse of the lists; the tuner draws lists.
inline constexpr V kPiecesViews[] = {V::kBlockIndex, V::kDkPieces, V::kDvPieces, V::kWeight};
inline constexpr V kIndexRangesViews[] = {V::kBlockIndex, V::kIndexRanges};
inline constexpr V kIndexSlotsViews[] = {V::kBlockList, V::kBlockIndex, V::kEntrySlots};
inline constexpr V kSlotsViews[] = {V::kBlockIndex, V::kEntrySlots, V::kIndexRanges,
                                    V::kDqSlots,    V::kRestSlots,  V::kKeySlots};
inline constexpr V kSumSlotsViews[] = {V::kDelta,       V::kDeltaNext, V::kDqSlots, V::kRestSlots, V::kKeySlots,
                                       V::kListLengths, V::kWeight,    V::kDQ,      V::kDqSum,     V::kDqBase};
inline constexpr V kGatesViews[] = {V::kDeltaCmp,  V::kDeltaSel,  V::kDeltaWin,
                                    V::kWeightCmp, V::kWeightSel, V::kWeightWin};
inline constexpr V kIndexStartsViews[] = {V::kBlockCounts, V::kBlockIndex};
inline constexpr V kIndexViews[] = {V::kBlockList, V::kListLengths, V::kBlockCounts, V::kBlockIndex, V::kEntrySlots};
inline constexpr V kSumPartsViews[] = {V::kDkParts,  V::kDvParts,  V::kDK,       V::kDV,       V::kDKCmp,
                                       V::kDVCmp,    V::kDKSel,    V::kDVSel,    V::kDKWin,    V::kDVWin,
                                       V::kDkPieces, V::kDvPieces, V::kDkBlocks, V::kDvBlocks, V::kBlockIndex,
                                       V::kDKRest,   V::kDVRest};

inline constexpr V kCompressDzViews[] = {V::kK,   V::kV,   V::kPeK,     V::kPeV,     V::kW1K,    V::kW1V,   V::kB1K,
                                         V::kB1V, V::kW2K, V::kW2V,     V::kDKComp,  V::kDVComp, V::kHK,    V::kHV,
                                         V::kDzK, V::kDzV, V::kDzRestK, V::kDzRestV, V::kDKRest, V::kDVRest};
inline constexpr V kCompressDxViews[] = {V::kDzK, V::kDzV, V::kDzRestK, V::kDzRestV,  V::kWK,
                                         V::kWV,  V::kDK,  V::kDV,      V::kDkBlocks, V::kDvBlocks};
inline constexpr V kCompressDwViews[] = {V::kK,   V::kV,   V::kDzK,    V::kDzV,    V::kDzRestK,    V::kDzRestV,
                                         V::kHK,  V::kHV,  V::kDKComp, V::kDVComp, V::kDKRest,     V::kDVRest,
                                         V::kDWK, V::kDWV, V::kDW2K,   V::kDW2V,   V::kWeightParts};
inline constexpr V kCompressDbViews[] = {V::kDzK,    V::kDzV,    V::kDzRestK, V::kDzRestV,     V::kDKComp,
                                         V::kDVComp, V::kDKRest, V::kDVRest,  V::kBiasElements};
inline constexpr V kCompressSumsViews[] = {
    V::kWeightParts, V::kBiasParts, V::kWK,   V::kWV,   V::kPeKElements, V::kPeVElements, V::kDWK,  V::kDWV,
    V::kDBK,         V::kDBV,       V::kDPeK, V::kDPeV, V::kDW2K,        V::kDW2V,        V::kDB2K, V::kDB2V};

inline constexpr V kCombineViews[] = {V::kReadsCmp, V::kReadsSel, V::kReadsWin, V::kReads};
// What plans pass to the kernels of internal operators. Operators that one tile program defines, or that run in one
// kind of step, share a list: a kernel takes all tensors that its program declares.
inline constexpr V kSequencesViews[] = {V::kCuSeqlensQ, V::kCuSeqlensK, V::kKOffset, V::kCacheSeqlens, V::kBlockTable};
inline constexpr V kAppendViews[] = {V::kKCmp, V::kVCmp,      V::kKSel,      V::kVSel,      V::kKWin,
                                     V::kVWin, V::kKSelCache, V::kVSelCache, V::kKWinCache, V::kVWinCache,
                                     V::kKRaw, V::kVRaw,      V::kKStaged,   V::kVStaged};
inline constexpr V kSplitViews[] = {V::kQ,      V::kK,        V::kV,        V::kKWin,       V::kVWin,
                                    V::kOSplit, V::kLseSplit, V::kLseHeads, V::kReadsSplit, V::kChoice};
inline constexpr V kScoresViews[] = {V::kQ, V::kK, V::kLseGroups, V::kScores, V::kScoreRows};
inline constexpr V kChooseViews[] = {V::kBlockList,  V::kScores,     V::kScoreRows, V::kScoreBlocks,
                                     V::kBestScores, V::kBestBlocks, V::kChoiceRows};
inline constexpr V kMergeViews[] = {V::kOut,    V::kReads,    V::kGates,  V::kOCmp,     V::kOSel,
                                    V::kOWin,   V::kLseSplit, V::kOSlots, V::kLseSlots, V::kReadsSlots,
                                    V::kLseCmp, V::kLseSel,   V::kLseWin};
inline constexpr V kDecodeStepViews[] = {
    V::kQ,      V::kQCmp,      V::kKSelCache,  V::kVSelCache,    V::kKWinCache,  V::kVWinCache, V::kKComp,  V::kVComp,
    V::kGates,  V::kOut,       V::kReads,      V::kOCmp,         V::kOSel,       V::kOWin,      V::kLseCmp, V::kLseSel,
    V::kLseWin, V::kBlockList, V::kCuSeqlensQ, V::kCacheSeqlens, V::kBlockTable, V::kKSel,      V::kVSel,   V::kKWin,
    V::kVWin,   V::kKCmp,      V::kVCmp,       V::kKRaw,         V::kVRaw,       V::kArrivals,  V::kPeK,    V::kPeV,
    V::kWK,     V::kWV,        V::kBK,         V::kBV,           V::kW1K,        V::kW1V,       V::kB1K,    V::kB1V,
    V::kW2K,    V::kW2V,       V::kB2K,        V::kB2V};

// The views are of the kernel that first reads or writes the tensor.
inline constexpr Operand kNsaOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                           {T::kQCmp, T::kQ, kIn, V::kQ},
                                           {T::kKCmp, T::kK, kIn, V::kK},
                                           {T::kVCmp, T::kV, kIn, V::kV},
                                           {T::kKSel, T::kK, kIn, V::kK},
                                           {T::kVSel, T::kV, kIn, V::kV},
                                           {T::kKWin, T::kK, kIn, V::kK},
                                           {T::kVWin, T::kV, kIn, V::kV},
                                           NSA_PHI_OPERANDS(kPeK, kPeV),
                                           {T::kGates, T::kGates, kIn, V::kGates},
                                           {T::kOut, T::kOut, kOut, V::kOut},
                                           {T::kOCmp, T::kOCmp, kOptionalOut, V::kOut},
                                           {T::kOSel, T::kOSel, kOptionalOut, V::kOut},
                                           {T::kOWin, T::kOWin, kOptionalOut, V::kOut},
                                           {T::kLseCmp, T::kLseCmp, kOptionalOut, V::kLse},
                                           {T::kLseSel, T::kLseSel, kOptionalOut, V::kLse},
                                           {T::kLseWin, T::kLseWin, kOptionalOut, V::kLse},
                                           {T::kBlockList, T::kBlockList, kOptionalOut, V::kBlockList},
                                           {T::kBlockIndex, T::kBlockIndex, kOptionalOut, V::kBlockIndex},
                                           {T::kKComp, T::kKComp, kOptionalOut, V::kKComp},
                                           {T::kVComp, T::kVComp, kOptionalOut, V::kVComp},
                                           {T::kReads, T::kReads, kOptionalOut, V::kReads}};

// The new tokens as keys stand in the place of all keys; the cache has those and the earlier ones.
inline constexpr Operand kDecodeOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                              {T::kQCmp, T::kQ, kIn, V::kQ},
                                              {T::kKCmp, T::kK, kIn, V::kKCmp},
                                              {T::kVCmp, T::kV, kIn, V::kVCmp},
                                              {T::kKSel, T::kK, kIn, V::kKSel},
                                              {T::kVSel, T::kV, kIn, V::kVSel},
                                              {T::kKWin, T::kK, kIn, V::kKWin},
                                              {T::kVWin, T::kV, kIn, V::kVWin},
                                              NSA_PHI_OPERANDS(kPeK, kPeV),
                                              {T::kGates, T::kGates, kIn, V::kGates},
                                              {T::kKSelCache, T::kKCache, kInOut, V::kKSelCache},
                                              {T::kVSelCache, T::kVCache, kInOut, V::kVSelCache},
                                              {T::kKWinCache, T::kKCache, kInOut, V::kKWinCache},
                                              {T::kVWinCache, T::kVCache, kInOut, V::kVWinCache},
                                              {T::kKCompCache, T::kKCompCache, kInOut, V::kKComp},
                                              {T::kVCompCache, T::kVCompCache, kInOut, V::kVComp},
                                              {T::kKRaw, T::kKRaw, kInOut, V::kKRaw},
                                              {T::kVRaw, T::kVRaw, kInOut, V::kVRaw},
                                              {T::kOut, T::kOut, kOut, V::kOut},
                                              {T::kOCmp, T::kOCmp, kOptionalOut, V::kOut},
                                              {T::kOSel, T::kOSel, kOptionalOut, V::kOut},
                                              {T::kOWin, T::kOWin, kOptionalOut, V::kOut},
                                              {T::kLseCmp, T::kLseCmp, kOptionalOut, V::kLse},
                                              {T::kLseSel, T::kLseSel, kOptionalOut, V::kLse},
                                              {T::kLseWin, T::kLseWin, kOptionalOut, V::kLse},
                                              {T::kBlockList, T::kBlockList, kOptionalOut, V::kBlockList},
                                              {T::kReads, T::kReads, kOptionalOut, V::kReads}};
// What the forward pass saved is read, or computed again where the caller has not bound it.
inline constexpr Operand kNsaBwdOperands[] = {{T::kQ, T::kQ, kIn, V::kQ},
                                              {T::kQCmp, T::kQ, kIn, V::kQ},
                                              {T::kKCmp, T::kK, kIn, V::kK},
                                              {T::kVCmp, T::kV, kIn, V::kV},
                                              {T::kKSel, T::kK, kIn, V::kK},
                                              {T::kVSel, T::kV, kIn, V::kV},
                                              {T::kKWin, T::kK, kIn, V::kK},
                                              {T::kVWin, T::kV, kIn, V::kV},
                                              NSA_PHI_OPERANDS(kPeKElements, kPeVElements),
                                              {T::kGates, T::kGates, kIn, V::kGates},
                                              {T::kOCmp, T::kOCmp, kOptionalIn, V::kOCmp},
                                              {T::kOSel, T::kOSel, kOptionalIn, V::kOSel},
                                              {T::kOWin, T::kOWin, kOptionalIn, V::kOWin},
                                              {T::kLseCmp, T::kLseCmp, kIn, V::kLse},
                                              {T::kLseSel, T::kLseSel, kIn, V::kLse},
                                              {T::kLseWin, T::kLseWin, kIn, V::kLse},
                                              {T::kBlockList, T::kBlockList, kIn, V::kBlockList},
                                              {T::kBlockIndex, T::kBlockIndex, kOptionalIn, V::kBlockIndex},
                                              {T::kKComp, T::kKComp, kOptionalIn, V::kKComp},
                                              {T::kVComp, T::kVComp, kOptionalIn, V::kVComp},
                                              {T::kDOut, T::kDOut, kIn, V::kDOut},
                                              {T::kDQ, T::kDQ, kOut, V::kDQ},
                                              {T::kDQCmp, T::kDQ, kOut, V::kDQ},
                                              {T::kDKCmp, T::kDK, kOut, V::kDKCmp},
                                              {T::kDVCmp, T::kDV, kOut, V::kDVCmp},
                                              {T::kDKSel, T::kDK, kOut, V::kDKSel},
                                              {T::kDVSel, T::kDV, kOut, V::kDVSel},
                                              {T::kDKWin, T::kDK, kOut, V::kDKWin},
                                              {T::kDVWin, T::kDV, kOut, V::kDVWin},
                                              {T::kDK, T::kDK, kOptionalOut, V::kDK},
                                              {T::kDV, T::kDV, kOptionalOut, V::kDV},
                                              {T::kDGates, T::kDGates, kOut, V::kDGates},
                                              NSA_PHI_GRADIENTS};
#undef NSA_PHI_GRADIENTS
#undef NSA_PHI_OPERANDS

inline constexpr Operand kRotateOperands[] = {{T::kX, T::kX, kIn, V::kX},
                                              {T::kCos, T::kCos, kOptionalIn, V::kCos},
                                              {T::kSin, T::kSin, kOptionalIn, V::kSin},
                                              {T::kOut, T::kOut, kOut, V::kRotated}};
inline constexpr Operand kRotateBwdOperands[] = {{T::kX, T::kX, kIn, V::kX},
                                                 {T::kCos, T::kCos, kOptionalIn, V::kCos},
                                                 {T::kSin, T::kSin, kOptionalIn, V::kSin},
                                                 {T::kOut, T::kOut, kOut, V::kDX}};
// One program serves both, and declares the results of both.
inline constexpr V kRotateViews[] = {V::kRotated, V::kDX};

} // namespace nsa::operands
