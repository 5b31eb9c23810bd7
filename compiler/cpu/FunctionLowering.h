// Lowers one tile program, a function, to vectors and scalars of the CPU. FunctionLowering.cpp has the frame of the
// function and its control flow, ElementwiseLowering.cpp maps and dots, TensorAccess.cpp loads, stores and reports.
// Thread-safety: a FunctionLowering is used by one thread.
#pragma once

#include "compiler/cpu/BufferPlan.h"
#include "compiler/cpu/ColumnLowering.h"
#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/RowAccess.h"
#include "compiler/cpu/TopLowering.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace nsa::cpu {

// The slots of a view, which are read at the start of the kernel.
struct TensorView {
  mlir::Value pointer;
  mlir::SmallVector<mlir::Value> strides;
  mlir::Type element;
  GradientFlags gradient;
  // Only for a view of pages.
  int64_t pageRows = 0;
  mlir::Value table;
  mlir::Value tableStride;
};

class FunctionLowering {
public:
  FunctionLowering(mlir::func::FuncOp function, int64_t lanes)
      : function(function), b(function.getLoc(), function.getContext(), lanes), plan(BufferPlan::make(function, lanes)),
        top(b, function, plan.scratchBytes()) {}

  mlir::LogicalResult run();

private:
  // The frame of the function and its control flow (FunctionLowering.cpp).
  void readArguments(mlir::Block &oldEntry);
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lower(mlir::Operation &op);
  mlir::LogicalResult lowerScalar(mlir::Operation &op);
  mlir::LogicalResult lowerLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult lowerBranch(mlir::scf::IfOp branch);
  void copyTiles(mlir::ValueRange to, mlir::ValueRange from);
  mlir::Type scalarType(mlir::Type type) { return type.isBF16() || type.isF16() ? b.getF32Type() : type; }

  // Maps, splats and dots (ElementwiseLowering.cpp).
  mlir::LogicalResult lowerMap(tile::MapOp map);
  void lowerSplat(tile::SplatOp splat);
  mlir::LogicalResult lowerDot(tile::DotOp dot);
  void splatScalars(tile::MapOp map);
  void loadTiles(tile::MapOp map, mlir::Value at);
  void loadVectors(tile::MapOp map, bool ofColumns, mlir::Value at, bool isAlongLanes);
  mlir::Value loadWords(mlir::Value pointer, mlir::Type element, bool isAlongLanes);
  void storeLanes(mlir::Value value, mlir::Value pointer, mlir::Type element);

  // Views, loads, stores and reports (TensorAccess.cpp).
  void lowerLoadScalar(tile::LoadScalarOp load);
  mlir::LogicalResult lowerLoad(tile::LoadOp load);
  mlir::LogicalResult lowerStore(tile::StoreOp store);
  void lowerConversion(tile::ConvertLayoutOp convert);
  void lowerReport(tile::ReportOp report);
  TensorView selectView(mlir::Value condition, const TensorView &yes, const TensorView &no);
  mlir::Value rowPointer(const TensorView &view, mlir::ValueRange coordinates, mlir::Value exists);
  mlir::Value elementAt(const TensorView &view, mlir::Value pointer, mlir::Value index);
  mlir::Value pageOf(const TensorView &view, mlir::Value sequence, mlir::Value row, mlir::Value exists);
  RowTransfer transferOf(mlir::Value tile, const TensorView &view, const tile::TileColumns &columns);
  mlir::Value firstColumn(const tile::TileColumns &columns);
  RowAddress rowAddress(const TensorView &view, mlir::Region &region, mlir::Value row, mlir::Value firstColumn,
                        mlir::LogicalResult &status);

  // The address of a tile's words in scratch.
  mlir::Value bufferOf(mlir::Value tile) { return b.at(scratch, plan.offsetOf(tile)); }
  ColumnSource columnsOf(mlir::Value tile) { return {bufferOf(tile), plan.storageOf(tile)}; }
  int64_t vectorBytes() const { return b.lanes * 4; }
  unsigned vectorAlignment() const { return unsigned(vectorBytes()); }

  mlir::func::FuncOp function;
  CpuBuilder b;
  BufferPlan plan;
  TopLowering top;
  mlir::IRMapping mapping; // scalars
  llvm::DenseMap<mlir::Value, TensorView> views;
  mlir::Value program;
  mlir::Value scratch;
  int64_t staging = 0; // offset in bytes, behind the tiles and the lists
};

} // namespace nsa::cpu
