// Programs of one's own through the C ABI, on the executable's device (kTestDevice).
// Ownership: objects on the device must be destroyed before the session's accelerator, which is never destroyed.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/example_program.h"
#include "tests/harness/scratch.h"
#include "tests/harness/session.h"
#include "tools/support/program_job.h"

namespace nsa::test {

using tools::describeProgram;
using tools::ProgramHandle;
using ProgramPairs = std::map<std::string, std::string>;

// The arguments of the functions that read a program: a source and values.
class ProgramRequest : public tools::ProgramRequest {
public:
  static ProgramRequest ofText(std::string text, ProgramPairs values);
  static ProgramRequest ofFile(std::string path, ProgramPairs values);
  static ProgramRequest ofExample(const ExampleCase &example);

  // Changes or adds a value; "" removes it.
  ProgramRequest with(const std::string &name, const std::string &value) const;
};

// The tensors of a call on the device. All bytes between their elements are NaN, and so are outputs before a run.
class ProgramCall {
public:
  // The rows of a tensor of several dimensions lie `gap` elements apart.
  static Result<ProgramCall> make(tools::Accelerator &accelerator, const nsa_program *program, Example example,
                                  int64_t gap = 8);

  // Tests may change what is bound.
  std::vector<nsa_tensor> tensors; // in the order of the example's
  std::vector<std::string> names;
  std::vector<std::pair<std::string, double>> scalars;

  Status enqueue() const;
  // Runs the call in checked mode.
  Status check() const;
  // Enqueues, waits, and returns the status of both.
  Status run() const;
  // As `run`, and returns what nsa_program_compare finds.
  Result<nlohmann::json> compare() const;
  // Uploads the inputs of another call of the same sizes, and fills the outputs with NaN.
  Status upload(Example other);
  // Fails the running test unless all outputs are within the tolerance, and nothing was written beside them.
  void expectRight() const { expectRight(example); }
  // The same with the outputs of another example than the uploaded one.
  void expectRight(const Example &expected) const;

private:
  Status upload() const;
  // Calls `use(tensors, count, scalars, count)`.
  template <typename Use> auto pass(const Use &use) const;
  std::vector<std::byte> placed(const ExampleTensor &tensor, size_t index, bool withValues) const;

  tools::Accelerator *accelerator = nullptr;
  const nsa_program *program = nullptr;
  Example example;
  std::vector<tools::Buffer> buffers;
  tools::Buffer workspace;
};

// Opens the session's device, or skips with its reason. Engines are the test's own.
class ProgramTest : public ::testing::Test {
protected:
  void SetUp() override;

  // On the test's device, without packs: with a database ("": in memory) and a policy.
  static tools::EngineSettings settings(const std::string &database = "", nsa_miss_policy policy = NSA_MISS_DEFAULT);
  // Fails the running test where there is none.
  static tools::EngineHandle engineOf(const tools::EngineSettings &settings);
  tools::Accelerator &accelerator() const { return session->accelerator(); }
  // Creates and runs the program on drawn tensors. Fails the running test unless it computes the right result, with a
  // kernel that came from `source` ("compiled", "database", "pack").
  void check(nsa_engine *engine, const ExampleCase &example, const std::string &source);

  Session *session = nullptr;
  Scratch scratch;
};

} // namespace nsa::test
