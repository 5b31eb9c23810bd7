#include "tests/harness/session.h"

#include "runtime/cuda/driver.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

namespace nsa::test {
namespace {

constexpr size_t kOut = 3, kLse = 4, kPlaced = 5, kAll = Launch::kTensors;

std::array<const PlacedTensor *, kPlaced> placedTensors(const AttentionData &data) {
  return {&data.q, &data.k, &data.v, &data.out, &data.lse};
}

nsa_tensor lengthsTensor(void *data, size_t count) {
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
  tensor.data = data;
  tensor.dtype = NSA_INT32;
  tensor.rank = 1;
  tensor.shape[0] = static_cast<int64_t>(count);
  tensor.strides[0] = 1;
  return tensor;
}

void compareWithReference(const AttentionData &data, const reference::TensorView &lse) {
  const reference::Attention problem = data.problem();
  const reference::Tolerance tolerance = reference::toleranceOf(data.shape.dtype);
  const reference::ErrorReport error = reference::compare(problem, reference::attend(problem), data.out.view(), lse);
  EXPECT_TRUE(error.within(tolerance)) << error.toString(tolerance);
}

} // namespace

Status Launch::enqueue() const { return enqueueOn(accelerator->stream()); }

Status Launch::enqueueOn(void *stream) const {
  std::array<nsa_binding, kTensors> bindings;
  size_t count = 0;
  for (size_t i = 0; i < kTensors; ++i)
    if (tensors[i].size != 0)
      bindings[count++] = {names[i], &tensors[i]};
  return tools::toStatus(
      nsa_run(plan.get(), bindings.data(), count, workspace.data(), workspace.size(), stream, nullptr));
}

Status Launch::finish() { return tools::toStatus(nsa_plan_status(plan.get(), accelerator->stream(), nullptr)); }

Status Launch::upload(const AttentionData &data) {
  const auto placed = placedTensors(data);
  for (size_t i = 0; i < kPlaced; ++i)
    NSA_RETURN_IF_ERROR(accelerator->upload(buffers[i].data(), placed[i]->bytes().data(), placed[i]->bytes().size()));
  for (size_t i = kPlaced; i < kAll && !data.cuSeqlensQ.empty(); ++i) {
    const std::vector<int32_t> &lengths = i == kPlaced ? data.cuSeqlensQ : data.cuSeqlensK;
    NSA_RETURN_IF_ERROR(accelerator->upload(buffers[i].data(), lengths.data(), lengths.size() * sizeof(int32_t)));
  }
  return Status::ok();
}

Status Launch::download(AttentionData &data) const {
  constexpr const char *kBuffers[] = {"q", "k", "v", "out", "lse", "cu_seqlens_q", "cu_seqlens_k"};
  NSA_RETURN_IF_ERROR(accelerator->checkGuards(workspace, "the workspace"));
  for (size_t i = 0; i < kTensors; ++i)
    NSA_RETURN_IF_ERROR(accelerator->checkGuards(buffers[i], kBuffers[i]));
  for (size_t i : {kOut, kLse}) {
    PlacedTensor &target = i == kOut ? data.out : data.lse;
    NSA_RETURN_IF_ERROR(accelerator->download(target.bytes().data(), buffers[i].data(), target.bytes().size()));
  }
  return Status::ok();
}

Status Launch::runInto(AttentionData &data) {
  NSA_RETURN_IF_ERROR(enqueue());
  NSA_RETURN_IF_ERROR(finish());
  return download(data);
}

Session &Session::get(const std::string &variant) {
  // Never destroyed: the driver may be gone before static destructors run.
  static auto *sessions = new std::map<std::string, std::unique_ptr<Session>>();
  std::unique_ptr<Session> &session = (*sessions)[variant];
  if (!session)
    session = open(variant, "");
  return *session;
}

std::unique_ptr<Session> Session::open(const std::string &variant, const std::string &templateDir) {
  return std::unique_ptr<Session>(new Session(variant, templateDir));
}

bool Session::isForced() { return std::getenv("NSA_TEST_ANY_VARIANT") == nullptr; }

Session::Session(const std::string &variant, const std::string &templateDir) : variantName(variant) {
  const std::string name = kTestDevice;
  if (name != "cpu") {
    if (Result<const cuda::Driver *> driver = cuda::Driver::get(); !driver) {
      reason = driver.status().toString();
      return;
    }
  }
  Result<std::unique_ptr<tools::Accelerator>> opened = tools::Accelerator::open(name);
  if (!opened) {
    ADD_FAILURE() << opened.status().toString();
    return;
  }
  device = std::move(*opened);
  tools::EngineSettings settings;
  settings.device = name;
  // The processes of run-gpu-tests share what they compile: it is of one compiler revision.
  const char *cache = std::getenv("NSA_TEST_CACHE");
  settings.cachePath = cache ? cache : ":memory:";
  // Whether stored kernels alone serve everything, as where there is no compiler. Else a pack that lies beside the
  // library must not: its choices are not those that a test asks for.
  const bool storedOnly = std::getenv("NSA_TEST_STORED_ONLY") != nullptr;
  settings.missPolicy = storedOnly ? NSA_MISS_FAIL : NSA_MISS_DEFAULT;
  settings.cachePacks = storedOnly ? "" : "none";
  // A forced variant is never stored as a choice, so stored choices cannot serve it. NSA_TEST_ANY_VARIANT leaves the
  // choice free.
  settings.forceVariant = isForced() ? variant : "";
  settings.templateDir = templateDir;
  Result<tools::EngineHandle> engine = tools::createEngine(settings);
  if (!engine) {
    ADD_FAILURE() << engine.status().toString();
    return;
  }
  engineHandle = std::move(*engine);
  const Result<nlohmann::json> description = tools::describeEngine(engineHandle.get());
  reason = whyNotOn(description ? (*description)["device"].value("target", "") : "");
  if (reason.empty() && !isForced() && std::string_view(kTestTemplate) != kTileTemplate)
    reason = std::string("NSA_TEST_ANY_VARIANT forces no template, and these tests are of ") + kTestTemplate;
}

void Session::makeReady(const std::vector<std::pair<Spec, Maxima>> &wanted) {
  if (!engineHandle || !reason.empty())
    return;
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < wanted.size(); i = next++)
      (void)tools::createPlan(engineHandle.get(), wanted[i].first, servedMaxima(wanted[i].first, wanted[i].second),
                              device->stream());
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), wanted.size()); ++i)
    threads.emplace_back(work);
  for (std::thread &thread : threads)
    thread.join();
}

Result<Launch> Session::prepare(const AttentionData &data) {
  Launch launch;
  launch.accelerator = device.get();
  const auto placed = placedTensors(data);
  for (size_t i = 0; i < kAll; ++i) {
    const bool lengths = i >= kPlaced;
    if (lengths && data.cuSeqlensQ.empty())
      break;
    const size_t bytes = lengths ? data.cuSeqlensQ.size() * sizeof(int32_t) : placed[i]->bytes().size();
    Result<tools::Buffer> buffer = device->allocate(bytes);
    if (!buffer)
      return buffer.status();
    launch.buffers[i] = std::move(*buffer);
    launch.tensors[i] = lengths ? lengthsTensor(launch.buffers[i].data(), data.cuSeqlensQ.size())
                                : placed[i]->apiTensor(launch.buffers[i].data());
  }
  NSA_RETURN_IF_ERROR(launch.upload(data));

  const Spec spec = data.shape.spec();
  Result<tools::PlanHandle> plan =
      tools::createPlan(engineHandle.get(), spec, servedMaxima(spec, data.shape.maxima()), device->stream());
  if (!plan)
    return plan.status();
  launch.plan = std::move(*plan);
  lastDescription = tools::describePlan(launch.plan.get());
  Result<size_t> bytes = tools::workspaceSize(launch.plan.get());
  if (!bytes)
    return bytes.status();
  if (*bytes) {
    Result<tools::Buffer> workspace = device->allocate(*bytes);
    if (!workspace)
      return workspace.status();
    launch.workspace = std::move(*workspace);
    // What a kernel keeps there must not depend on what stood there.
    NSA_RETURN_IF_ERROR(device->fill(launch.workspace.data(), 0xff, *bytes));
  }
  return launch;
}

Status Session::run(AttentionData &data) {
  data.out.poison();
  data.lse.poison();
  Result<Launch> launch = prepare(data);
  if (!launch)
    return launch.status();
  return launch->runInto(data);
}

void AttentionTest::SetUp() {
  session = &Session::get();
  if (!session->skipReason().empty())
    GTEST_SKIP() << session->skipReason();
  ASSERT_TRUE(session->engine()) << "the device's session could not be opened";
}

void AttentionTest::checkKernel() {
  const nlohmann::json &description = session->description();
  SCOPED_TRACE(description.dump(2));
  // Lengths on the device are tabulated by a launch of their own before.
  ASSERT_TRUE(description.contains("launches") && !description["launches"].empty());
  const nlohmann::json &launch = description["launches"].back();
  ASSERT_EQ(launch.value("operator", ""), description.value("operator", "-"));
  // The CPU has but one.
  if (Session::isForced() || !session->isCuda())
    EXPECT_EQ(launch.value("template", ""), session->variant());
  EXPECT_TRUE(description["fallbacks"].empty()) << "something that should have served did not";
  EXPECT_EQ(launch.value("target", "").starts_with("sm_"), session->isCuda());
  EXPECT_EQ(launch.value("target", "") == "cpu", !session->isCuda());
}

void AttentionTest::checkOutputs(const AttentionData &data) { compareWithReference(data, data.lse.view()); }

void AttentionTest::checkOut(const AttentionData &data) { compareWithReference(data, {}); }

void AttentionTest::check(AttentionData &data) {
  SCOPED_TRACE(data.shape.text());
  const Status status = session->run(data);
  ASSERT_TRUE(status.isOk()) << status.toString();
  checkKernel();
  checkOutputs(data);
  EXPECT_EQ(data.out.strayBytes(), 0) << "bytes between the elements of out were written";
  EXPECT_EQ(data.lse.strayBytes(), 0) << "bytes between the elements of lse were written";
}

} // namespace nsa::test
