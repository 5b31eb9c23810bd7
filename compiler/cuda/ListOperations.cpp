// KernelEmitter: lists of best columns. Each operation is one call into the device library.
#include "compiler/cuda/KernelEmitter.h"

using namespace mlir;
using namespace nsa::tile;

namespace nsa::cuda {

// Declares a list at its place in shared memory, in the frame of the kernel.
LogicalResult KernelEmitter::declareLists(TopCreateOp op, StringRef place) {
  TopType type = op.getType();
  if (type.getRows() % (16 * warps) != 0)
    return op.emitOpError() << "has the lists of " << type.getRows() << " rows, which " << warps
                            << " warps of 16 rows cannot split";
  include("top_lists.cuh");
  std::string name = names.declare(op.getLists(), "lists");
  writer.line("const TopLists<" + Twine(type.getRows()) + ", " + Twine(type.getSlots()) + ", kWarps> " + name + "(" +
              place + ");");
  values[op.getLists()] = {name};
  return success();
}

LogicalResult KernelEmitter::emitCreate(TopCreateOp op) {
  FailureOr<std::string> lists = text(op.getLists());
  if (failed(lists))
    return failure();
  statement("", {"top_clear", {*lists}});
  return success();
}

LogicalResult KernelEmitter::emitInsert(TopInsertOp op) {
  FailureOr<SmallVector<CudaExpression>> operands = expressions({op.getLists(), op.getScores(), op.getFirst()});
  if (failed(operands) || failed(tileType(op.getScores())))
    return failure();
  CudaCall call{"top_insert", {}};
  for (CudaExpression &operand : *operands)
    call.arguments.push_back(std::move(operand.text));
  statement("", call);
  return success();
}

FailureOr<CudaCall> KernelEmitter::nextCall(TopNextOp op) {
  FailureOr<SmallVector<CudaExpression>> operands = expressions({op.getLists(), op.getAfter()});
  if (failed(operands) || failed(tileType(op)) || failed(tileType(op.getAfter())))
    return failure();
  return CudaCall{"top_next", {(*operands)[0].text, (*operands)[1].text}};
}

} // namespace nsa::cuda
