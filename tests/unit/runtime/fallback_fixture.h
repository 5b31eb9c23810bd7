// Engines that make nothing: what a cache or a pinned file holds is all that they have. Thread-safety: one thread.
#pragma once

#include "tests/unit/runtime/c_api_fixture.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace nsa::test::c_api {

using Json = nlohmann::json;

class Fallback : public CApi {
protected:
  // The fixture's call for longer keys and another window, as the name of its template.
  void storeFor(int64_t seqlenK, int32_t window, const std::string &name, const std::string &device = cpuDeviceKey(),
                const KernelText &text = {}) {
    storeIn(cache, seqlenK, window, name, device, text);
  }
  void storeIn(const std::string &path, int64_t seqlenK, int32_t window, const std::string &name,
               const std::string &device = cpuDeviceKey(), KernelText text = {}) {
    Call other(NSA_LAYOUT_DENSE);
    other.maxima.max_seqlen_k = seqlenK;
    other.spec.window = window;
    text.templateName = name;
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = path, .readOnly = false}, warning);
    ASSERT_TRUE(store.isOk()) << store.status().toString();
    storeChoice(**store, other.internalSpec(), other.internalMaxima(), text, countingCode(), device);
  }
  static Json describe(const Plan &plan) { return Json::parse(nsa_plan_describe(plan.handle)); }
  static Json explain(const Engine &engine, const Call &call) {
    char *text = nullptr;
    nsa_error error;
    EXPECT_EQ(nsa_explain(engine.handle, &call.spec, &call.maxima, &text, &error), NSA_OK) << error.message;
    Json json = text ? Json::parse(text) : Json();
    nsa_free(text);
    return json;
  }
  static bool hasCompiler() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find("libnsa_compiler") != std::string::npos)
        return true;
    return false;
  }

  Call call{NSA_LAYOUT_DENSE}; // 40 keys, in the bucket of 64; a window of 7, in that of 8
};

} // namespace nsa::test::c_api
