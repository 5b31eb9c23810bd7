#include "tools/nsa/decode_parity.h"

#include "tools/support/decode_run.h"

#include <algorithm>

namespace nsa::tools {
namespace {

using reference::Sequence;
using T = TensorName;

constexpr int64_t kChunks = 2;
constexpr int32_t kPageBlocks = 2; // selection blocks of a page

class ParityRun {
public:
  ParityRun(const OperatorInputs &history, int64_t tokens, const NamedTensors &forward, nsa_engine *engine,
            Accelerator &accelerator)
      : history(history), spec(history.spec), tokens(tokens), forward(forward), engine(engine),
        accelerator(accelerator), sequences(sequencesOf(history)) {}

  Result<DecodeParity> run(int32_t pageSize) {
    DecodeParity parity{.pageSize = pageSize, .chunks = kChunks, .check = {}, .plan = {}};
    const int64_t longest = std::ranges::max(sequences, {}, &Sequence::keys).keys;
    const int64_t chunk = (longest - tokens + kChunks - 1) / kChunks;
    NSA_ASSIGN_OR_RETURN(
        DecodeRun decode,
        DecodeRun::open(accelerator, history,
                        {.room = longest, .mostNew = chunk, .pageSize = pageSize, .layout = spec.layout, .seed = 1},
                        allOutputs(withCache(spec.op))));
    NSA_RETURN_IF_ERROR(feedPrompt(decode, chunk));
    Maxima single = decode.maxima();
    single.tokensQ = single.batch;
    single.seqlenQ = 1;
    NSA_ASSIGN_OR_RETURN(PlanHandle plan, createPlan(engine, decode.spec(), single, accelerator.stream()));
    NSA_RETURN_IF_ERROR(decode.allocateWorkspace(plan.get()));
    for (int64_t i = 0; i < tokens; ++i)
      NSA_RETURN_IF_ERROR(decode.step(plan.get(), std::vector<int64_t>(sequences.size(), 1)));
    parity.plan = describePlan(plan.get());
    NSA_ASSIGN_OR_RETURN(NamedTensors outputs, decode.collected());
    std::vector<int64_t> rows;
    for (const Sequence &sequence : sequences)
      for (int64_t query = sequence.queries - tokens; query < sequence.queries; ++query)
        rows.push_back(sequence.firstRow + query);
    parity.rows = static_cast<int64_t>(rows.size());
    parity.check = checkOperator(history, outputs, rows);
    if (spec.hasBranch(kBranchSel))
      compareLists(rows, outputs, parity);
    return parity;
  }

private:
  // All but the last tokens, each sequence's in chunks; a short one is through before the others.
  Status feedPrompt(DecodeRun &decode, int64_t chunk) {
    NSA_ASSIGN_OR_RETURN(PlanHandle plan, createPlan(engine, decode.spec(), decode.maxima(), accelerator.stream()));
    NSA_RETURN_IF_ERROR(decode.allocateWorkspace(plan.get()));
    for (int64_t i = 0; i < kChunks; ++i) {
      std::vector<int64_t> counts;
      for (size_t s = 0; s < sequences.size(); ++s)
        counts.push_back(std::min(chunk, sequences[s].keys - tokens - decode.length(s)));
      if (std::ranges::max(counts) > 0)
        NSA_RETURN_IF_ERROR(decode.step(plan.get(), counts));
    }
    return Status::ok();
  }

  void compareLists(const std::vector<int64_t> &rows, const NamedTensors &outputs, DecodeParity &parity) const {
    const std::vector<Sequence> singles = reference::singleRows(sequences, rows);
    const reference::BlockLists ours =
        reference::readBlockLists(singles, listView(spec, outputs.at(T::kBlockList)), spec.kvHeads, spec.selCount);
    const reference::BlockLists theirs =
        reference::readBlockLists(singles, listView(spec, forward.at(T::kBlockList)), spec.kvHeads, spec.selCount);
    const reference::Nsa nsa = referenceNsa(history);
    const reference::Selection selection{.spec = spec,
                                         .q = nsa.qCmp.isGiven() ? nsa.qCmp : nsa.q,
                                         .kComp = viewOf(spec, T::kKComp, outputs.at(T::kKComp)),
                                         .sequences = singles};
    for (const Sequence &single : singles)
      for (int64_t group = 0; group < spec.kvHeads; ++group) {
        ++parity.lists;
        const auto mine = ours.at(single.firstRow, group), other = theirs.at(single.firstRow, group);
        if (std::equal(mine.begin(), mine.end(), other.begin()))
          continue;
        const std::vector<double> scores = reference::blockScores(selection, single, 0, group);
        ++(reference::selectionMargin(scores, spec) < reference::tieMargin(spec.dtype) ? parity.tied
                                                                                       : parity.differing);
      }
  }

  const OperatorInputs &history;
  const Spec &spec;
  const int64_t tokens;
  const NamedTensors &forward;
  nsa_engine *engine;
  Accelerator &accelerator;
  const std::vector<Sequence> sequences;
};

} // namespace

Status checkDecodable(const OperatorInputs &inputs, int64_t tokens) {
  const auto invalid = [&](std::string rule) {
    return Status::invalid("--decode-last", std::to_string(tokens), std::move(rule));
  };
  if (!definitionOf(inputs.spec.op).isForward())
    return invalid("is of --op nsa only");
  for (const Sequence &sequence : sequencesOf(inputs)) {
    if (sequence.queries != sequence.keys)
      return invalid("needs as many queries as keys, not " + std::to_string(sequence.queries) + " and " +
                     std::to_string(sequence.keys));
    if (sequence.keys <= tokens)
      return invalid("must be below the length of every sequence, " + std::to_string(sequence.keys));
  }
  return Status::ok();
}

Result<std::vector<DecodeParity>> decodeLast(const OperatorInputs &inputs, int64_t tokens,
                                             const EngineSettings &settings, const NamedTensors &forward) {
  NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(settings));
  NSA_ASSIGN_OR_RETURN(std::string device, deviceName(engine.get()));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<Accelerator> accelerator, Accelerator::open(device));
  ParityRun run(inputs, tokens, forward, engine.get(), *accelerator);
  std::vector<DecodeParity> parities;
  for (const int32_t pageSize : {0, kPageBlocks * inputs.spec.selBlock}) {
    NSA_ASSIGN_OR_RETURN(DecodeParity parity, run.run(pageSize));
    parities.push_back(std::move(parity));
  }
  return parities;
}

} // namespace nsa::tools
