#include "tests/unit/cpu/template_kernel.h"

#include "compiler/dialect/TileProgram.h"
#include "compiler/driver/Target.h"
#include "compiler/driver/TileFiles.h"
#include "compiler/language/lowering/Lower.h"
#include "compiler/render/TileHeader.h"
#include "runtime/base/cpu_features.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace nsa::test {

TemplateKernel::TemplateKernel(const std::string &file, Operator op, const Pairs &fixed, const Pairs &pinned,
                               const std::string &features, bool roundsOperands) {
  compile(file, op, fixed, pinned, features, roundsOperands);
}

void TemplateKernel::compile(const std::string &file, Operator op, const Pairs &fixed, const Pairs &pinned,
                             const std::string &features, bool roundsOperands) {
  TileFiles tiles;
  const auto programs = tiles.readTemplates();
  ASSERT_TRUE(programs) << programs.status().toString();
  const auto program =
      std::ranges::find_if(*programs, [&](const TileFiles::Program &entry) { return entry.file->path == file; });
  ASSERT_NE(program, programs->end()) << file;
  auto parsed = readTileHeader(*program->tree);
  ASSERT_TRUE(parsed) << parsed.status().toString();
  header = std::move(*parsed);
  auto target = Target::find("cpu");
  auto lanes = cpuVectorLanes(features);
  auto dtype = parseDType(fixed.at("dtype"));
  ASSERT_TRUE(target && lanes && dtype);
  Values values = (*target)->values(operatorName(op), *dtype, *lanes);
  for (const auto &[name, value] : fixed)
    values.set(name, value);
  auto candidates = enumerateCandidates(header, values, pinned, (*target)->limits());
  ASSERT_TRUE(candidates) << candidates.status().toString();
  candidate = candidates->front();

  language::GivenValues given = candidate.values.all();
  if (roundsOperands)
    given["cpu"] = "0";
  mlir::DialectRegistry registry;
  tile::registerTileProgramDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  language::Diagnostics diagnostics;
  auto module = language::lowerTileProgram(
      *program->tree, [&](std::string_view name) { return tiles.library(name); }, given, context, diagnostics);
  ASSERT_TRUE(module) << diagnostics.toString();
  for (mlir::Value argument : mlir::cast<mlir::func::FuncOp>(module->getBody()->front()).getArguments())
    names.push_back(tile::sourceName(argument));
  cpu::CpuOptions options;
  options.features = features;
  Timings timings;
  auto compiled = cpu::compileForCpu(*module, options, timings);
  ASSERT_TRUE(compiled) << compiled.status().toString();
  kernel = std::make_unique<TileKernel>(std::move(*compiled));
}

std::vector<std::array<int32_t, 3>> TemplateKernel::programs(const std::map<std::string, int64_t> &sizes) const {
  if (!kernel)
    return {}; // the constructor has failed the test
  int64_t extent[3];
  for (int axis = 0; axis < 3; ++axis) {
    auto value = header.grid[axis].expression.evaluate([&](std::string_view name, int64_t &number) {
      auto found = sizes.find(std::string(name));
      if (found == sizes.end())
        return candidate.values.lookup(name, number);
      number = found->second;
      return true;
    });
    if (!value) {
      ADD_FAILURE() << value.status().toString();
      return {};
    }
    extent[axis] = *value;
  }
  std::vector<std::array<int32_t, 3>> all;
  for (int64_t z = 0; z < extent[2]; ++z)
    for (int64_t y = 0; y < extent[1]; ++y)
      for (int64_t x = 0; x < extent[0]; ++x)
        all.push_back({int32_t(x), int32_t(y), int32_t(z)});
  return all;
}

Slots TemplateKernel::slots(const Arguments &arguments) const {
  Slots all;
  for (const std::string &name : names)
    if (const Slots *given = arguments.find(name))
      all.append(*given);
    else
      ADD_FAILURE() << "the launch gives no " << name;
  return all;
}

void TemplateKernel::run(const Arguments &arguments, const std::map<std::string, int64_t> &sizes) const {
  const Slots slots = this->slots(arguments);
  for (const auto &[x, y, z] : programs(sizes))
    kernel->run(slots, x, y, z);
}

} // namespace nsa::test
