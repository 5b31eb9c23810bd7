#include "tests/harness/operator_fixture.h"

#include "runtime/base/key_splits.h"

#include "tests/harness/seed.h"
#include "tools/reference/block_list.h"
#include "tools/reference/elements.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace nsa::test {
namespace {

using T = TensorName;

// Bytes of everything behind a tensor's first `dimensions`.
int64_t bytesBehind(const tools::HostTensor &tensor, size_t dimensions) {
  int64_t bytes = dtypeBytes(tensor.dtype);
  for (size_t axis = dimensions; axis < tensor.shape.size(); ++axis)
    bytes *= tensor.shape[axis];
  return bytes;
}

int64_t timeOffset(const Spec &spec, const tools::HostTensor &tensor, int64_t batch, int64_t time) {
  const bool packed = spec.layout == Layout::kPacked;
  return ((packed ? 0 : batch * tensor.shape[1]) + time) * bytesBehind(tensor, packed ? 1 : 2);
}

int64_t headBytes(const Spec &spec, const tools::HostTensor &tensor) {
  return bytesBehind(tensor, spec.layout == Layout::kPacked ? 2 : 3);
}

} // namespace

std::span<std::byte> timeOf(const Spec &spec, tools::HostTensor &tensor, int64_t batch, int64_t time) {
  return std::span(tensor.bytes)
      .subspan(static_cast<size_t>(timeOffset(spec, tensor, batch, time)),
               static_cast<size_t>(bytesBehind(tensor, spec.layout == Layout::kPacked ? 1 : 2)));
}

std::span<std::byte> headOf(const Spec &spec, tools::HostTensor &tensor, int64_t batch, int64_t time, int64_t head) {
  const auto bytes = static_cast<size_t>(headBytes(spec, tensor));
  return timeOf(spec, tensor, batch, time).subspan(static_cast<size_t>(head) * bytes, bytes);
}

std::span<const std::byte> headOf(const Spec &spec, const tools::HostTensor &tensor, int64_t batch, int64_t time,
                                  int64_t head) {
  const int64_t bytes = headBytes(spec, tensor);
  return std::span(tensor.bytes)
      .subspan(static_cast<size_t>(timeOffset(spec, tensor, batch, time) + head * bytes), static_cast<size_t>(bytes));
}

bool sameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

void fill(DType dtype, std::span<std::byte> elements, double value) {
  for (int64_t i = 0; i < static_cast<int64_t>(elements.size()) / dtypeBytes(dtype); ++i)
    reference::storeElement(dtype, elements.data(), i, value);
}

double elementOf(const tools::HostTensor &tensor, int64_t index) {
  if (tensor.dtype != DType::kI32)
    return reference::loadElement(tensor.dtype, tensor.bytes.data(), index);
  int32_t value = 0;
  std::memcpy(&value, tensor.bytes.data() + index * int64_t{sizeof value}, sizeof value);
  return value;
}

std::span<int32_t> integers(tools::HostTensor &tensor) {
  return {reinterpret_cast<int32_t *>(tensor.bytes.data()), static_cast<size_t>(tensor.elements())};
}

const std::vector<Geometry> &drawnGeometries(const Session &session) {
  static const std::vector<Geometry> geometries = [&] {
    std::mt19937_64 random(freshSeed());
    std::vector<Geometry> drawn;
    while (drawn.size() < kDrawnGeometries)
      if (const Geometry geometry = drawGeometry(random, drawLimits(session)); isServed(geometry.spec))
        drawn.push_back(geometry);
    return drawn;
  }();
  return geometries;
}

OperatorDrawLimits drawLimits(const Session &session) {
  return session.isCuda() ? OperatorDrawLimits{.maxTokens = maxTokens(2048), .maxWork = 1e9} : OperatorDrawLimits{};
}

std::array<bool, 3> mayAttend(const Spec &spec, std::span<const int32_t> list, int64_t position, int64_t token) {
  bool isCompressed = false;
  for (int64_t block = 0; block < spec.compressedBlocks(position + 1); ++block)
    isCompressed = isCompressed || (token >= block * spec.cmpStride && token < block * spec.cmpStride + spec.cmpBlock);
  const bool isListed = std::ranges::find(list, token / spec.selBlock) != list.end();
  return {isCompressed, token <= position && isListed, token <= position && token > position - spec.window};
}

std::vector<std::string> expectedKernels(const Spec &spec, const Maxima &maxima) {
  std::vector<std::string> kernels;
  if (spec.layout == Layout::kPacked && readsLengths(spec.op))
    kernels.push_back("sequences");
  if (definitionOf(spec.op).isAttentionGradient()) {
    if (spec.op == Operator::kSelBwd) {
      kernels.insert(kernels.end(),
                     {"deltas", "index_lengths", "index_check", "index_counts", "index_starts", "index_fill"});
      if (takesSlots(spec, maxima))
        kernels.insert(kernels.end(), {"index_slots", "index_ranges", "sel_dq_slots", "sum_slots"});
      else
        kernels.push_back("sel_dq");
      kernels.insert(kernels.end(), {"sel_dkv", "sum_parts"});
      return kernels;
    }
    kernels.insert(kernels.end(), {"deltas", "attention_dq", "attention_dkv"});
    if (GradientParts::make(spec, maxima).own > 1)
      kernels.push_back("sum_parts");
    return kernels;
  }
  if (spec.op == Operator::kInvert) {
    kernels.insert(kernels.end(), {"index_lengths", "index_counts", "index_starts", "index_fill"});
    return kernels;
  }
  const auto add = [&](bool isOn, std::initializer_list<const char *> names) {
    if (isOn)
      kernels.insert(kernels.end(), names.begin(), names.end());
  };
  const auto addCompression = [&] {
    add(spec.cmpKind == CmpKind::kMlp, {"compress_dz"});
    add(true, {"compress_dx"});
    add(spec.cmpKind != CmpKind::kMean, {"compress_dw", "compress_db", "compress_sums"});
  };
  if (spec.op == Operator::kCompressBwd) {
    addCompression();
    return kernels;
  }
  if (spec.op == Operator::kNsaBwd) {
    const bool cmp = spec.hasBranch(kBranchCmp), sel = spec.hasBranch(kBranchSel), win = spec.hasBranch(kBranchWin);
    add(cmp, {"compress"});
    add(sel, {"index_lengths", "index_check", "index_counts", "index_starts", "index_fill"});
    add(sel && takesSlots(spec, maxima), {"index_slots"});
    add(cmp, {"cmp"});
    add(sel, {"sel"});
    add(win, {"window"});
    add(true, {"combine_bwd"});
    add(cmp, {"attention_dq"});
    add(sel && !takesSlots(spec, maxima), {"sel_dq"});
    add(sel && takesSlots(spec, maxima), {"index_ranges", "sel_dq_slots", "sum_slots"});
    add(win, {"attention_dq"});
    add(cmp, {"attention_dkv"});
    const bool keepsRests = spec.dtype != DType::kF32;
    add(cmp && (GradientParts::make(spec, maxima).cmp > 1 || keepsRests), {"sum_parts"});
    add(sel, {"sel_dkv"});
    add(win, {"attention_dkv"});
    if (cmp)
      addCompression();
    add(!cmp || spec.branches == kBranchCmp, {"attention_dq"});     // zeros of queries
    add(!cmp && spec.cmpKind != CmpKind::kMean, {"compress_sums"}); // and of weights
    add(true, {"sum_parts"});
    return kernels;
  }
  const auto addIndex = [&] { add(spec.makeIndex, {"index_lengths", "index_counts", "index_starts", "index_fill"}); };
  if (spec.op == Operator::kSelect) {
    add(true, {"cmp", "select"}); // cmp for callers without a log-sum-exp
    addIndex();
    return kernels;
  }
  if (spec.op != Operator::kNsa) {
    kernels.push_back(std::string(operatorName(spec.op)));
    return kernels;
  }
  const bool compresses = spec.hasBranch(kBranchCmp) || spec.hasBranch(kBranchSel);
  if (compresses)
    kernels.insert(kernels.end(), {"compress", "cmp"});
  if (spec.hasBranch(kBranchSel)) {
    const bool coversAll = maxima.seqlenK <= int64_t{spec.selCount} * spec.selBlock;
    kernels.insert(kernels.end(), {"select", coversAll ? "dense" : "sel"});
  }
  if (spec.hasBranch(kBranchWin))
    kernels.push_back(maxima.seqlenK <= spec.window ? "dense" : "window");
  kernels.push_back("combine");
  addIndex();
  return kernels;
}

tools::PlanHandle OperatorTest::plan(const Spec &spec, const Maxima &maxima) {
  const Maxima served = servedMaxima(spec, maxima);
  Result<tools::PlanHandle> made = tools::createPlan(session->engine(), spec, served, session->accelerator().stream());
  if (!made)
    throw std::runtime_error(made.status().toString());
  const nlohmann::json description = tools::describePlan(made->get());
  SCOPED_TRACE(description.dump(2));
  EXPECT_EQ(description.value("operator", ""), operatorName(spec.op));
  EXPECT_TRUE(description["fallbacks"].empty()) << "something that should have served did not";
  std::vector<std::string> kernels;
  for (const nlohmann::json &launch : description["launches"]) {
    kernels.push_back(launch.value("operator", ""));
    EXPECT_EQ(launch.value("target", "") == "cpu", !session->isCuda());
    EXPECT_EQ(launch.value("target", "").starts_with("sm_"), session->isCuda());
    const Result<Operator> op = parseOperator(kernels.back());
    if (op && hasVariants(*op) && (Session::isForced() || !session->isCuda()))
      EXPECT_EQ(launch.value("template", ""), session->variant());
  }
  EXPECT_EQ(kernels, expectedKernels(spec, served));
  return std::move(*made);
}

void OperatorTest::makeReady(const std::vector<Spec> &specs, const tools::SequenceLengths &lengths) {
  std::vector<std::pair<Spec, Maxima>> wanted;
  for (const Spec &spec : specs)
    wanted.emplace_back(spec, tools::layOut(spec, lengths).maxima);
  session->makeReady(wanted);
}

Result<NamedTensors> OperatorTest::tryRun(const tools::PlanHandle &plan, const OperatorInputs &inputs,
                                          const tools::Spacing &spacing) {
  Result<tools::RunResult> result =
      tools::runOnce(session->accelerator(), plan.get(), inputs, tools::allOutputs(inputs.spec.op), spacing);
  if (!result)
    return result.status();
  return std::move(result->outputs);
}

NamedTensors OperatorTest::run(const tools::PlanHandle &plan, const OperatorInputs &inputs,
                               const tools::Spacing &spacing) {
  Result<NamedTensors> outputs = tryRun(plan, inputs, spacing);
  if (!outputs)
    throw std::runtime_error(outputs.status().toString());
  return std::move(*outputs);
}

NamedTensors OperatorTest::run(const OperatorInputs &inputs, const tools::Spacing &spacing) {
  return run(plan(inputs.spec, inputs.maxima), inputs, spacing);
}

OperatorTest::Outcome OperatorTest::runAnyway(const OperatorInputs &inputs) {
  const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
  Result<tools::DeviceOperator> job =
      tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(inputs.spec.op));
  EXPECT_TRUE(job.isOk()) << job.status().toString();
  EXPECT_TRUE(job->allocateWorkspace(made.get()).isOk());
  Outcome outcome{job->enqueue(made.get()), {}};
  void *stream = session->accelerator().stream();
  const Status left = tools::toStatus(nsa_plan_status(made.get(), stream, nullptr));
  if (outcome.status.isOk())
    outcome.status = left;
  EXPECT_EQ(nsa_plan_status(made.get(), stream, nullptr), NSA_OK) << "the status word was not cleared";
  Result<NamedTensors> outputs = job->download();
  EXPECT_TRUE(outputs.isOk()) << outputs.status().toString();
  outcome.outputs = std::move(*outputs);
  return outcome;
}

void OperatorTest::check(const OperatorCase &shape, std::mt19937_64 &random) {
  SCOPED_TRACE(shape.text());
  const OperatorInputs inputs = shape.drawInputs(random());
  checkOutputs(inputs, run(inputs, shape.spacing));
}

void OperatorTest::checkOutputs(const OperatorInputs &inputs, const NamedTensors &outputs,
                                const std::vector<int64_t> &rows) {
  const tools::OperatorCheck checked = tools::checkOperator(inputs, outputs, rows);
  EXPECT_TRUE(checked.within()) << checked.toString();
}

void OperatorTest::expectSameQuery(const Spec &spec, const NamedTensors &outputs, const NamedTensors &others,
                                   const reference::Sequence &sequence, int64_t query) {
  for (const auto &[name, tensor] : outputs) {
    if (tensorRule(name).lead != Lead::kQueries)
      continue;
    const int64_t heads = tensor.shape[spec.layout == Layout::kPacked ? 1 : 2];
    for (int64_t head = 0; head < heads; ++head)
      EXPECT_TRUE(sameBytes(headOf(spec, tensor, sequence.batch, sequence.queryBegin + query, head),
                            headOf(spec, others.at(name), sequence.batch, sequence.queryBegin + query, head)))
          << tensorName(name) << " of query " << query << " at position " << sequence.position(query) << ", head "
          << head;
  }
}

OperatorInputs OperatorTest::spoilAllBut(const OperatorInputs &inputs, const reference::Sequence &sequence,
                                         int64_t query, double value) {
  const Spec &spec = inputs.spec;
  OperatorInputs spoilt = inputs;
  for (auto &[name, tensor] : spoilt.tensors) {
    const Lead lead = tensor.dtype == DType::kI32 ? Lead::kNone : tensorRule(name).lead;
    for (const reference::Sequence &other : tools::sequencesOf(inputs)) {
      const bool isOwn = other.firstRow == sequence.firstRow && other.queries == sequence.queries;
      if (lead == Lead::kKeys)
        for (int64_t key = isOwn ? sequence.position(query) + 1 : 0; key < other.keys; ++key)
          fill(spec.dtype, timeOf(spec, tensor, other.keyBatch, other.keyBegin + key), value);
      if (lead == Lead::kQueries)
        for (int64_t row = 0; row < other.queries; ++row)
          if (!isOwn || row != query)
            fill(spec.dtype, timeOf(spec, tensor, other.batch, other.queryBegin + row), value);
    }
  }
  return spoilt;
}

void OperatorTest::checkInfluence(const tools::PlanHandle &plan, const OperatorInputs &inputs,
                                  const std::vector<Token> &tokens) {
  const Spec &spec = inputs.spec;
  const NamedTensors before = run(plan, inputs);
  checkOutputs(inputs, before);
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
  reference::BlockLists lists;
  if (spec.hasBranch(kBranchSel))
    lists = reference::readBlockLists(sequences, tools::listView(spec, before.at(T::kBlockList)), spec.kvHeads,
                                      spec.selCount);
  OperatorInputs changed = inputs;
  for (const Token &token : tokens) {
    const reference::Sequence &own = sequences[token.sequence];
    for (const T name : {T::kVCmp, T::kVSel, T::kVWin})
      if (auto found = changed.tensors.find(name); found != changed.tensors.end())
        fill(spec.dtype, timeOf(spec, found->second, own.keyBatch, own.keyBegin + token.time), 256);
    const NamedTensors after = run(plan, changed);
    for (size_t i = 0; i < sequences.size(); ++i)
      for (int64_t query = 0; query < sequences[i].queries; ++query)
        for (int64_t head = 0; head < spec.queryHeads; ++head) {
          const reference::Sequence &sequence = sequences[i];
          std::span<const int32_t> list;
          if (spec.hasBranch(kBranchSel))
            list = lists.at(sequence.firstRow + query, head / spec.group());
          std::array<bool, 3> allowed = mayAttend(spec, list, sequence.position(query), token.time);
          const T outputs[] = {T::kOCmp, T::kOSel, T::kOWin};
          for (size_t branch = 0; branch < 3; ++branch) {
            if (!spec.hasBranch(1 << branch))
              continue;
            const int64_t time = sequence.queryBegin + query;
            ASSERT_EQ(!sameBytes(headOf(spec, after.at(outputs[branch]), sequence.batch, time, head),
                                 headOf(spec, before.at(outputs[branch]), sequence.batch, time, head)),
                      i == token.sequence && allowed[branch])
                << tensorName(outputs[branch]) << ": token " << token.time << " of sequence " << token.sequence
                << ", query " << query << " of sequence " << i << ", head " << head;
          }
        }
    for (const T name : {T::kVCmp, T::kVSel, T::kVWin})
      if (auto found = changed.tensors.find(name); found != changed.tensors.end())
        found->second = inputs[name];
  }
}

} // namespace nsa::test
