#include "tests/harness/program_fixture.h"

#include "tests/harness/seed.h"
#include "tools/reference/elements.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

namespace nsa::test {

namespace {

int64_t rowLength(const ExampleTensor &tensor) { return tensor.shape.back(); }

int64_t rowCount(const ExampleTensor &tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end() - 1, int64_t{1}, std::multiplies<>());
}

// ||actual - expected|| / ||expected||; infinite where `actual` has what is no number, or `expected` is 0 and `actual`
// is not.
double relativeError(std::span<const double> actual, std::span<const double> expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  if (difference == 0)
    return 0;
  const double error = std::sqrt(difference / norm);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

} // namespace

ProgramRequest ProgramRequest::ofText(std::string text, ProgramPairs values) {
  ProgramRequest request;
  request.text = std::move(text);
  request.values = std::move(values);
  return request;
}

ProgramRequest ProgramRequest::ofFile(std::string path, ProgramPairs values) {
  ProgramRequest request;
  request.path = std::move(path);
  request.values = std::move(values);
  return request;
}

ProgramRequest ProgramRequest::ofExample(const ExampleCase &example) {
  return ofText(exampleText(example.program), example.values());
}

ProgramRequest ProgramRequest::with(const std::string &name, const std::string &value) const {
  ProgramRequest changed = *this;
  if (value.empty())
    changed.values.erase(name);
  else
    changed.values[name] = value;
  return changed;
}

Result<ProgramCall> ProgramCall::make(tools::Accelerator &accelerator, const nsa_program *program, Example example,
                                      int64_t gap) {
  ProgramCall call;
  call.accelerator = &accelerator;
  call.program = program;
  call.scalars = example.scalars;
  for (const ExampleTensor &each : example.tensors) {
    nsa_tensor tensor = NSA_INIT(nsa_tensor);
    tensor.dtype = static_cast<nsa_dtype>(each.dtype);
    tensor.rank = static_cast<int32_t>(each.shape.size());
    int64_t stride = 1;
    for (size_t axis = each.shape.size(); axis-- > 0;) {
      tensor.shape[axis] = each.shape[axis];
      tensor.strides[axis] = stride;
      stride *= each.shape[axis];
      if (axis + 1 == each.shape.size() && axis > 0)
        stride += gap;
    }
    NSA_ASSIGN_OR_RETURN(tools::Buffer buffer,
                         accelerator.allocate(static_cast<size_t>(stride * dtypeBytes(each.dtype))));
    tensor.data = buffer.data();
    call.buffers.push_back(std::move(buffer));
    call.tensors.push_back(tensor);
    call.names.push_back(each.name);
  }
  size_t bytes = 0;
  NSA_RETURN_IF_ERROR(tools::toStatus(nsa_program_workspace_size(program, &bytes, nullptr)));
  NSA_ASSIGN_OR_RETURN(call.workspace, accelerator.allocate(bytes));
  NSA_RETURN_IF_ERROR(call.upload(std::move(example)));
  return call;
}

// The bytes of a tensor's buffer: NaN, and its values if they are asked for.
std::vector<std::byte> ProgramCall::placed(const ExampleTensor &tensor, size_t index, bool withValues) const {
  std::vector<std::byte> bytes(buffers[index].size(), std::byte{0xff});
  const auto pitch = static_cast<int64_t>(bytes.size()) / dtypeBytes(tensor.dtype) / rowCount(tensor);
  for (int64_t i = 0; withValues && i < static_cast<int64_t>(tensor.values.size()); ++i) {
    const int64_t at = i / rowLength(tensor) * pitch + i % rowLength(tensor);
    const double value = tensor.values[static_cast<size_t>(i)];
    if (tensor.dtype == DType::kI32) {
      const auto integer = static_cast<int32_t>(value);
      memcpy(bytes.data() + at * static_cast<int64_t>(sizeof integer), &integer, sizeof integer);
    } else {
      reference::storeElement(tensor.dtype, bytes.data(), at, value);
    }
  }
  return bytes;
}

Status ProgramCall::upload(Example other) {
  example = std::move(other);
  for (size_t i = 0; i < example.tensors.size(); ++i) {
    const std::vector<std::byte> bytes = placed(example.tensors[i], i, !example.tensors[i].isOutput);
    NSA_RETURN_IF_ERROR(accelerator->upload(buffers[i].data(), bytes.data(), bytes.size()));
  }
  return Status::ok();
}

template <typename Use> auto ProgramCall::pass(const Use &use) const {
  std::vector<nsa_program_tensor> bound;
  for (size_t i = 0; i < tensors.size(); ++i)
    bound.push_back({names[i].c_str(), &tensors[i]});
  std::vector<nsa_program_scalar> given;
  for (const auto &[name, value] : scalars)
    given.push_back({name.c_str(), value});
  return use(bound.data(), bound.size(), given.data(), given.size());
}

Status ProgramCall::enqueue() const {
  return pass([&](const nsa_program_tensor *bound, size_t count, const nsa_program_scalar *given, size_t givenCount) {
    return tools::toStatus(nsa_program_run(program, bound, count, given, givenCount, workspace.data(), workspace.size(),
                                           accelerator->stream(), nullptr));
  });
}

Status ProgramCall::check() const {
  return pass([&](const nsa_program_tensor *bound, size_t count, const nsa_program_scalar *given, size_t givenCount) {
    return tools::toStatus(nsa_program_check(program, bound, count, given, givenCount, accelerator->stream(), nullptr));
  });
}

Result<nlohmann::json> ProgramCall::compare() const {
  return pass([&](const nsa_program_tensor *bound, size_t count, const nsa_program_scalar *given,
                  size_t givenCount) -> Result<nlohmann::json> {
    char *json = nullptr;
    NSA_RETURN_IF_ERROR(tools::toStatus(nsa_program_compare(program, bound, count, given, givenCount, workspace.data(),
                                                            workspace.size(), accelerator->stream(), &json, nullptr)));
    const std::unique_ptr<char, decltype(&nsa_free)> owned(json, nsa_free);
    return nlohmann::json::parse(owned.get());
  });
}

Status ProgramCall::run() const {
  NSA_RETURN_IF_ERROR(enqueue());
  return tools::toStatus(nsa_program_status(program, accelerator->stream(), nullptr));
}

void ProgramCall::expectRight(const Example &expected) const {
  const reference::Tolerance tolerance = reference::toleranceOf(expected.of.dtype);
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    const ExampleTensor &tensor = expected.tensors[i];
    SCOPED_TRACE(expected.of.name() + " " + tensor.name);
    const Status guards = accelerator->checkGuards(buffers[i], tensor.name);
    EXPECT_TRUE(guards.isOk()) << guards.toString();
    if (!tensor.isOutput)
      continue;
    std::vector<std::byte> bytes(buffers[i].size());
    const Status downloaded = accelerator->download(bytes.data(), buffers[i].data(), bytes.size());
    ASSERT_TRUE(downloaded.isOk()) << downloaded.toString();
    const int64_t rows = rowCount(tensor), columns = rowLength(tensor);
    const auto rowBytes = static_cast<int64_t>(bytes.size()) / rows;
    std::vector<double> actual(tensor.values.size());
    for (int64_t row = 0; row < rows; ++row) {
      reference::loadElements(
          tensor.dtype, bytes.data(), row * rowBytes / dtypeBytes(tensor.dtype),
          std::span(actual).subspan(static_cast<size_t>(row * columns), static_cast<size_t>(columns)));
      for (int64_t at = columns * dtypeBytes(tensor.dtype); at < rowBytes; ++at)
        ASSERT_EQ(bytes[static_cast<size_t>(row * rowBytes + at)], std::byte{0xff}) << "behind row " << row;
    }
    double worst = 0;
    const auto judged = static_cast<size_t>(tensor.rowElements);
    for (size_t at = 0; at < actual.size(); at += judged)
      worst = std::max(
          worst, relativeError(std::span(actual).subspan(at, judged), std::span(tensor.values).subspan(at, judged)));
    EXPECT_LE(worst, tolerance.worstRow);
    EXPECT_LE(relativeError(actual, tensor.values), tolerance.relativeRms);
  }
}

void ProgramTest::SetUp() {
  session = &Session::get();
  if (!session->skipReason().empty())
    GTEST_SKIP() << session->skipReason();
}

tools::EngineSettings ProgramTest::settings(const std::string &database, nsa_miss_policy policy) {
  tools::EngineSettings settings;
  settings.device = kTestDevice;
  settings.cachePath = database.empty() ? ":memory:" : database;
  settings.cachePacks = "none";
  settings.missPolicy = policy;
  return settings;
}

tools::EngineHandle ProgramTest::engineOf(const tools::EngineSettings &settings) {
  Result<tools::EngineHandle> engine = tools::createEngine(settings);
  EXPECT_TRUE(engine) << engine.status().toString();
  return engine ? std::move(*engine) : nullptr;
}

void ProgramTest::check(nsa_engine *engine, const ExampleCase &example, const std::string &source) {
  SCOPED_TRACE(example.name());
  static std::mt19937_64 random(freshSeed());
  Result<ProgramHandle> program = ProgramRequest::ofExample(example).create(engine, accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  const nlohmann::json description = describeProgram(program->get());
  EXPECT_EQ(description.value("source", ""), source) << description.dump(2);
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), drawExample(example, random));
  ASSERT_TRUE(call) << call.status().toString();
  const Status status = call->run();
  ASSERT_TRUE(status.isOk()) << status.toString();
  call->expectRight();
}

} // namespace nsa::test
