// Tiles through loops and branches, where values share buffers: what a wrong liveness would overwrite. And the
// operations on slots: present, load_scalar, report.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <gtest/gtest.h>

#include <random>

namespace nsa::test {
namespace {

constexpr int64_t kRows = 19, kColumns = 6;

class CpuControlFlow : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    std::mt19937 engine(freshSeed());
    std::uniform_real_distribution<float> uniform(-2, 2);
    for (std::vector<float> *values : {&x, &y})
      for (float &value : *values)
        value = uniform(engine);
  }

  // A program over tiles %tx and %ty and scalars %n, %flag; it yields `RESULT` to z.
  void run(const std::string &body, const std::string &result, int32_t n, int32_t flag = 0) {
    const std::string text = fill(R"(
      func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<f32, 1>, %n: i32, %flag_word: i32) {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %flag = arith.cmpi ne, %flag_word, %c0 : i32
        %tx = tile.load %x ${ROWS} : !tile.view<f32, 1> -> ${T}
        %ty = tile.load %y ${ROWS} : !tile.view<f32, 1> -> ${T}
        ${BODY}
        tile.store ${RESULT}, %z ${ROWS} : ${T}, !tile.view<f32, 1>
        return
      })",
                                  {{"BODY", body}, {"RESULT", result}});
    TileKernel kernel(fill(text, {{"T", "tensor<19x6xf32>"},
                                  {"ROWS", "rows(%row) {\n%yes = arith.constant true\ntile.at [%row] if %yes\n}"}}),
                      GetParam());
    Slots slots;
    slots.view(x.data(), {kColumns}).view(y.data(), {kColumns}).view(z.data(), {kColumns}).i32(n).i32(flag);
    kernel.run(slots);
  }

  template <typename Function> void expect(Function function) {
    for (size_t i = 0; i < z.size(); ++i)
      ASSERT_EQ(z[i], function(x[i], y[i])) << "element " << i;
  }

  std::vector<float> x = std::vector<float>(kRows * kColumns), y = x, z = x;
};
INSTANTIATE_TEST_SUITE_P(Levels, CpuControlFlow, testing::ValuesIn(runnableFeatures()),
                         [](const auto &info) { return info.param.substr(7); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuControlFlow);

TEST_P(CpuControlFlow, SwapInLoop) {
  for (int32_t n : {0, 1, 2, 5}) {
    run(R"(%a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx, %q = %ty) -> (${T}, ${T}) : i32 {
             scf.yield %q, %p : ${T}, ${T}
           }
           %r = arith.subf %a, %b : ${T})",
        "%r", n);
    expect([&](float a, float b) { return n % 2 ? b - a : a - b; });
  }
}

TEST_P(CpuControlFlow, RotationOfThreeInLoop) {
  for (int32_t n : {0, 1, 2, 3, 4}) {
    run(R"(%sum = arith.addf %tx, %ty : ${T}
           %a, %b, %c = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx, %q = %ty, %s = %sum) -> (${T}, ${T}, ${T}) : i32 {
             scf.yield %q, %s, %p : ${T}, ${T}, ${T}
           })",
        "%a", n);
    expect([&](float a, float b) { return n % 3 == 0 ? a : n % 3 == 1 ? b : a + b; });
  }
}

TEST_P(CpuControlFlow, ValueFromOutsideSurvivesIterations) {
  // %ty is read in every iteration and after the loop; %p is updated in place.
  for (int32_t n : {0, 1, 4}) {
    run(R"(%a = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx) -> (${T}) : i32 {
             %next = arith.addf %p, %ty : ${T}
             scf.yield %next : ${T}
           }
           %r = arith.mulf %a, %ty : ${T})",
        "%r", n);
    expect([&](float a, float b) {
      for (int32_t i = 0; i < n; ++i)
        a += b;
      return a * b;
    });
  }
}

TEST_P(CpuControlFlow, InitialValueUsedAfterLoop) {
  run(R"(%a = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx) -> (${T}) : i32 {
           %next = arith.addf %p, %p : ${T}
           scf.yield %next : ${T}
         }
         %r = arith.subf %a, %tx : ${T})",
      "%r", 3);
  expect([](float a, float) { return 8 * a - a; });
}

TEST_P(CpuControlFlow, OldAndNewValueAliveTogether) {
  run(R"(%a, %d = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx, %q = %ty) -> (${T}, ${T}) : i32 {
           %next = arith.addf %p, %q : ${T}
           %difference = arith.subf %next, %p : ${T}
           scf.yield %next, %difference : ${T}, ${T}
         }
         %r = arith.mulf %a, %d : ${T})",
      "%r", 2);
  expect([](float p, float q) {
    for (int i = 0; i < 2; ++i) {
      const float next = p + q;
      q = next - p;
      p = next;
    }
    return p * q;
  });
}

TEST_P(CpuControlFlow, BranchYieldsOuterAndNewValues) {
  for (int32_t flag : {0, 1}) {
    run(R"(%a, %b = scf.if %flag -> (${T}, ${T}) {
             %new = arith.addf %tx, %ty : ${T}
             scf.yield %ty, %new : ${T}, ${T}
           } else {
             scf.yield %tx, %ty : ${T}, ${T}
           }
           %r0 = arith.subf %a, %b : ${T}
           %r = arith.mulf %r0, %tx : ${T})",
        "%r", 0, flag);
    expect([&](float a, float b) { return (flag ? b - (a + b) : a - b) * a; });
  }
}

TEST_P(CpuControlFlow, BranchSwapsInLoop) {
  run(R"(%a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx, %q = %ty) -> (${T}, ${T}) : i32 {
           %even = arith.constant 2 : i32
           %rest = arith.remsi %i, %even : i32
           %swaps = arith.cmpi eq, %rest, %c0 : i32
           %u, %v = scf.if %swaps -> (${T}, ${T}) {
             scf.yield %q, %p : ${T}, ${T}
           } else {
             %sum = arith.addf %p, %q : ${T}
             scf.yield %sum, %q : ${T}, ${T}
           }
           scf.yield %u, %v : ${T}, ${T}
         }
         %r = arith.subf %a, %b : ${T})",
      "%r", 5);
  expect([](float p, float q) {
    for (int i = 0; i < 5; ++i) {
      if (i % 2 == 0)
        std::swap(p, q);
      else
        p = p + q;
    }
    return p - q;
  });
}

TEST_P(CpuControlFlow, NestedLoops) {
  run(R"(%a = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx) -> (${T}) : i32 {
           %inner = scf.for %j = %c0 to %i step %c1 iter_args(%q = %p) -> (${T}) : i32 {
             %next = arith.addf %q, %ty : ${T}
             scf.yield %next : ${T}
           }
           %both = arith.addf %inner, %p : ${T}
           scf.yield %both : ${T}
         })",
      "%a", 4);
  expect([](float p, float y) {
    for (int i = 0; i < 4; ++i) {
      float q = p;
      for (int j = 0; j < i; ++j)
        q += y;
      p = q + p;
    }
    return p;
  });
}

TEST_P(CpuControlFlow, ScalarsAndTilesCarriedTogether) {
  run(R"(%one = arith.constant 1.0 : f32
         %a, %s, %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %tx, %k = %one, %q = %ty) -> (${T}, f32, ${T}) : i32 {
           %factor = tile.splat %k : ${T}
           %next = arith.mulf %q, %factor : ${T}
           %more = arith.addf %k, %one : f32
           scf.yield %q, %more, %next : ${T}, f32, ${T}
         }
         %wide = tile.splat %s : ${T}
         %r0 = arith.addf %a, %b : ${T}
         %r = arith.addf %r0, %wide : ${T})",
      "%r", 3);
  expect([](float p, float q) {
    float k = 1;
    for (int i = 0; i < 3; ++i) {
      const float next = q * k;
      p = q;
      q = next;
      k += 1;
    }
    return p + q + k;
  });
}

TEST_P(CpuControlFlow, DotIntoItsAccumulator) {
  // Three products into one accumulator, one of them in a branch; A is used again afterwards.
  const std::string text = R"(
    func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<f32, 1>, %n: i32) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %zero = arith.constant dense<0.0> : tensor<19x6xf32>
      %a = tile.load %x rows(%r) {
        %yes = arith.constant true
        tile.at [%r] if %yes
      } : !tile.view<f32, 1> -> tensor<19x6xf32>
      %b = tile.load %y rows(%r) {
        %yes = arith.constant true
        tile.at [%r] if %yes
      } : !tile.view<f32, 1> -> tensor<6x6xf32>
      %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<19x6xf32>) : i32 {
        %first = arith.cmpi eq, %i, %c0 : i32
        %next = scf.if %first -> (tensor<19x6xf32>) {
          %0 = tile.dot %a, %b, %acc {zero_annihilates} : tensor<19x6xf32>, tensor<6x6xf32> -> tensor<19x6xf32>
          scf.yield %0 : tensor<19x6xf32>
        } else {
          %1 = tile.dot %a, %b, %acc : tensor<19x6xf32>, tensor<6x6xf32> -> tensor<19x6xf32>
          scf.yield %1 : tensor<19x6xf32>
        }
        scf.yield %next : tensor<19x6xf32>
      }
      %sum = arith.addf %s, %a : tensor<19x6xf32>
      tile.store %sum, %z rows(%r) {
        %yes = arith.constant true
        tile.at [%r] if %yes
      } : tensor<19x6xf32>, !tile.view<f32, 1>
      return
    })";
  TileKernel kernel(text, GetParam());
  Slots slots;
  slots.view(x.data(), {kColumns}).view(y.data(), {kColumns}).view(z.data(), {kColumns}).i32(3);
  kernel.run(slots);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kColumns; ++k)
        sum += 3.0 * x[size_t(i * kColumns + k)] * y[size_t(k * kColumns + j)];
      ASSERT_NEAR(z[size_t(i * kColumns + j)], sum + x[size_t(i * kColumns + j)], 1e-4);
    }
  }
}

TEST_P(CpuControlFlow, SlotsAndScalars) {
  TileKernel kernel(R"(
    func.func @f(%a: !tile.view<i32, 2>, %absent: !tile.view<f32, 3>, %h: !tile.view<bf16, 1>, %out: !tile.view<f32, 1>,
                 %scale: f32, %wide: i64) {
      %x = tile.program_id x
      %y = tile.program_id y
      %z = tile.program_id z
      %element = tile.load_scalar %a[%x, %y] : !tile.view<i32, 2>
      %half = tile.load_scalar %h[%z] : !tile.view<bf16, 1>
      %single = arith.extf %half : bf16 to f32
      %given = tile.present %absent : !tile.view<f32, 3>
      %here = tile.present %a : !tile.view<i32, 2>
      %is_absent = arith.extui %given : i1 to i32
      %is_here = arith.extui %here : i1 to i32
      %narrow = arith.trunci %wide : i64 to i32
      %0 = arith.addi %element, %is_absent : i32
      %1 = arith.addi %0, %is_here : i32
      %2 = arith.addi %1, %narrow : i32
      %3 = arith.sitofp %2 : i32 to f32
      %4 = math.fma %3, %scale, %single : f32
      %t = tile.splat %4 : tensor<1xf32>
      tile.store %t, %out rows(%r) {
        %yes = arith.constant true
        tile.at [%r] if %yes
      } : tensor<1xf32>, !tile.view<f32, 1>
      return
    })",
                    GetParam());
  const int32_t a[] = {1, 2, 3, 4, 5, 6};
  const uint16_t h[] = {0x3f80, 0x4000, 0x4040}; // 1, 2, 3
  float out = 0;
  Slots slots;
  slots.view(a, {3, 1}).view(nullptr, {0, 0, 0}).view(h, {1}).view(&out, {1}).f32(10).i32(1000);
  kernel.run(slots, 1, 2, 2);
  EXPECT_EQ(out, (6 + 0 + 1 + 1000) * 10.0f + 3.0f);
}

TEST_P(CpuControlFlow, FirstReporterWins) {
  TileKernel kernel(R"(
    func.func @f(%status: !tile.view<i32, 1>, %bad_word: i32, %code: i32) {
      %zero = arith.constant 0 : i32
      %bad = arith.cmpi ne, %bad_word, %zero : i32
      %place = tile.program_id z
      tile.report %bad, %code, %place to %status : !tile.view<i32, 1>
      return
    })",
                    GetParam());
  int32_t status[4] = {0, -1, 0, -1};
  auto launch = [&](int32_t *where, int64_t stride, int32_t bad, int32_t code, int32_t place) {
    Slots slots;
    slots.view(where, {stride}).i32(bad).i32(code);
    kernel.run(slots, 0, 0, place);
  };
  launch(status, 1, 0, 3, 7);
  EXPECT_EQ(status[0], 0);
  launch(status, 1, 1, 3, 7);
  launch(status, 1, 1, 4, 8);
  EXPECT_EQ(status[0], 3);
  EXPECT_EQ(status[1], 7);
  launch(status, 2, 1, 1, 9); // taken already
  EXPECT_EQ(status[2], 0);
  launch(nullptr, 1, 1, 3, 7); // no status word is given
}

// What has no lowering is an error at its line.
TEST(CpuErrors, NameTheOperation) {
  const std::string unsupported = compileError(R"(func.func @f(%x: !tile.view<f32, 1>) {
    %t = tile.load %x rows(%r) {
      %yes = arith.constant true
      tile.at [%r] if %yes
    } : !tile.view<f32, 1> -> tensor<4x4xf32>
    %e = math.tan %t : tensor<4x4xf32>
    tile.store %e, %x rows(%r) {
      %yes = arith.constant true
      tile.at [%r] if %yes
    } : tensor<4x4xf32>, !tile.view<f32, 1>
    return
  })");
  EXPECT_NE(unsupported.find("test:6"), std::string::npos) << unsupported;
  EXPECT_NE(unsupported.find("'math.tan' op cannot be lowered to the CPU"), std::string::npos) << unsupported;
  const std::string level = compileError("func.func @f() { return }", "x86-64-v9");
  EXPECT_NE(level.find("x86-64-v9"), std::string::npos) << level;
}

} // namespace
} // namespace nsa::test
