// What `nsa explain` prints of two ways to compute the same: which is taken, which is not, and what decides.
#include "runtime/base/config_text.h"
#include "tests/cpu/program_job.h"
#include "tests/cpu/route_fixture.h"

#include <sstream>

namespace nsa::tools {
namespace {

class ExplainRouteTest : public RouteTest {
protected:
  struct Program : ProgramJob {
    using ProgramJob::run;
    std::string error() const { return test::readFile(scratch.file("stderr")); }
    void TestBody() override {}
  };

  ExplainRouteTest() {
    spec.dtype = DType::kF32;
    spec.queryHeads = 8;
    spec.kvHeads = 1;
    spec.qkDim = spec.vDim = 16;
    spec.cmpBlock = 8;
    spec.cmpStride = 4;
    spec.selBlock = 16;
    spec.selCount = 4;
    spec.window = 32;
  }

  void store(Operator of, std::string_view name, int64_t threshold) const {
    Spec step = spec;
    step.op = of;
    storeRoute(routeFamily(step), std::string(name), threshold);
  }

  // The lines about routes.
  std::string printed(Operator op, int64_t tokens, const std::string &environment = "") {
    return linesThatBegin("route ", op, tokens, environment);
  }

  std::string linesThatBegin(const std::string &begin, Operator op, int64_t tokens, const std::string &environment) {
    const std::string text =
        program.run("explain --op " + std::string(operatorName(op)) + " --config '" + configText(spec) +
                        "' --seqlen-k " + std::to_string(tokens) + " --device cpu --cache " + settings.cachePath,
                    0, "NSA_CACHE_PACKS=none " + environment);
    std::istringstream lines(text);
    std::string found;
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(begin))
        found += line + "\n";
    return found;
  }

  Program program;
  Spec spec;
};

TEST_F(ExplainRouteTest, OfTheGradientOfQueries) {
  constexpr auto kOp = Operator::kSelBwd;
  spec.op = kOp;
  EXPECT_EQ(printed(kOp, 512), "route      sel_dq, not sel_dq_slots (rule): the heads of a large group fill a tile of "
                               "each query\n");
  EXPECT_EQ(printed(kOp, 512, "NSA_FORCE_VARIANT=sel_dq_slots"),
            "route      sel_dq_slots, not sel_dq (force_variant): the option names the kernel\n");
  store(Operator::kSelDq, kSlotsRoute, 256);
  EXPECT_EQ(printed(kOp, 512), "route      sel_dq_slots, not sel_dq (sel_bwd.slots_from: sel_dq_slots from 256 keys "
                               "on): the gradient of queries is faster block by block from the threshold on, as "
                               "measured\n");
  EXPECT_EQ(printed(kOp, 128), "route      sel_dq, not sel_dq_slots (sel_bwd.slots_from: sel_dq_slots from 256 keys "
                               "on): the gradient of queries is faster block by block from the threshold on, as "
                               "measured\n");
  store(Operator::kSelDq, kSlotsRoute, StoredRoute::kNever);
  EXPECT_EQ(printed(kOp, 512), "route      sel_dq, not sel_dq_slots (sel_bwd.slots_from: sel_dq_slots never): the "
                               "gradient of queries is faster block by block at no length, as measured\n");
}

// A name that no kernel has is no silent default.
TEST_F(ExplainRouteTest, OfNoKernel) {
  program.run("explain --op sel_bwd --config '" + configText(spec) + "' --seqlen-k 64 --device cpu --cache :memory:", 1,
              "NSA_FORCE_VARIANT=sel_dq_foo");
  const std::string error = program.error();
  EXPECT_NE(error.find("NSA_FORCE_VARIANT = 'sel_dq_foo': must be one of attention, "), std::string::npos) << error;
}

TEST_F(ExplainRouteTest, OfDenseAttention) {
  constexpr auto kOp = Operator::kNsa;
  spec.op = kOp;
  const std::string all = "up to sel_count * sel_block keys every block is selected";
  EXPECT_EQ(printed(kOp, 64), "route      dense, not selection (exact: dense up to 64 keys): " + all + "\n");
  EXPECT_EQ(printed(kOp, 32), "route      dense, not selection (exact: dense up to 64 keys): " + all +
                                  "\nroute      dense, not window (exact: dense up to 32 keys): up to `window` keys "
                                  "the window holds all of them\n");
  store(Operator::kSel, kDenseRoute, StoredRoute::kNever);
  EXPECT_EQ(printed(kOp, 64), "route      selection, not dense (sel.dense_up_to: dense never): " + all +
                                  ", but dense attention, which would be the same, pays never, as measured\n");
}

} // namespace
} // namespace nsa::tools
