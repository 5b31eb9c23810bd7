#include "runtime/engine/graph/comparison.h"

#include "runtime/base/half.h"
#include "runtime/base/saturated.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

namespace nsa {

namespace {

double valueAt(const std::byte *data, DType dtype, int64_t index) {
  if (dtype == DType::kF32) {
    float value;
    memcpy(&value, data + index * 4, sizeof value);
    return value;
  }
  uint16_t half;
  memcpy(&half, data + index * 2, sizeof half);
  return dtype == DType::kBf16 ? bf16ToFloat(half) : fp16ToFloat(half);
}

int64_t fixedNumber(const LoadedKernel &kernel, const char *name, int64_t otherwise) {
  auto found = kernel.manifest().fixed.find(name);
  if (found != kernel.manifest().fixed.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), otherwise);
  return otherwise;
}

nlohmann::ordered_json kernelJson(const LoadedKernel &kernel) {
  return {{"template", kernel.manifest().templateName}, {"config", formatValues(kernel.manifest().config)}};
}

} // namespace

size_t Definitions::workspaceBytes() const {
  size_t bytes = 0;
  for (const std::shared_ptr<const LoadedKernel> &kernel : kernels)
    if (kernel)
      bytes = std::max(bytes, kernel->workspaceBytes());
  return bytes;
}

bool isComparable(Operator whole, const Step &step) {
  return step.spec.op < Operator::kSequences && !(whole == Operator::kDecode && step.spec.op == Operator::kCompress);
}

void WorkspaceLayout::addComparison(const Spec &spec, const Maxima &maxima, size_t definitionBytes) {
  auto place = [&](size_t &offset, Saturated size) {
    offset = std::min(workspaceAligned(bytes), kMostBytes);
    bytes = offset + std::min(static_cast<size_t>(size.value()), kMostBytes - offset);
  };
  const Saturated queries = Saturated(spec.layout == Layout::kPacked ? 1 : maxima.batch) * chunk;
  const Saturated element = dtypeBytes(spec.dtype);
  const Saturated outs = queries * spec.queryHeads * std::max(spec.qkDim, spec.vDim) * element;
  const Saturated lists = queries * spec.kvHeads * spec.selCount * int64_t{sizeof(int32_t)};
  const Saturated rows = Saturated(maxima.batch) * spec.compressedBlocks(maxima.seqlenK) * spec.kvHeads;
  const Saturated blocks = rows * spec.qkDim * element + rows * spec.vDim * element + int64_t{kWorkspaceAlignment};
  const Saturated most = std::max({outs.value(), lists.value(), blocks.value()});
  place(definitionScratch, static_cast<int64_t>(definitionBytes));
  for (size_t &offset : compared)
    place(offset, most);
}

std::vector<Comparison::Output> Comparison::outputsOf(Operator op, const LoadedKernel &kernel,
                                                      const KernelCall &call) const {
  const Spec &spec = rules.spec;
  const bool packed = spec.layout == Layout::kPacked;
  if (op == Operator::kCompress) {
    std::vector<Output> outputs;
    for (const auto &[view, dim] : {std::pair(View::kKComp, spec.qkDim), std::pair(View::kVComp, spec.vDim)}) {
      const int64_t row = int64_t{spec.kvHeads} * dim;
      outputs.push_back({view,
                         spec.dtype,
                         {packed ? 0 : call.grid.maxBlocksC * row, row, dim, 0},
                         call.grid.batch * call.grid.maxBlocksC * row,
                         0});
    }
    return outputs;
  }
  const bool lists = op == Operator::kSelect;
  const int64_t columns = lists ? spec.selCount : fixedNumber(kernel, "v_dim", spec.vDim);
  const int64_t row = (lists ? spec.kvHeads : spec.queryHeads) * columns;
  const auto first = static_cast<int32_t>(call.scalars[static_cast<size_t>(Scalar::kQueryBegin)]);
  return {{lists ? View::kBlockList : View::kOut,
           lists ? DType::kI32 : spec.dtype,
           {packed ? 0 : layout.chunk * row, row, columns, lists ? 1 : 0},
           (packed ? 1 : call.grid.batch) * layout.chunk * row,
           first * row}};
}

Status Comparison::launchInto(size_t offset, const LoadedKernel &kernel, KernelCall call,
                              const std::vector<Output> &outputs, const void *statusWord, void *scratch, void *stream) {
  if (outputs.front().view == View::kOut)
    call[View::kLse] = {}; // written too; selection reads it
  call[View::kReads] = {};
  for (const View view : {View::kReadsCmp, View::kReadsSel, View::kReadsWin})
    call[view] = {};
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

Status Comparison::add(Role role, const LoadedKernel &own, const KernelCall &call, const void *statusWord,
                       void *stream) {
  const std::shared_ptr<const LoadedKernel> &definition = definitions.kernels[static_cast<size_t>(role)];
  Errors &sum = errors[static_cast<size_t>(role)];
  sum.own = &own;
  sum.operatorName = own.manifest().op;
  if (!definition)
    return Status::ok();
  sum.definition = definition.get();
  Result<Operator> op = parseOperator(own.manifest().op);
  if (!op)
    return op.status();
  const std::vector<Output> outputs = outputsOf(*op, own, call);
  NSA_RETURN_IF_ERROR(launchInto(layout.compared[0], own, call, outputs, statusWord, workspace, stream));
  NSA_RETURN_IF_ERROR(launchInto(layout.compared[1], *definition, call, outputs, statusWord,
                                 workspace + layout.definitionScratch, stream));
  const std::unique_ptr<LaunchClock> clock = device.makeClock();
  NSA_RETURN_IF_ERROR(clock->mark(stream));
  NSA_RETURN_IF_ERROR(clock->spans().status()); // waits
  return compare(sum, *op, outputs);
}

Status Comparison::compare(Errors &sum, Operator op, const std::vector<Output> &outputs) {
  size_t offset = 0;
  for (const Output &output : outputs) {
    const size_t bytes = static_cast<size_t>(output.elements * dtypeBytes(output.dtype));
    std::vector<std::byte> own(bytes), reference(bytes);
    NSA_RETURN_IF_ERROR(device.download(own.data(), workspace + layout.compared[0] + offset, bytes));
    NSA_RETURN_IF_ERROR(device.download(reference.data(), workspace + layout.compared[1] + offset, bytes));
    offset += workspaceAligned(bytes);
    if (op == Operator::kSelect) {
      const size_t list = static_cast<size_t>(rules.spec.selCount) * sizeof(int32_t);
      for (size_t at = 0; at + list <= bytes; at += list) {
        ++sum.lists;
        sum.differentLists += memcmp(own.data() + at, reference.data() + at, list) != 0;
      }
      continue;
    }
    for (int64_t i = 0; i < output.elements; ++i)
      sum.elements.add(valueAt(own.data(), output.dtype, i), valueAt(reference.data(), output.dtype, i));
  }
  return Status::ok();
}

std::string Comparison::report() const {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (size_t role = 0; role < errors.size(); ++role) {
    const Errors &sum = errors[role];
    if (!sum.own)
      continue;
    nlohmann::ordered_json part = {{"part", roleName(static_cast<Role>(role), rules.spec.op)},
                                   {"operator", sum.operatorName},
                                   {"kernel", kernelJson(*sum.own)},
                                   {"compared", sum.definition != nullptr}};
    if (sum.definition) {
      part["definition"] = kernelJson(*sum.definition);
      part["same_kernel"] = sum.definition->content() == sum.own->content();
      if (sum.lists != 0) {
        part["lists"] = sum.lists;
        part["different_lists"] = sum.differentLists;
      } else {
        part["elements"] = sum.elements.elements();
        part["max_abs"] = sum.elements.maxAbs();
        part["mean_abs"] = sum.elements.meanAbs();
        part["relative_rms"] = sum.elements.relativeRms();
        part["unequal_nan"] = sum.elements.unequalNan();
        part["unequal_inf"] = sum.elements.unequalInf();
      }
    }
    parts.push_back(std::move(part));
  }
  return nlohmann::ordered_json({{"operator", operatorName(rules.spec.op)}, {"parts", std::move(parts)}})
      .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace nsa
