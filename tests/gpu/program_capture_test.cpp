// While a stream captures, a program of one's own is made only from memory, and the capture survives a refusal.
#include "tests/harness/program_fixture.h"
#include "tests/harness/seed.h"

namespace nsa::test {
namespace {

TEST_F(ProgramTest, AColdProgramDuringCaptureIsAClearErrorAndTheCaptureSurvives) {
  std::mt19937_64 random(freshSeed());
  const tools::EngineHandle engine = engineOf(settings());
  const ExampleCase known = briefExampleCases().front();
  ExampleCase cold = known;
  cold.dtype = DType::kF16;
  void *stream = accelerator().stream();
  Result<ProgramHandle> program = ProgramRequest::ofExample(known).create(engine.get(), stream);
  ASSERT_TRUE(program) << program.status().toString();
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), drawExample(known, random));
  ASSERT_TRUE(call) << call.status().toString();

  Status refused, served, compared;
  Result<tools::Recording> recording = accelerator().record([&] {
    refused = ProgramRequest::ofExample(cold).create(engine.get(), stream).status();
    served = ProgramRequest::ofExample(known).create(engine.get(), stream).status();
    compared = call->compare().status();
    return call->enqueue();
  });
  ASSERT_TRUE(recording) << "the capture was broken: " << recording.status().toString();
  EXPECT_EQ(refused.code(), ErrorCode::kCapturing) << refused.toString();
  EXPECT_NE(refused.toString().find("dtype=fp16"), std::string::npos) << refused.toString();
  EXPECT_TRUE(served.isOk()) << served.toString();
  EXPECT_EQ(compared.toString(),
            "capturing: program softmax: stream = capturing: a comparison waits for its kernels, and a captured one "
            "does not run (hint: compare outside of the capture)");
  ASSERT_TRUE((*recording)().isOk());
  ASSERT_TRUE(accelerator().synchronize().isOk());
  call->expectRight();

  // Outside of the capture the same values are served.
  check(engine.get(), cold, "compiled");
}

} // namespace
} // namespace nsa::test
