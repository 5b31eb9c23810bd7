// What tests of the miss path share: an engine on the CPU with the real compiler, a small window, and templates with
// few choices. Thread-safety: one thread, but engines may be used by many.
#pragma once

#include "runtime/engine/engine.h"
#include "tests/harness/no_environment.h"
#include "tests/harness/template_folder.h"

#include <atomic>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace nsa::test {

class PlannerFixture : public testing::Test {
protected:
  PlannerFixture() {
    spec.dtype = DType::kF32;
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = spec.vDim = 32;
    spec.window = 24;
    maxima = {1, 96, 96, 160};
    options.device = "cpu";
    options.cachePath = folder.file("kernels.db");
    options.compilerPath = NSA_COMPILER_LIBRARY;
    options.tuneBudgetSeconds = 20;
    options.log = [](LogLevel, std::string_view, std::string_view) {};
  }

  using Json = nlohmann::json;

  EnginePointer open(MissPolicy policy) {
    options.missPolicy = policy;
    Result<EnginePointer> engine = Engine::open(options, noVariable);
    EXPECT_TRUE(engine.isOk()) << engine.status().toString();
    return std::move(*engine);
  }
  // Engines that are opened from here on dump into a folder whose name is then a file's, once `spoilDumps` was called:
  // each kernel that is compiled warns of it.
  void dumpInto(const std::string &name) { options.dumpDir = folder.file(name); }
  void spoilDumps() const { writeFile(options.dumpDir, "no folder"); }
  Json describe(Engine &engine) {
    Result<PlanPointer> plan = engine.plan(spec, maxima, nullptr);
    EXPECT_TRUE(plan.isOk()) << plan.status().toString();
    return plan ? Json::parse((*plan)->describe()) : Json();
  }

  // Engines that are opened from here on count in `waits` how often they begin to wait for what another caller makes.
  void countWaits() {
    options.logLevel = LogLevel::kInfo;
    options.log = [this](LogLevel, std::string_view, std::string_view message) { waits += isWait(message); };
  }
  static bool isWait(std::string_view message) { return message.ends_with(": waiting for it"); }

  // A copy of the templates with few choices, so that a test compiles few kernels.
  std::string copyTemplates() {
    templates.copyFrom(NSA_TEMPLATES);
    templates.keepFewChoices();
    tile = templates.read("tile/attention.tile");
    return templates.path();
  }
  void write(const std::string &name, const std::string &text) const {
    templates.write("tile/" + name + ".tile", text);
  }
  // The tile program under another name, which says of itself that it costs `cost`.
  std::string planted(const std::string &name, const std::string &cost) {
    std::string text = tile;
    replaceOnce(text, "kernel attention serves", "kernel " + name + " serves");
    replaceOnce(text, "cost    ", "cost    " + cost + " + 0 * ");
    return text;
  }
  // With a window one token too wide.
  std::string wrongTemplate() {
    std::string wrong = planted("too_wide", "0");
    replaceOnce(wrong, "age < window", "age <= window");
    return wrong;
  }
  struct Stored {
    StoredChoice choice;
    Manifest manifest;
    StoredKernel kernel;
  };
  // The only choice that is stored.
  Stored stored() const {
    std::string warning;
    auto store = KernelStore::open({.path = options.cachePath, .readOnly = true}, warning);
    EXPECT_TRUE(store) << store.status().toString();
    const std::vector<StoredChoice> choices = *(*store)->listChoices();
    EXPECT_EQ(choices.size(), 1u);
    StoredKernel kernel = **(*store)->findKernel(choices.at(0).content);
    return {choices[0], *Manifest::parse(kernel.manifest), kernel};
  }
  // Leaves it as an older build would have, whose source of the kernel was the same: that is all its content tells.
  void storedByAnotherCompiler() const {
    Stored row = stored();
    row.manifest.evidence["compiler"] = "older";
    row.kernel.manifest = row.manifest.serialize();
    if (const size_t end = row.choice.provenance.find(' '); row.choice.provenance.starts_with("compiler="))
      row.choice.provenance.replace(0, end, "compiler=older");
    std::string warning;
    auto store = KernelStore::open({.path = options.cachePath}, warning);
    ASSERT_TRUE(store) << store.status().toString();
    ASSERT_TRUE((*store)->put(row.kernel, &row.choice).isOk());
  }

  Scratch folder;
  TemplateFolder templates;
  EngineOptions options;
  Spec spec;
  Maxima maxima;
  std::string tile;
  std::atomic<int> waits = 0;
};

} // namespace nsa::test
