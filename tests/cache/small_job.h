// What the races and the killed runs make: small attention problems, each with a kernel of its own, run through the C
// ABI on the CPU with the real compiler and compared with the fp64 reference. Thread-safety: all functions may be
// called by many threads at once.
#pragma once

#include "runtime/base/problem.h"
#include "tests/cache/shared_page.h"
#include "tests/harness/template_folder.h"
#include "tools/support/engine.h"

#include <atomic>
#include <string>

namespace nsa::test {

constexpr int kSmallJobs = 5;

struct SmallJob {
  Spec spec;
  Maxima maxima;
};
SmallJob smallJob(int number); // 0 <= number < kSmallJobs

// Plans, runs on fresh inputs and compares. An error names what was wrong; `source` is where the kernel came from.
Status runSmallJob(nsa_engine *engine, int number, uint64_t seed, std::string *source = nullptr);
// An engine for the CPU and this file; whatever it warns of is an error of the test. `waits` counts how often it begins
// to wait for what another caller makes.
tools::EngineHandle openSmallEngine(const std::string &cachePath, nsa_miss_policy policy,
                                    const std::string &templateDir = "", std::atomic<int> *waits = nullptr);
nsa_stats statsOf(const nsa_engine *engine);

// The templates, four candidates of them.
class FewTemplates : public TemplateFolder {
public:
  explicit FewTemplates(const std::string &templates) {
    copyFrom(templates);
    keepFewChoices();
  }
};

} // namespace nsa::test
