// The attention template through its lowering and the passes, for every kind of problem that it serves and every
// target.
#include "compiler/dialect/Diagnostics.h"
#include "compiler/dialect/Tile.h"
#include "compiler/dialect/TileProgram.h"
#include "compiler/driver/Target.h"
#include "compiler/driver/TileFiles.h"
#include "compiler/language/lowering/Lower.h"
#include "compiler/passes/Passes.h"
#include "compiler/render/Candidates.h"
#include "compiler/render/TileHeader.h"
#include "tests/harness/seed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

using namespace nsa;

namespace {

constexpr int kLanes = 16;

struct Case {
  const char *target;
  Operator op;
  DType dtype;
  int group, packed, qkDim, vDim;
  int manyQueries = 1;
};

std::ostream &operator<<(std::ostream &stream, const Case &c) {
  return stream << c.target << " " << operatorName(c.op) << " " << dtypeName(c.dtype) << " group=" << c.group
                << " packed=" << c.packed << " qk_dim=" << c.qkDim << " v_dim=" << c.vDim
                << " many_queries=" << c.manyQueries;
}

const Target &targetOf(const Case &c) { return **Target::find(c.target); }

TileFiles &tiles() {
  static TileFiles files;
  return files;
}

const language::SyntaxTree &attention() {
  static const auto programs = tiles().readTemplates();
  return *std::ranges::find(*programs, "tile/attention.tile", [](const TileFiles::Program &program) {
            return program.file->path;
          })->tree;
}

std::vector<TemplateCandidate> candidatesOf(const Case &c) {
  Result<TemplateHeader> header = readTileHeader(attention());
  if (!header) {
    ADD_FAILURE() << header.status().toString();
    return {};
  }
  Values given = targetOf(c).values(operatorName(c.op), c.dtype, kLanes);
  given.set("dtype", std::string(dtypeName(c.dtype)));
  given.set("group", c.group);
  given.set("packed", c.packed);
  given.set("page_size", 0);
  given.set("many_queries", c.manyQueries);
  given.set("qk_dim", c.qkDim);
  given.set("v_dim", c.vDim);
  if (c.op == Operator::kCmp) {
    given.set("cmp_block", 32);
    given.set("cmp_stride", 16);
  }
  Result<std::vector<TemplateCandidate>> candidates = enumerateCandidates(*header, given, {}, targetOf(c).limits());
  if (!candidates) {
    ADD_FAILURE() << c << ": " << candidates.status().toString();
    return {};
  }
  return std::move(*candidates);
}

class AttentionTest : public testing::Test {
protected:
  AttentionTest() : context(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    tile::registerTileProgramDialects(registry);
    context.appendDialectRegistry(registry);
  }

  // The program after the target's pipeline; null after a test failure.
  mlir::OwningOpRef<mlir::ModuleOp> schedule(const Case &c, const TemplateCandidate &candidate) {
    language::Diagnostics diagnostics;
    auto module = language::lowerTileProgram(
        attention(), [](std::string_view name) { return tiles().library(name); }, candidate.values.all(), context,
        diagnostics);
    if (!module) {
      ADD_FAILURE() << c << " " << candidate.configText << "\n" << diagnostics.toString();
      return {};
    }
    tile::DiagnosticText errors(context);
    mlir::PassManager manager(&context);
    if (targetOf(c).isGpu)
      tile::buildGpuPipeline(manager, targetOf(c).sharedBytesPerBlock);
    else
      tile::buildCpuPipeline(manager);
    if (mlir::failed(manager.run(*module))) {
      ADD_FAILURE() << c << " " << candidate.configText << "\n" << errors.text();
      return {};
    }
    return module;
  }

  mlir::MLIRContext context;
};

// The header's own limits agree with what the passes accept.
TEST_F(AttentionTest, EveryCandidateOfTheMainJobPassesThePipeline) {
  for (const char *target : {"cpu", "sm_80", "sm_86", "sm_90a"}) {
    Case c{target, Operator::kWindow, DType::kBf16, 8, 0, 64, 64};
    std::vector<TemplateCandidate> candidates = candidatesOf(c);
    EXPECT_GE(candidates.size(), 12u) << c << ": a tuner needs something to choose from";
    for (const TemplateCandidate &candidate : candidates)
      EXPECT_TRUE(schedule(c, candidate));
  }
}

TEST_F(AttentionTest, EveryKindOfProblemHasACandidate) {
  const std::pair<int, int> dims[] = {{64, 64}, {192, 128}, {33, 65}, {1, 1}, {256, 256}, {512, 512}};
  for (const char *target : {"cpu", "sm_80", "sm_86", "sm_120a"})
    for (Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp})
      for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
        for (int packed : {0, 1})
          for (auto [qkDim, vDim] : dims) {
            Case c{target, op, dtype, packed ? 3 : 128, packed, qkDim, vDim};
            std::vector<TemplateCandidate> candidates = candidatesOf(c);
            if (!candidates.empty()) {
              EXPECT_TRUE(schedule(c, candidates.front()));
              EXPECT_TRUE(schedule(c, candidates.back()));
            }
          }
}

TEST_F(AttentionTest, DefaultsAreOfSensibleSize) {
  auto gpu = candidatesOf({"sm_90a", Operator::kWindow, DType::kBf16, 8, 0, 64, 64});
  ASSERT_FALSE(gpu.empty());
  EXPECT_EQ(gpu.front().configText, "key_tile=64 queries_shared=1 query_tile=128 stages=2 warps=4");
  auto cpu = candidatesOf({"cpu", Operator::kWindow, DType::kBf16, 8, 0, 64, 64});
  ASSERT_FALSE(cpu.empty());
  EXPECT_EQ(cpu.front().configText, "key_tile=64 queries_shared=0 query_tile=64 stages=1 warps=1");
}

// What few queries leave idle on a GPU, smaller programs use: four warps, each with the least rows that it can have.
// Each problem with one group size of the three, which is drawn: a list takes ten milliseconds and more.
TEST_F(AttentionTest, FewQueriesGetSmallTiles) {
  const std::pair<int, int> dims[] = {{64, 64}, {128, 128}, {192, 128}};
  constexpr int kGroups[] = {1, 4, 16};
  size_t turn = test::freshSeed() % std::size(kGroups);
  for (const char *target : {"sm_80", "sm_86", "sm_90a", "sm_120a"})
    for (Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp}) {
      ++turn;
      for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
        ++turn;
        for (auto [qkDim, vDim] : dims) {
          const int group = kGroups[turn++ % std::size(kGroups)];
          Case c{target, op, dtype, group, 0, qkDim, vDim, 0};
          std::vector<TemplateCandidate> few = candidatesOf(c);
          ASSERT_FALSE(few.empty());
          EXPECT_EQ(few.front().config.at("query_tile"), "64") << c << ": " << few.front().configText;
          EXPECT_EQ(few.front().config.at("warps"), "4") << c << ": " << few.front().configText;
          if (op == Operator::kWindow)
            EXPECT_TRUE(schedule(c, few.front()));
          c.manyQueries = 1;
          EXPECT_EQ(candidatesOf(c).size(), few.size()) << c << ": the tuner may choose what it may choose for many";
        }
      }
    }
  Case c{"sm_90a", Operator::kWindow, DType::kBf16, 16, 0, 128, 128};
  EXPECT_EQ(candidatesOf(c).front().configText, "key_tile=48 queries_shared=1 query_tile=128 stages=2 warps=4");
}

// A core works on one program at a time, however many there are.
TEST_F(AttentionTest, FewQueriesChangeNothingOnTheCpu) {
  for (Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp})
    for (DType dtype : {DType::kBf16, DType::kF32}) {
      Case c{"cpu", op, dtype, 8, 0, 128, 128};
      std::vector<TemplateCandidate> many = candidatesOf(c);
      c.manyQueries = 0;
      std::vector<TemplateCandidate> few = candidatesOf(c);
      ASSERT_EQ(few.size(), many.size());
      for (size_t i = 0; i < few.size(); ++i) {
        EXPECT_EQ(few[i].configText, many[i].configText) << c;
        EXPECT_EQ(few[i].cost, many[i].cost) << c;
      }
    }
}

// Branches on the config are gone; the others are those the device decides.
TEST_F(AttentionTest, OptionsFold) {
  for (int packed : {0, 1})
    for (Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp}) {
      Case c{"sm_80", op, DType::kBf16, 8, packed, 64, 64};
      auto module = schedule(c, candidatesOf(c).front());
      ASSERT_TRUE(module);
      int branches = 0, scalarLoads = 0, rowQuotients = 0;
      bool usesWindow = false;
      module->walk([&](mlir::scf::IfOp) { ++branches; });
      module->walk([&](tile::LoadScalarOp) { ++scalarLoads; });
      module->walk([&](tile::MapOp map) { map.walk([&](mlir::arith::DivSIOp) { ++rowQuotients; }); });
      auto function = mlir::cast<mlir::func::FuncOp>(module->getBody()->front());
      for (mlir::BlockArgument argument : function.getArguments())
        if (tile::sourceName(argument) == "window")
          usesWindow = !argument.use_empty();
      EXPECT_EQ(branches, 4) << c << ": rows, the edge's masking, the log-sum-exp, the counts";
      EXPECT_EQ(scalarLoads, packed ? 6 : 0) << c;
      EXPECT_EQ(rowQuotients, op == Operator::kCmp ? 4 : 2) << c << ": a row's query, and the blocks that it sees";
      EXPECT_EQ(usesWindow, op == Operator::kWindow) << c;
    }
}

// The emitted code takes its names from the template.
TEST_F(AttentionTest, NamesSurviveThePasses) {
  Case c{"sm_80", Operator::kWindow, DType::kBf16, 8, 1, 64, 64};
  auto module = schedule(c, candidatesOf(c).front());
  ASSERT_TRUE(module);
  std::set<std::string> names;
  module->walk([&](mlir::Operation *op) {
    for (mlir::Value result : op->getResults()) {
      std::string name = tile::sourceName(result);
      names.insert(name);
    }
  });
  for (const char *name : {"q_tile", "k_tile", "v_tile", "s", "m", "l", "o", "m_next", "m_finite", "decay", "p",
                           "is_empty", "past", "q_begin", "rows", "blocks", "first_key", "past_seen"})
    EXPECT_TRUE(names.count(name)) << name;
}

TEST_F(AttentionTest, KeysAndValuesRunAhead) {
  Case c{"sm_80", Operator::kWindow, DType::kBf16, 8, 1, 64, 64};
  for (const TemplateCandidate &candidate : candidatesOf(c)) {
    int64_t stages = 0;
    ASSERT_TRUE(candidate.values.lookup("stages", stages));
    auto module = schedule(c, candidate);
    ASSERT_TRUE(module);
    std::map<std::string, int64_t> rings;
    module->walk([&](tile::BufferOp buffer) { rings[tile::sourceName(buffer)] = buffer.getType().getStages(); });
    EXPECT_EQ(rings, (std::map<std::string, int64_t>{{"q_tile", 1}, {"k_tile", stages}, {"v_tile", stages}}))
        << candidate.configText;
  }
}

// The header's formula, by which candidates are cut, is the plan's result.
TEST_F(AttentionTest, SharedMemoryIsWhatTheHeaderSays) {
  Case c{"sm_80", Operator::kDense, DType::kF16, 4, 0, 96, 128};
  for (const TemplateCandidate &candidate : candidatesOf(c)) {
    int64_t expected = 0;
    ASSERT_TRUE(candidate.values.lookup("shared_bytes", expected));
    auto module = schedule(c, candidate);
    ASSERT_TRUE(module);
    auto planned = module->getBody()->front().getAttrOfType<mlir::IntegerAttr>(tile::kSharedBytesAttr);
    EXPECT_EQ(planned.getInt(), expected) << candidate.configText;
  }
}

} // namespace
