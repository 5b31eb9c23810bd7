// An engine on the CPU whose database holds measured thresholds, and what they come to. Thread-safety: one thread.
#pragma once

#include "cache/kernel_store.h"
#include "runtime/engine/choices/routes.h"
#include "tests/harness/scratch.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"

#include <gtest/gtest.h>

namespace nsa::tools {

class RouteTest : public ::testing::Test {
protected:
  void SetUp() override {
    Result<std::unique_ptr<Accelerator>> opened = Accelerator::open("cpu");
    ASSERT_TRUE(opened) << opened.status().toString();
    accelerator = std::move(*opened);
    settings.device = "cpu";
    settings.cachePath = scratch.file("kernels.db");
    settings.cachePacks = "none";
  }

  EngineHandle engine() const {
    Result<EngineHandle> made = createEngine(settings);
    EXPECT_TRUE(made) << made.status().toString();
    return std::move(*made);
  }

  void storeRoute(const std::string &family, const std::string &name, int64_t threshold) const {
    const std::string device = (*describeEngine(engine().get()))["device"].value("key", "");
    std::string warning;
    Result<std::unique_ptr<KernelStore>> database = KernelStore::open({.path = settings.cachePath}, warning);
    ASSERT_TRUE(database && warning.empty()) << warning;
    ASSERT_TRUE((*database)->putRoute({family, device, name, threshold, "test", {}}).isOk());
  }

  // What explain says of one part.
  nlohmann::json explained(const Spec &spec, const Maxima &maxima, const std::string &part) const {
    const EngineHandle handle = engine();
    Result<nlohmann::json> report = explain(handle.get(), spec, maxima);
    EXPECT_TRUE(report) << report.status().toString();
    for (const nlohmann::json &kernel : (*report)["kernels"])
      if (kernel.value("part", "") == part)
        return kernel;
    return {};
  }

  test::Scratch scratch;
  EngineSettings settings;
  std::unique_ptr<Accelerator> accelerator;
};

} // namespace nsa::tools
