// Groups of heads that are several tiles of each of decode's kernels, on every device: templates left with the smallest
// tile, where the cost would choose one that holds the group.
#include "compiler/driver/TemplateFiles.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"
#include "tests/harness/template_folder.h"

namespace nsa::test {
namespace {

TEST_F(DecodeTest, AGroupOfSeveralTilesIsTheForward) {
  TemplateFolder folder;
  for (const TemplateFile &file : TemplateFiles::embedded().files())
    folder.write(file.path, file.text);
  for (const char *name : {"tile/split_attention.tile", "tile/scores.tile"})
    folder.replace(name, "head_tile = 16 | 32 | 64 | 128", "head_tile = 16");
  const std::unique_ptr<Session> narrow = Session::open("attention", folder.path());
  ASSERT_TRUE(narrow->engine());
  session = narrow.get();
  for (const auto &[group, dtype] : {std::pair(17, DType::kF32), {40, DType::kBf16}, {128, DType::kF16}}) {
    SCOPED_TRACE(group);
    Spec spec = smallSpec(dtype);
    spec.kvHeads = group == 128 ? 1 : 2;
    spec.queryHeads = spec.kvHeads * group;
    const OperatorInputs history = tools::drawInputs(spec, {{150, 150}, {150, 150}}, freshSeed());
    decode(history, {.room = 160, .mostNew = 2}, evenly(150, 2));
  }
}

} // namespace
} // namespace nsa::test
