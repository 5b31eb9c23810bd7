// LLVM dialect -> object -> image: what may be in an image runs from a read-execute mapping, what may not is refused by
// name.
#include "compiler/cpu/CpuCodegen.h"
#include "compiler/cpu/CpuImage.h"
#include "runtime/base/cpu_features.h"
#include "tests/unit/cpu/mapped_image.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <gtest/gtest.h>

namespace nsa::cpu {
namespace {

// The object of a module in the LLVM dialect; `optimized` false keeps what the clean-ups would fold.
std::string objectOf(const char *text, bool optimized = true) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::LLVM::LLVMDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  llvm::LLVMContext llvmContext;
  auto codegen = CpuCodegen::make("x86-64-v3");
  EXPECT_TRUE(codegen.isOk()) << codegen.status().toString();
  auto translated = codegen->translate(*module, llvmContext);
  EXPECT_TRUE(translated.isOk()) << translated.status().toString();
  if (optimized)
    codegen->optimize(**translated);
  auto object = codegen->emitObject(**translated);
  EXPECT_TRUE(object.isOk()) << object.status().toString();
  return *object;
}

std::string refusal(const char *text) {
  auto image = makeCpuImage(objectOf(text, /*optimized=*/false), "kernel");
  return image ? "" : image.status().toString();
}

TEST(CpuImage, RunsWithConstantPool) {
  if (hostCpuFeatures().empty())
    GTEST_SKIP() << "this processor has no AVX2";
  const std::string object = objectOf(R"(
    llvm.func @kernel(%p: !llvm.ptr) {
      %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
      %c = llvm.mlir.constant(dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.5]> : vector<8xf32>) : vector<8xf32>
      %y = llvm.fadd %x, %c : vector<8xf32>
      llvm.store %y, %p {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
      llvm.return
    })");
  auto image = makeCpuImage(object, "kernel");
  ASSERT_TRUE(image.isOk()) << image.status().toString();
  EXPECT_EQ(image->entryOffset % 64, 0);
  test::MappedImage mapped(*image);
  float values[8] = {10, 20, 30, 40, 50, 60, 70, 80};
  mapped.as<void(float *)>()(values);
  EXPECT_EQ(values[0], 11.0f);
  EXPECT_EQ(values[7], 88.5f);
}

TEST(CpuImage, RunsJumpTableAndInternalCall) {
  if (hostCpuFeatures().empty())
    GTEST_SKIP() << "this processor has no AVX2";
  const std::string object = objectOf(R"(
    llvm.func internal @helper(%x: i32) -> i32 attributes {no_inline} {
      %c = llvm.mlir.constant(7 : i32) : i32
      %y = llvm.mul %x, %c : i32
      llvm.return %y : i32
    }
    llvm.func @kernel(%p: !llvm.ptr, %n: i32) {
      llvm.switch %n : i32, ^other [0: ^a, 1: ^b, 2: ^c, 3: ^d, 4: ^e]
    ^a:
      %0 = llvm.mlir.constant(10 : i32) : i32
      llvm.store %0, %p : i32, !llvm.ptr
      llvm.br ^other
    ^b:
      %1 = llvm.call @helper(%n) : (i32) -> i32
      %p1 = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, i32
      llvm.store %1, %p1 : i32, !llvm.ptr
      llvm.br ^other
    ^c:
      %p2 = llvm.getelementptr %p[2] : (!llvm.ptr) -> !llvm.ptr, i32
      llvm.store %n, %p2 : i32, !llvm.ptr
      llvm.br ^other
    ^d:
      %3 = llvm.call @helper(%n) : (i32) -> i32
      %p3 = llvm.getelementptr %p[3] : (!llvm.ptr) -> !llvm.ptr, i32
      llvm.store %3, %p3 : i32, !llvm.ptr
      llvm.br ^other
    ^e:
      %p4 = llvm.getelementptr %p[4] : (!llvm.ptr) -> !llvm.ptr, i32
      llvm.store volatile %n, %p4 : i32, !llvm.ptr
      llvm.br ^other
    ^other:
      llvm.return
    })",
                                      /*optimized=*/false);
  auto image = makeCpuImage(object, "kernel");
  ASSERT_TRUE(image.isOk()) << image.status().toString();
  test::MappedImage mapped(*image);
  int32_t values[5] = {};
  for (int32_t n = -1; n < 7; ++n)
    mapped.as<void(int32_t *, int32_t)>()(values, n);
  EXPECT_EQ(values[0], 10);
  EXPECT_EQ(values[1], 7);
  EXPECT_EQ(values[2], 2);
  EXPECT_EQ(values[3], 21);
  EXPECT_EQ(values[4], 4);
}

TEST(CpuImage, NeverCallsMemset) {
  // A loop that LLVM would turn into memset if it were allowed to.
  const std::string object = objectOf(R"(
    llvm.func @kernel(%p: !llvm.ptr, %n: i64) {
      %zero = llvm.mlir.constant(0 : i64) : i64
      %one = llvm.mlir.constant(1 : i64) : i64
      %byte = llvm.mlir.constant(0 : i8) : i8
      llvm.br ^loop(%zero : i64)
    ^loop(%i: i64):
      %at = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      llvm.store %byte, %at : i8, !llvm.ptr
      %next = llvm.add %i, %one : i64
      %more = llvm.icmp "slt" %next, %n : i64
      llvm.cond_br %more, ^loop(%next : i64), ^exit
    ^exit:
      llvm.return
    })");
  auto image = makeCpuImage(object, "kernel");
  EXPECT_TRUE(image.isOk()) << image.status().toString();
}

TEST(CpuImage, RefusesUndefinedSymbol) {
  const std::string message = refusal(R"(
    llvm.func @expf(f32) -> f32
    llvm.func @kernel(%p: !llvm.ptr) {
      %x = llvm.load %p : !llvm.ptr -> f32
      %y = llvm.call @expf(%x) : (f32) -> f32
      llvm.store %y, %p : f32, !llvm.ptr
      llvm.return
    })");
  EXPECT_NE(message.find("undefined symbol 'expf'"), std::string::npos) << message;
}

TEST(CpuImage, RefusesWritableData) {
  const std::string message = refusal(R"(
    llvm.mlir.global internal @counter(1 : i32) : i32
    llvm.func @kernel(%p: !llvm.ptr) {
      %g = llvm.mlir.addressof @counter : !llvm.ptr
      %x = llvm.load %p : !llvm.ptr -> i32
      llvm.store %x, %g : i32, !llvm.ptr
      llvm.return
    })");
  EXPECT_NE(message.find("'.data' is writable"), std::string::npos) << message;
}

TEST(CpuImage, RefusesAbsoluteAddresses) {
  const std::string message = refusal(R"(
    llvm.mlir.global internal constant @table() : !llvm.array<2 x ptr> {
      %a = llvm.mlir.addressof @kernel : !llvm.ptr
      %t = llvm.mlir.undef : !llvm.array<2 x ptr>
      %0 = llvm.insertvalue %a, %t[0] : !llvm.array<2 x ptr>
      %1 = llvm.insertvalue %a, %0[1] : !llvm.array<2 x ptr>
      llvm.return %1 : !llvm.array<2 x ptr>
    }
    llvm.func @kernel(%p: !llvm.ptr) {
      %g = llvm.mlir.addressof @table : !llvm.ptr
      llvm.store %g, %p : !llvm.ptr, !llvm.ptr
      llvm.return
    })");
  // Constants that need relocation are placed in a section that a loader may write.
  EXPECT_NE(message.find(".data.rel.ro"), std::string::npos) << message;
}

TEST(CpuImage, RefusesMissingEntryAndForeignBytes) {
  const std::string object = objectOf("llvm.func @other() { llvm.return }");
  auto missing = makeCpuImage(object, "kernel");
  ASSERT_FALSE(missing.isOk());
  EXPECT_NE(missing.status().toString().find("does not define the entry 'kernel'"), std::string::npos);
  EXPECT_FALSE(makeCpuImage("not an object", "kernel").isOk());
  for (size_t size = 0; size < object.size(); size += 7)
    (void)makeCpuImage(std::string_view(object).substr(0, size), "other").isOk(); // truncated: must not crash
}

TEST(CpuCodegen, RefusesUnknownFeatureLevel) {
  auto codegen = CpuCodegen::make("x86-64-v9");
  ASSERT_FALSE(codegen.isOk());
  EXPECT_NE(codegen.status().toString().find("x86-64-v9"), std::string::npos);
}

} // namespace
} // namespace nsa::cpu
