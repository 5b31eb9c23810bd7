#include "runtime/engine/graph/comparison.h"

#include "runtime/base/signature.h"
#include "runtime/engine/call/coordinates.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

namespace nsa {

namespace {

int64_t fixedNumber(const LoadedKernel &kernel, const char *name, int64_t otherwise) {
  auto found = kernel.manifest().fixed.find(name);
  if (found != kernel.manifest().fixed.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), otherwise);
  return otherwise;
}

} // namespace

size_t Definitions::workspaceBytes() const {
  size_t bytes = 0;
  for (const std::shared_ptr<const LoadedKernel> &kernel : kernels)
    if (kernel)
      bytes = std::max(bytes, kernel->workspaceBytes());
  return bytes;
}

bool isComparable(const Step &step) {
  return definitionOf(step.spec.op).tuning == OperatorDef::Tuning::kAlone && !step.node->writesCache;
}

std::vector<Comparison::Output> Comparison::outputsOf(Operator op, const LaunchStep &step,
                                                      const KernelCall &call) const {
  const LoadedKernel &kernel = *step.kernel;
  Spec spec = rules.spec;
  spec.vDim = static_cast<int32_t>(fixedNumber(kernel, "v_dim", spec.vDim)); // of `select`: the keys as values
  spec.cmpBlock = static_cast<int32_t>(fixedNumber(kernel, "cmp_block", spec.cmpBlock)); // of gradients: tokens
  spec.cmpStride = static_cast<int32_t>(fixedNumber(kernel, "cmp_stride", spec.cmpStride));
  const bool packed = spec.layout == Layout::kPacked;
  const int64_t batch = call.grid.batch;
  const int64_t queries = step.node->isChunked ? layout.chunkRows
                          : packed             ? rules.maxima.tokensQ
                                               : rules.maxima.seqlenQ;
  const auto first = static_cast<int32_t>(call.scalars[static_cast<size_t>(Scalar::kQueryBegin)]);
  std::vector<Output> outputs;
  for (const Operand &operand : comparedOperands(*step.node, op)) {
    if (operand.role == Operand::Role::kOptionalOut && !call[operand.view].data)
      continue;
    const TensorRule &rule = tensorRule(operand.name);
    const bool ofBlocks = rule.lead == Lead::kBlocks;
    const int64_t time = ofBlocks ? spec.compressedBlocks(call.grid.maxSeqlenK) : queries;
    Tensor tensor;
    if (packed) {
      tensor.addAxis(ofBlocks ? batch * time : time);
    } else {
      tensor.addAxis(batch);
      tensor.addAxis(time);
    }
    for (size_t i = 0; i < rule.axisCount; ++i)
      tensor.addAxis(axisExtent(rule.axes[i], spec));
    const std::span shape(tensor.shape.data(), static_cast<size_t>(tensor.rank));
    (void)setRowMajorStrides(shape, {tensor.strides.data(), shape.size()}); // the workspace has room for them
    const std::array<int64_t, kMaxCoordinates> strides = coordinateStrides(spec, operand, tensor);
    outputs.push_back({operand.view, spec.types().of(rule.role), strides,
                       std::reduce(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()),
                       ofBlocks ? 0 : first * strides[1]});
  }
  for (const auto &[view, buffer, role] : kComparedBuffers)
    if (definitionOf(op).mayTake(view)) {
      const WorkspaceLayout::Placed &at = layout[buffer];
      outputs.push_back({view, spec.types().of(role), call[view].strides, at.copy,
                         at.rows == GraphBuffer::Rows::kChunk ? first * at.row : 0});
    }
  return outputs;
}

Status Comparison::wait(void *stream) const {
  const std::unique_ptr<LaunchClock> clock = device.makeClock();
  NSA_RETURN_IF_ERROR(clock->mark(stream));
  return clock->spans().status();
}

Status Comparison::launchInto(Operator op, size_t offset, const LoadedKernel &kernel, KernelCall call,
                              const std::vector<Output> &outputs, const void *statusWord, void *scratch, void *stream) {
  if (outputs.front().view == View::kOut)
    call[View::kLse] = {}; // written too; selection reads it
  call[View::kReads] = {};
  using enum View;
  for (const View view : {kReadsCmp, kReadsSel, kReadsWin, kDOCmp, kDOSel, kDOWin})
    call[view] = {};
  // Gradients of one branch as they are, and not as parts of a sum.
  for (const View view : {kDqSum, kDqBase, kDkParts, kDvParts})
    call[view] = {};
  if (definitionOf(op).mayTake(kDkParts)) {
    call.grid.splits = 1;
    setScalar(call.scalars, Scalar::kSplits, 1);
  }
  for (const Output &output : outputs) {
    const size_t bytes = static_cast<size_t>(output.elements * dtypeBytes(output.dtype));
    // What no query of the call writes must be equal in both.
    const std::vector<std::byte> zeros(bytes);
    NSA_RETURN_IF_ERROR(device.upload(workspace + offset, zeros.data(), bytes));
    const auto address = reinterpret_cast<uintptr_t>(workspace + offset) -
                         static_cast<uintptr_t>(output.begin * dtypeBytes(output.dtype));
    call[output.view] = ViewSlots::make(reinterpret_cast<const void *>(address), output.dtype, output.strides);
    offset += workspaceAligned(bytes);
  }
  return kernel.launch(call, statusWord, scratch, stream);
}

Status Comparison::add(const LaunchStep &step, const KernelCall &call, const void *statusWord, void *stream) {
  const Role role = step.node->role;
  const LoadedKernel &own = *step.kernel;
  const std::shared_ptr<const LoadedKernel> &definition = definitions.kernels[static_cast<size_t>(role)];
  Errors &sum = errors[static_cast<size_t>(role)];
  sum.own = &own;
  if (!definition)
    return Status::ok();
  sum.definition = definition.get();
  NSA_ASSIGN_OR_RETURN(Operator op, parseOperator(own.manifest().op));
  const std::vector<Output> outputs = outputsOf(op, step, call);
  NSA_RETURN_IF_ERROR(wait(stream)); // what the host has enqueued may still write into the workspace
  NSA_RETURN_IF_ERROR(launchInto(op, layout.compared[0], own, call, outputs, statusWord, workspace, stream));
  NSA_RETURN_IF_ERROR(launchInto(op, layout.compared[1], *definition, call, outputs, statusWord,
                                 workspace + layout.definitionScratch, stream));
  NSA_RETURN_IF_ERROR(wait(stream));
  return compare(sum, outputs);
}

Status Comparison::compare(Errors &sum, const std::vector<Output> &outputs) {
  size_t offset = 0;
  for (const Output &output : outputs) {
    const size_t bytes = static_cast<size_t>(output.elements * dtypeBytes(output.dtype));
    std::vector<std::byte> own(bytes), reference(bytes);
    NSA_RETURN_IF_ERROR(device.download(own.data(), workspace + layout.compared[0] + offset, bytes));
    NSA_RETURN_IF_ERROR(device.download(reference.data(), workspace + layout.compared[1] + offset, bytes));
    offset += workspaceAligned(bytes);
    if (output.dtype == DType::kI32) {
      const size_t list = static_cast<size_t>(rules.spec.selCount) * sizeof(int32_t);
      for (size_t at = 0; at + list <= bytes; at += list) {
        ++sum.lists;
        sum.differentLists += memcmp(own.data() + at, reference.data() + at, list) != 0;
      }
      continue;
    }
    for (int64_t i = 0; i < output.elements; ++i)
      sum.elements.add(elementAt(own.data(), output.dtype, i), elementAt(reference.data(), output.dtype, i));
  }
  return Status::ok();
}

ComparedPart comparedPart(const LoadedKernel &own, const LoadedKernel *definition, const ElementErrors &errors) {
  ComparedPart part{.operator_name = own.manifest().op,
                    .template_name = own.manifest().templateName,
                    .config = formatValues(own.manifest().config),
                    .compared = definition != nullptr};
  if (!definition)
    return part;
  part.definition_template = definition->manifest().templateName;
  part.definition_config = formatValues(definition->manifest().config);
  part.same_kernel = definition->content() == own.content();
  part.elements = errors.elements();
  part.max_abs = errors.maxAbs();
  part.mean_abs = errors.meanAbs();
  part.relative_rms = errors.relativeRms();
  part.unequal_nan = errors.unequalNan();
  part.unequal_inf = errors.unequalInf();
  return part;
}

std::vector<ComparedPart> Comparison::parts() const {
  std::vector<ComparedPart> parts;
  for (size_t role = 0; role < errors.size(); ++role) {
    const Errors &sum = errors[role];
    if (!sum.own)
      continue;
    ComparedPart part = comparedPart(*sum.own, sum.definition, sum.elements);
    part.part = std::string(roleName(static_cast<Role>(role), rules.spec.op));
    part.lists = sum.lists;
    part.different_lists = sum.differentLists;
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string describeComparison(const char *kind, std::string_view name, const std::vector<ComparedPart> &compared) {
  using Json = nlohmann::ordered_json;
  Json parts = Json::array();
  for (const ComparedPart &info : compared) {
    Json part;
#define NSA_COMPARISON_INFO(type, name, place, isThere)                                                                \
  if (isThere)                                                                                                         \
    part[Json::json_pointer(place)] = info.name;
#include "runtime/model/info_fields.def"
    parts.push_back(std::move(part));
  }
  return Json({{kind, name}, {"parts", std::move(parts)}}).dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace nsa
