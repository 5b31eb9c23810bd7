#include "tests/unit/cpu/template_kernel.h"

#include "compiler/driver/Target.h"
#include "compiler/driver/TemplateFiles.h"
#include "compiler/render/Renderer.h"
#include "compiler/render/TemplateHeader.h"
#include "runtime/base/cpu_features.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace nsa::test {

TemplateKernel::TemplateKernel(const std::string &file, Operator op, const Pairs &fixed, const Pairs &pinned,
                               const std::string &features) {
  compile(file, op, fixed, pinned, features);
}

void TemplateKernel::compile(const std::string &file, Operator op, const Pairs &fixed, const Pairs &pinned,
                             const std::string &features) {
  std::ifstream stream(NSA_TEST_TEMPLATES "/" + file);
  std::ostringstream content;
  content << stream.rdbuf();
  const std::string text = content.str();
  auto parsed = TemplateHeader::parse(text, file, TemplateKind::kTile, TemplateFiles::embedded().finder());
  ASSERT_TRUE(parsed) << parsed.status().toString();
  header = std::move(*parsed);
  auto target = Target::find("cpu");
  auto lanes = cpuVectorLanes(features);
  auto dtype = parseDType(fixed.at("dtype"));
  ASSERT_TRUE(target && lanes && dtype);
  Values values = (*target)->values(op, *dtype, *lanes);
  for (const auto &[name, value] : fixed)
    values.set(name, value);
  auto candidates = enumerateCandidates(header, values, pinned, (*target)->limits());
  ASSERT_TRUE(candidates) << candidates.status().toString();
  candidate = candidates->front();
  auto rendered = renderTemplate(text, file, candidate.values, TemplateFiles::embedded().finder());
  ASSERT_TRUE(rendered) << rendered.status().toString();
  kernel = std::make_unique<TileKernel>(rendered->text, features);
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

void TemplateKernel::run(const Slots &slots, const std::map<std::string, int64_t> &sizes) const {
  for (const auto &[x, y, z] : programs(sizes))
    kernel->run(slots, x, y, z);
}

} // namespace nsa::test
