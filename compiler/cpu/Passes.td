// The passes of the CPU backend, in the order in which compileForCpu (Cpu.h) runs them after buildCpuPipeline.

#ifndef NSA_CPU_PASSES_TD
#define NSA_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerToCpu : Pass<"tile-lower-to-cpu", "::mlir::func::FuncOp"> {
  let summary = "tiles become loops of vectors over scratch memory";
  let description = [{
    The pass runs after `tile-cpu`. The function becomes
    `void kernel(const uint64_t *slots, const int32_t program_id[3], void *scratch)`; `tile.scratch_bytes` says how much scratch
    it needs. Every tile has a place in scratch (BufferPlan.h). Values that are not alive together share places, and values that
    can be updated in place are.

    Vectors run along the rows of a tile, and along the columns of one that is `striped`. A dot is multiply-adds of a vector of A
    and a scalar of B, blocked so that the sums stay in registers. A reduction combines vectors, and then the lanes of one vector if
    the lanes hold elements of one result. Loops stay loops, whatever the size of the tiles. They carry their pointers, so
    that LLVM finds nothing to improve in them. A tile is loaded where it is first read. A map that is read only as the accumulator
    of dots is applied when the dots load their sums. exp2, log2, erf and the 16-bit floats are expanded, so no call of a library
    is left.

    Before:
    ```mlir
    func.func @f(%x: !tile.view<f32, 1>, %scale: f32) {
      ...
      %y = tile.map(%e = %t : tensor<16x64xf32>, %s = %scale : f32) at (%row, %column) -> tensor<16x64xf32> {
        %0 = arith.mulf %e, %s : f32
        tile.yield %0 : f32
      }
    ```
    After:
    ```mlir
    func.func @f(%slots: !llvm.ptr, %program: !llvm.ptr, %scratch: !llvm.ptr) attributes {tile.scratch_bytes = 4096 : i64} {
      ...
      %s = vector.broadcast %scale : f32 to vector<16xf32>
      scf.for %column = %c0 to %c64 step %c1 iter_args(%at = %tile) -> (!llvm.ptr) : i64 {
        %e = llvm.load %at {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
        %0 = arith.mulf %e, %s : vector<16xf32>
        llvm.store %0, %at {alignment = 64 : i64} : vector<16xf32>, !llvm.ptr
        %next = llvm.getelementptr inbounds %at[64] : (!llvm.ptr) -> !llvm.ptr, i8
        scf.yield %next : !llvm.ptr
      }
    ```
  }];
  let options = [Option<"lanes", "lanes", "int64_t", "16", "32 bit lanes of a vector: 16 (x86-64-v4) or 8 (x86-64-v3)">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertToLlvm : Pass<"tile-convert-to-llvm", "::mlir::ModuleOp"> {
  let summary = "loops of vectors become the LLVM dialect, in one conversion";
  let description = [{
    The pass applies MLIR's own patterns for scf, cf, arith, vector and func in one conversion, because a pass for each of them
    would walk the kernel five times. A loop with constant bounds that runs at least once gets its test at its end.

    Before:
    ```mlir
    func.func @f(%p: !llvm.ptr) {
      %c = arith.constant 1.0 : f32
      llvm.store %c, %p : f32, !llvm.ptr
      return
    }
    ```
    After:
    ```mlir
    llvm.func @f(%p: !llvm.ptr) {
      %c = llvm.mlir.constant(1.0 : f32) : f32
      llvm.store %c, %p : f32, !llvm.ptr
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::cf::ControlFlowDialect"];
}

#endif // NSA_CPU_PASSES_TD
