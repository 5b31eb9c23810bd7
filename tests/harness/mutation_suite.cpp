// The mutation test, on every device: the template's text is the operator's only definition, so one operation changed
// in it changes the results, and on all devices in the same way.
#include "compiler/driver/TemplateFiles.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"
#include "tests/harness/template_folder.h"

#include <cmath>
#include <numbers>

namespace nsa::test {
namespace {

TEST_F(AttentionTest, OneChangedOperationOfTheTemplateChangesTheResults) {
  TemplateFolder folder;
  for (const TemplateFile &file : TemplateFiles::embedded().files())
    folder.write(file.path, file.text);
  // The last step of the log-sum-exp, from base 2 to base e: what comes of another operation can be told exactly.
  folder.replace("tile/attention.tile", "softmax_lse(m, l, scale_log2) * ln_2", "softmax_lse(m, l, scale_log2) + ln_2");
  std::unique_ptr<Session> mutated = Session::open("attention", folder.path());
  ASSERT_TRUE(mutated->engine());

  std::mt19937_64 random(freshSeed());
  for (DType dtype : {DType::kBf16, DType::kF32}) {
    AttentionCase shape{.name = "mutation",
                        .op = Operator::kWindow,
                        .dtype = dtype,
                        .kvHeads = 2,
                        .group = 2,
                        .qkDim = 32,
                        .vDim = 24,
                        .window = 19,
                        .sequences = {{45, 60}}};
    AttentionData data = AttentionData::draw(shape, random);
    check(data);
    const Status status = mutated->run(data);
    ASSERT_TRUE(status.isOk()) << status.toString();
    const reference::Attention problem = data.problem();
    const reference::AttentionResult expected = reference::attend(problem);
    const reference::ErrorReport error = reference::compare(problem, expected, data.out.view(), {});
    EXPECT_TRUE(error.within(reference::toleranceOf(dtype))) << error.toString(reference::toleranceOf(dtype));
    for (int64_t query = 0; query < 45; ++query)
      for (int64_t head = 0; head < 4; ++head) {
        const double lse = expected.lse[static_cast<size_t>(query * 4 + head)];
        ASSERT_NEAR(data.lse.get(0, query, head, 0), lse / std::numbers::ln2 + std::numbers::ln2, 2e-3)
            << "query " << query << ", head " << head << ", unchanged " << lse;
      }
  }
}

} // namespace
} // namespace nsa::test
