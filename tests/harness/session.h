// A device with its engine, which the tests of one executable share, and the one way in which they run a case.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/attention_data.h"
#include "tests/harness/test_template.h"
#include "tools/reference/error_metrics.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"

#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::test {

// A case on the device: its uploaded tensors and its plan. It may be enqueued again and again.
class Launch {
public:
  static constexpr size_t kTensors = 7;
  // The tensors that are bound and their names, in the order q k v out lse cu_seqlens_q cu_seqlens_k. A tensor of size
  // 0 is not bound. A test may change both arrays before it enqueues.
  std::array<nsa_name, kTensors> names = {NSA_Q, NSA_K, NSA_V, NSA_OUT, NSA_LSE, NSA_CU_SEQLENS_Q, NSA_CU_SEQLENS_K};
  std::array<nsa_tensor, kTensors> tensors{};
  tools::PlanHandle plan;
  tools::Buffer workspace;

  Status enqueue() const;
  Status enqueueOn(void *stream) const;
  // Waits, and returns the error that the kernel left in the status word.
  Status finish();
  // Downloads output and LSE into `data`.
  Status download(AttentionData &data) const;
  // Enqueues, waits, and downloads output and LSE.
  Status runInto(AttentionData &data);
  Status upload(const AttentionData &data);

private:
  friend class Session;
  tools::Accelerator *accelerator = nullptr;
  std::array<tools::Buffer, kTensors> buffers;
};

class Session {
public:
  // The session on the executable's device, "cpu" or "cuda:0". It is opened once for each template that is to serve:
  // the tile program defines the operators, and "row_attention" is a hand-scheduled variant of them.
  static Session &get(const std::string &variant = kTestTemplate);
  // Opens another session, whose templates come from a folder.
  static std::unique_ptr<Session> open(const std::string &variant, const std::string &templateDir);

  const std::string &variant() const { return variantName; }
  // Whether the session forces its variant, and does not leave the choice to the library.
  static bool isForced();

  // Empty when the device can be used; otherwise the reason why not. Where there is a driver, a failure is no reason to
  // skip a test.
  const std::string &skipReason() const { return reason; }
  tools::Accelerator &accelerator() { return *device; }
  nsa_engine *engine() { return engineHandle.get(); }
  bool isCuda() const { return device->isCuda(); }

  // Makes all these plans, as many at once as there are cores, so that their kernels are in memory. A plan that cannot
  // be made fails the test that needs it.
  void makeReady(const std::vector<std::pair<Spec, Maxima>> &wanted);

  Result<Launch> prepare(const AttentionData &data);
  // Uploads, plans, runs, and downloads output and LSE into `data`.
  Status run(AttentionData &data);
  // The plan's description of the last `prepare` or `run`.
  const nlohmann::json &description() const { return lastDescription; }

private:
  Session(const std::string &variant, const std::string &templateDir);

  std::string variantName;
  std::string reason;
  std::unique_ptr<tools::Accelerator> device;
  tools::EngineHandle engineHandle;
  nlohmann::json lastDescription;
};

// Defined by each executable.
extern const char *const kTestDevice;
inline bool isTestDeviceCuda() { return std::string_view(kTestDevice) != "cpu"; }

// The executable's template; row_attention, one for GPUs, beside the tile program.
inline std::vector<std::string> testedVariants() {
  std::vector<std::string> variants = {kTestTemplate};
  if (isTestDeviceCuda() && variants.front() == kTileTemplate)
    variants.push_back("row_attention");
  return variants;
}

// For SetUpTestSuite of a suite with one TEST_P. Makes the plans of the values whose tests the filter leaves in.
// `request(value)` is the pair of spec and maxima.
template <typename Value, typename Request>
void makeReadyForSuite(const std::vector<Value> &values, const Request &request) {
  const ::testing::TestSuite &suite = *::testing::UnitTest::GetInstance()->current_test_suite();
  std::vector<std::pair<Spec, Maxima>> wanted;
  for (size_t i = 0; i < values.size() && i < static_cast<size_t>(suite.total_test_count()); ++i)
    if (suite.GetTestInfo(static_cast<int>(i))->should_run())
      wanted.push_back(request(values[i]));
  Session::get().makeReady(wanted);
}

// Opens the session, or skips with its reason.
class AttentionTest : public ::testing::Test {
protected:
  void SetUp() override;

  // Runs the case. Fails unless the session's template ran on this device, the results are within the tolerance, and
  // nothing was written outside of the outputs.
  void check(AttentionData &data);
  // Compares both outputs, or only `out`, with the reference within the tolerance.
  static void checkOutputs(const AttentionData &data);
  static void checkOut(const AttentionData &data);
  // Checks that the session's template served on its device, and that nothing failed before it.
  void checkKernel();
  // Lets this template serve the following runs.
  void useVariant(const std::string &variant) { session = &Session::get(variant); }
  Session *session = nullptr;
};

} // namespace nsa::test
