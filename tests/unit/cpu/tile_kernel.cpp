#include "tests/unit/cpu/tile_kernel.h"

#include "compiler/dialect/TileProgram.h"
#include "runtime/base/cpu_features.h"
#include "tests/unit/dialect/tile_text.h"

#include <gtest/gtest.h>

namespace nsa::test {
namespace {

Result<cpu::CpuKernel> compile(const std::string &text, const std::string &features) {
  mlir::DialectRegistry registry;
  tile::registerTileProgramDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module = parseTileText(text, "test", context, diagnostics);
  if (!module)
    return Status::error(ErrorCode::kInvalidArgument, "the test's program does not parse: " + diagnostics);
  cpu::CpuOptions options;
  options.features = features;
  Timings timings;
  return cpu::compileForCpu(*module, options, timings);
}

} // namespace

std::string fill(std::string text, const std::map<std::string, std::string> &values) {
  for (const auto &[name, value] : values) {
    const std::string hole = "${" + name + "}";
    for (size_t at = 0; (at = text.find(hole, at)) != std::string::npos; at += value.size())
      text.replace(at, hole.size(), value);
  }
  return text;
}

std::vector<std::string> runnableFeatures() {
  if (hostCpuFeatures() == "x86-64-v4")
    return {"x86-64-v3", "x86-64-v4"};
  if (hostCpuFeatures() == "x86-64-v3")
    return {"x86-64-v3"};
  return {};
}

TileKernel::TileKernel(const std::string &text, const std::string &features) {
  auto result = compile(text, features);
  if (!result) {
    ADD_FAILURE() << result.status().toString() << "\n" << text;
    return;
  }
  compiled = std::move(*result);
  EXPECT_EQ(compiled.features, features);
  image = std::make_unique<MappedImage>(compiled.image, compiled.entryOffset);
}

TileKernel::TileKernel(cpu::CpuKernel kernel)
    : compiled(std::move(kernel)), image(std::make_unique<MappedImage>(compiled.image, compiled.entryOffset)) {}

void TileKernel::run(const Slots &slots, int32_t x, int32_t y, int32_t z) const {
  for (auto against : {GuardedBuffer::Against::kStart, GuardedBuffer::Against::kEnd})
    runOnce(slots, against, x, y, z);
}

void TileKernel::runOnce(const Slots &slots, GuardedBuffer::Against against, int32_t x, int32_t y, int32_t z) const {
  if (!image)
    return;
  // Sizes are multiples of 64, so the end at the guard page is aligned too.
  GuardedBuffer scratch(size_t(compiled.scratchBytes), against);
  const int32_t programId[3] = {x, y, z};
  image->entry()(slots.data(), programId, scratch.as<void>());
}

std::string compileError(const std::string &text, const std::string &features) {
  auto result = compile(text, features);
  return result ? "" : result.status().toString();
}

} // namespace nsa::test
