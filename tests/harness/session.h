// A device with its engine, shared by the tests of one executable, and the one way they run a case.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/attention_data.h"
#include "tests/harness/test_template.h"
#include "tests/reference/error_metrics.h"
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

// A case on the device: uploaded tensors and the plan; may be enqueued again and again.
class Launch {
public:
  static constexpr size_t kTensors = 7;
  // What is bound and under which name, in the order q k v out lse cu_seqlens_q cu_seqlens_k; a tensor of size 0 is
  // not bound. A test may change both before it enqueues.
  std::array<nsa_name, kTensors> names = {NSA_Q, NSA_K, NSA_V, NSA_OUT, NSA_LSE, NSA_CU_SEQLENS_Q, NSA_CU_SEQLENS_K};
  std::array<nsa_tensor, kTensors> tensors{};
  tools::PlanHandle plan;
  tools::Buffer workspace;

  Status enqueue() const;
  Status enqueueOn(void *stream) const;
  // Waits, and gives the error that the kernel left in the status word.
  Status finish();
  // Brings output and LSE back into `data`.
  Status download(AttentionData &data) const;
  // Enqueues, waits and brings output and LSE back.
  Status runInto(AttentionData &data);
  Status upload(const AttentionData &data);

private:
  friend class Session;
  tools::Accelerator *accelerator = nullptr;
  std::array<tools::Buffer, kTensors> buffers;
};

class Session {
public:
  // The device of the executable: "cpu" or "cuda:0". Opened once for each template that is to serve: the tile
  // program defines the operators, "row_attention" is a hand-scheduled variant of them.
  static Session &get(const std::string &variant = kTestTemplate);
  // One more, whose templates come from a folder.
  static std::unique_ptr<Session> open(const std::string &variant, const std::string &templateDir);

  const std::string &variant() const { return variantName; }
  // Whether the variant is forced, and not what the library would choose.
  static bool isForced();

  // Empty when the device can be used; else why not. With a driver present a failure is no reason to skip.
  const std::string &skipReason() const { return reason; }
  tools::Accelerator &accelerator() { return *device; }
  nsa_engine *engine() { return engineHandle.get(); }
  bool isCuda() const { return device->isCuda(); }

  // Makes the plans of all of these, as many at once as there are cores: their kernels are then in memory. A plan that
  // cannot be made fails the test that needs it.
  void makeReady(const std::vector<std::pair<Spec, Maxima>> &wanted);

  Result<Launch> prepare(const AttentionData &data);
  // Uploads, plans, runs and brings output and LSE back into `data`.
  Status run(AttentionData &data);
  // Of the last `prepare` or `run`.
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

// For SetUpTestSuite of a suite with one TEST_P: makes the plans of those values whose tests the filter leaves.
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

  // Runs the case; fails unless the session's template ran, on this device, within the tolerance, and nothing was
  // written outside of the outputs.
  void check(AttentionData &data);
  // What stands in both outputs, or in out alone, is the reference's within the tolerance.
  static void checkOutputs(const AttentionData &data);
  static void checkOut(const AttentionData &data);
  // The kernel that served: the session's template on its device, with nothing that failed before it.
  void checkKernel();
  // From here on the tests' runs are served by this template.
  void useVariant(const std::string &variant) { session = &Session::get(variant); }
  Session *session = nullptr;
};

} // namespace nsa::test
