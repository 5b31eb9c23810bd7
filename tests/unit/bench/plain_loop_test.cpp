// The plain loops compute what the kernels beside them compute: the reference's results, with vectors of either width.
#include "bench/measure/plain_loop.h"

#include "runtime/base/cpu_features.h"
#include "tools/support/operator_check.h"

#include <gtest/gtest.h>

namespace nsa::bench {
namespace {

TEST(PlainLoop, IsRight) {
  Spec spec;
  spec.dtype = DType::kF32;
  spec.queryHeads = 6;
  spec.kvHeads = 2;
  spec.qkDim = 64;
  spec.vDim = 32;
  spec.window = 33;
  spec.selCount = 4;
  for (const Operator op :
       {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel, Operator::kCombine, Operator::kCompress}) {
    spec.op = op;
    const tools::OperatorInputs inputs = tools::drawInputs(spec, {{300}, {391}}, 1);
    for (const int lanes : {8, 16}) {
      if (lanes > *cpuVectorLanes(hostCpuFeatures()))
        continue;
      PlainLoop plain(inputs, lanes);
      plain.run();
      const tools::OperatorCheck check = tools::checkOperator(inputs, plain.result());
      EXPECT_FALSE(check.outputs.empty());
      EXPECT_TRUE(check.within()) << operatorName(op) << ", vectors of " << lanes << "\n" << check.toString();
    }
  }
}

} // namespace
} // namespace nsa::bench
