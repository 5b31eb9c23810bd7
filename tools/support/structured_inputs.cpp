#include "tools/support/structured_inputs.h"

#include "tools/reference/elements.h"
#include "tools/support/forward_pass.h"
#include "tools/support/kv_cache.h"
#include "tools/support/operator_check.h"
#include "tools/support/standard_normal.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace nsa::tools {
namespace {

using reference::Sequence;
using T = TensorName;

constexpr std::string_view kNames[] = {"random", "clustered", "recency", "needle", "real-locality"};

// A query and a key of one content have this score before the softmax, whatever the head size and the scale: far above
// what noise reaches.
constexpr double kMatchScore = 12;
constexpr float kKeyNoise = 0.1f; // of each branch's keys, where contents have 1

// How fast contents change along a sequence, in tokens, and how much of a query is noise of its own: chosen so that the
// lists' locality is that of the trained models, at 8192 and at 32768 tokens.
constexpr double kRealKeyTokens = 64, kRealQueryTokens = 200;
constexpr float kRealQueryShare = 0.87f, kRealGroupNoise = 0.48f, kRealHeadNoise = 0.2f;

using Rows = std::vector<float>; // [time, columns]

// Draws the contents of one sequence and kv head, row by row.
class Contents {
public:
  Contents(std::mt19937_64 &random, int64_t columns) : random(random), columns(columns) {}

  float normal() { return distribution(random); }
  Rows noise(int64_t rows) {
    Rows result(static_cast<size_t>(rows * columns));
    for (float &value : result)
      value = normal();
    return result;
  }
  // A stationary walk of unit variance: rows `tokens` apart have a correlation of 1/e.
  Rows walk(int64_t rows, double tokens) {
    Rows result = noise(rows);
    const auto keep = static_cast<float>(std::exp(-1 / tokens));
    const float step = std::sqrt(1 - keep * keep);
    for (size_t i = static_cast<size_t>(columns); i < result.size(); ++i)
      result[i] = keep * result[i - static_cast<size_t>(columns)] + step * result[i];
    return result;
  }

private:
  std::mt19937_64 &random;
  int64_t columns;
  StandardNormal distribution;
};

// What one sequence and kv head hold: a row for each key, one for each position that a query may have, and how much of
// the query is the head's own noise.
struct Draft {
  Rows keys, queries;
  float headNoise = 0;
};

class StructuredDraw {
public:
  StructuredDraw(OperatorInputs &inputs, const StructureChoice &choice, uint64_t seed)
      : inputs(inputs), spec(inputs.spec), choice(choice), random(seed), contents(random, spec.qkDim) {}

  void run() {
    for (const Sequence &sequence : sequencesOf(inputs))
      for (int32_t group = 0; group < spec.kvHeads; ++group)
        store(sequence, group, draft(sequence));
  }

private:
  Draft draft(const Sequence &sequence) {
    // By structure. Random inputs have no draft.
    constexpr Draft (StructuredDraw::*kDrafts[])(const Sequence &) = {
        nullptr, &StructuredDraw::clustered, &StructuredDraw::recent, &StructuredDraw::needle, &StructuredDraw::local};
    return (this->*kDrafts[static_cast<size_t>(choice.structure)])(sequence);
  }

  size_t rowOf(int64_t time) const { return static_cast<size_t>(time * spec.qkDim); }
  // Of a query whose content is a key's.
  float matchGain() const { return static_cast<float>(kMatchScore / (spec.effectiveScale() * spec.qkDim)); }
  void scale(Rows &rows) const {
    for (float &value : rows)
      value *= matchGain();
  }

  // As many blocks in a cluster as a list has places that nothing is forced into.
  Draft clustered(const Sequence &sequence) {
    const int64_t blocks = (sequence.keys + spec.selBlock - 1) / spec.selBlock;
    const int64_t places = std::max<int64_t>(1, spec.selCount - spec.forcedBlocks());
    const int64_t clusters = std::max<int64_t>(2, (blocks + places - 1) / places);
    std::vector<int64_t> clusterOf(static_cast<size_t>(blocks));
    for (size_t i = 0; i < clusterOf.size(); ++i)
      clusterOf[i] = static_cast<int64_t>(i) % clusters;
    std::shuffle(clusterOf.begin(), clusterOf.end(), random);
    const Rows centers = contents.noise(clusters);
    Draft draft{Rows(rowOf(sequence.keys)), Rows(rowOf(sequence.keys)), kKeyNoise};
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t wanted = static_cast<int64_t>(random() % static_cast<uint64_t>(clusters));
      for (int64_t t = block * spec.selBlock; t < std::min((block + 1) * int64_t{spec.selBlock}, sequence.keys); ++t) {
        copyRow(centers, clusterOf[static_cast<size_t>(block)], draft.keys, t);
        copyRow(centers, wanted, draft.queries, t);
      }
    }
    scale(draft.queries);
    return draft;
  }

  // A query asks for what stands at its own place, and contents fade over twice the tokens that a list holds.
  Draft recent(const Sequence &sequence) {
    Draft draft{contents.walk(sequence.keys, 2.0 * spec.selCount * spec.selBlock), {}, kKeyNoise};
    draft.queries = draft.keys;
    scale(draft.queries);
    return draft;
  }

  Draft needle(const Sequence &sequence) {
    Draft draft{contents.noise(sequence.keys), contents.noise(sequence.keys), kKeyNoise};
    Rows wanted = contents.noise(1);
    const int64_t begin = choice.needlePosition / spec.selBlock * spec.selBlock;
    for (int64_t t = begin; t < std::min(begin + spec.selBlock, sequence.keys); ++t)
      copyRow(wanted, 0, draft.keys, t);
    scale(wanted);
    for (int64_t t = std::max<int64_t>(0, sequence.keys - spec.selBlock); t < sequence.keys; ++t)
      copyRow(wanted, 0, draft.queries, t);
    return draft;
  }

  Draft local(const Sequence &sequence) {
    Draft draft{contents.walk(sequence.keys, kRealKeyTokens), contents.walk(sequence.keys, kRealQueryTokens),
                kRealHeadNoise};
    for (float &value : draft.queries)
      value = kRealQueryShare * value + kRealGroupNoise * contents.normal();
    return draft;
  }

  void copyRow(const Rows &from, int64_t row, Rows &to, int64_t time) const {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(rowOf(row)), spec.qkDim,
                to.begin() + static_cast<std::ptrdiff_t>(rowOf(time)));
  }

  // The rows of one head of a tensor: `rows` from `first` on, with noise.
  void storeHead(T name, int64_t batch, int64_t begin, int64_t count, int64_t head, const Rows &rows, int64_t first,
                 float noise) {
    HostTensor &tensor = inputs.tensors.at(name);
    const reference::TensorView view = viewOf(spec, name, tensor);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t column = 0; column < spec.qkDim; ++column)
        reference::storeElement(spec.dtype, tensor.bytes.data(), view.offset(batch, begin + i, head, column),
                                rows[rowOf(first + i) + static_cast<size_t>(column)] + noise * contents.normal());
  }

  void store(const Sequence &sequence, int32_t group, const Draft &draft) {
    for (const T name : {T::kKCmp, T::kKSel, T::kKWin})
      if (inputs.tensors.contains(name))
        storeHead(name, sequence.keyBatch, sequence.keyBegin, sequence.keys, group, draft.keys, 0, kKeyNoise);
    for (int32_t i = 0; i < spec.group(); ++i)
      storeHead(T::kQ, sequence.batch, sequence.queryBegin, sequence.queries, group * spec.group() + i, draft.queries,
                sequence.keys - sequence.queries, draft.headNoise);
  }

  OperatorInputs &inputs;
  const Spec &spec;
  const StructureChoice &choice;
  std::mt19937_64 random;
  Contents contents;
};

} // namespace

std::string_view structureName(Structure structure) { return kNames[static_cast<size_t>(structure)]; }

Result<Structure> parseStructure(std::string_view name) {
  std::string rule = "must be one of ";
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i])
      return static_cast<Structure>(i);
    rule.append(i ? ", " : "").append(kNames[i]);
  }
  return Status::invalid("structure", std::string(name), std::move(rule));
}

Result<OperatorInputs> drawStructuredInputs(const Spec &spec, const SequenceLengths &lengths,
                                            const StructureChoice &choice, uint64_t seed) {
  const std::string name(structureName(choice.structure));
  if (choice.structure == Structure::kNeedle)
    for (const int64_t keys : lengths.k)
      if (choice.needlePosition < 0 || choice.needlePosition >= keys)
        return Status::invalid("needle_position", std::to_string(choice.needlePosition),
                               "must be a token of every sequence, below " + std::to_string(keys));
  if (choice.structure != Structure::kRandom) {
    if (!definitionOf(spec.op).hasBranches())
      return Status::invalid("op", std::string(operatorName(spec.op)),
                             "must be nsa, nsa_bwd or decode for the structure " + name);
    if (spec.cmpKind != CmpKind::kMean)
      return Status::invalid("cmp_kind", std::string(cmpKindName(spec.cmpKind)),
                             "must be mean for the structure " + name);
  }
  const bool decodes = definitionOf(spec.op).hasCache;
  Spec drawn = spec;
  if (decodes)
    drawn.op = withoutCache(spec.op);
  if (drawn.hasLists() && drawn.compresses()) { // lists are made, also those that a gradient takes
    Spec forward = drawn;
    forward.op = definitionOf(drawn.op).gradientOf;
    NSA_RETURN_IF_ERROR(forward.validate());
  }
  OperatorInputs inputs = drawInputs(drawn, lengths, seed, Saved::kByCaller);
  if (choice.structure != Structure::kRandom)
    StructuredDraw(inputs, choice, seed + 1).run();
  addReferenceSaved(inputs);
  return decodes ? cacheInputs(inputs, spec.pageSize, seed + 2) : std::move(inputs);
}

} // namespace nsa::tools
