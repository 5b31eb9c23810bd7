// Holds the state while the CUDA source of one kernel is printed. Emitter.cpp prints the frame of the kernel,
// ControlFlow.cpp prints blocks, branches and loops, and the other files print the operations.
// Only compiler/cuda uses KernelEmitter. Thread-safety: a KernelEmitter is used by one thread.
#pragma once

#include "compiler/cuda/CudaExpression.h"
#include "compiler/cuda/CudaNames.h"
#include "compiler/cuda/CudaWriter.h"
#include "compiler/cuda/Emitter.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <set>

namespace nsa::cuda {

// A C++ call, stored as its callee and its arguments, so that the emitter can print the call over several lines. At
// most one argument of the call is a lambda.
struct CudaCall {
  std::string callee;
  llvm::SmallVector<std::string> arguments;

  std::string text() const;
};

inline mlir::RankedTensorType typeOf(mlir::Value tile) { return mlir::cast<mlir::RankedTensorType>(tile.getType()); }

class KernelEmitter {
public:
  KernelEmitter(mlir::func::FuncOp function, const KernelTitle &title) : function(function), title(title) {}

  // The source of the kernel.
  mlir::FailureOr<std::string> run();

private:
  // The frame (Emitter.cpp).
  mlir::LogicalResult emitArguments();
  mlir::LogicalResult emitKernel();
  mlir::LogicalResult emitSharedMemory();
  void declareBuffer(tile::BufferOp op, llvm::StringRef place);

  // Control flow (ControlFlow.cpp).
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOperation(mlir::Operation &op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitArm(mlir::Block &block, llvm::ArrayRef<std::string> variables);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult declareCarried(mlir::scf::ForOp op);
  mlir::LogicalResult assignCarried(mlir::scf::ForOp op);
  mlir::LogicalResult emitSynchronization(mlir::Operation &op);
  mlir::LogicalResult emitFetch(tile::FetchOp op);
  mlir::LogicalResult emitFetchAhead(tile::FetchAheadOp op);

  // Operations on scalars (Scalars.cpp).
  mlir::LogicalResult emitScalar(mlir::Operation *op);
  mlir::LogicalResult emitReport(tile::ReportOp op);

  // Loads, copies and stores of tiles (MemoryOperations.cpp).
  struct ColumnsText {
    std::string first; // empty: the first column of the row
    std::string count;
  };
  mlir::FailureOr<ColumnsText> columnsText(const tile::TileColumns &columns);
  mlir::FailureOr<std::string> rowsLambda(mlir::Region &rows, tile::AtOp at, mlir::Value view,
                                          const std::string &firstColumn);
  mlir::LogicalResult emitStore(tile::StoreOp op);
  mlir::FailureOr<std::string> placeText(mlir::Value buffer, mlir::Value stage);
  mlir::LogicalResult emitCopy(tile::CopyOp op);
  mlir::LogicalResult emitRead(tile::ReadOp op);
  mlir::LogicalResult emitWrite(mlir::Operation &op);
  mlir::FailureOr<CudaCall> loadCall(tile::LoadOp op);

  // Operations on tiles in registers (TileOperations.cpp).
  mlir::LogicalResult emitTile(mlir::Operation *op);
  mlir::FailureOr<CudaCall> mapCall(tile::MapOp op);
  mlir::FailureOr<CudaCall> dotCall(tile::DotOp op);
  mlir::FailureOr<CudaCall> reduceCall(tile::ReduceOp op);
  mlir::FailureOr<CudaCall> tileCall(mlir::Operation *op);

  // Lists of best columns (ListOperations.cpp).
  mlir::LogicalResult declareLists(tile::TopCreateOp op, llvm::StringRef place);
  mlir::LogicalResult emitCreate(tile::TopCreateOp op);
  mlir::LogicalResult emitInsert(tile::TopInsertOp op);
  mlir::FailureOr<CudaCall> nextCall(tile::TopNextOp op);

  // Text (Scalars.cpp).
  mlir::FailureOr<std::string> lambda(llvm::StringRef parameters, mlir::Block &body,
                                      const std::function<mlir::FailureOr<std::string>()> &result);
  mlir::FailureOr<std::string> tileType(mlir::Value tile);
  mlir::FailureOr<CudaExpression> expression(mlir::Value value);
  mlir::FailureOr<std::string> text(mlir::Value value);
  mlir::FailureOr<llvm::SmallVector<CudaExpression>> expressions(mlir::ValueRange values);
  void statement(const std::string &start, const CudaCall &call);
  // Prints the statement `declaration name = call;`, or an assignment if the variable for the value is already
  // declared.
  void define(mlir::Value value, llvm::StringRef declaration, const CudaCall &call);
  void include(llvm::StringRef header) { headers.insert(header.str()); }

  mlir::func::FuncOp function;
  const KernelTitle &title;
  int64_t warps = 1;
  CudaWriter writer;
  CudaNames names;
  std::set<std::string> headers;
  // Maps each value to its emitted text: the name of a variable, a literal, or an expression that is written at the
  // value's only use.
  llvm::DenseMap<mlir::Value, CudaExpression> values;
  // Maps a value to a variable that the emitter has already declared for the value. For each value in `reserved`, the
  // emitter prints an assignment to the declared variable instead of the declaration of a new variable.
  llvm::DenseMap<mlir::Value, std::string> reserved;
};

} // namespace nsa::cuda
