// How tests run operators through the C ABI. Each plan asserts which kernels serve, and a call that fails ends the
// test. Functions change and compare rows of tensors.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/operator_case.h"
#include "tests/harness/session.h"
#include "tools/reference/sequence.h"

#include <array>
#include <cstddef>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace nsa::test {

using tools::NamedTensors;
using tools::OperatorInputs;

// The bytes of one time of a contiguous tensor [.., heads, ...], or those of a single head at that time.
std::span<std::byte> timeOf(const Spec &spec, tools::HostTensor &tensor, int64_t batch, int64_t time);
std::span<std::byte> headOf(const Spec &spec, tools::HostTensor &tensor, int64_t batch, int64_t time, int64_t head);
std::span<const std::byte> headOf(const Spec &spec, const tools::HostTensor &tensor, int64_t batch, int64_t time,
                                  int64_t head);
// Whether both have the same bytes. Tests are compiled without optimisation, so memcmp is much faster than a loop.
bool sameBytes(std::span<const std::byte> a, std::span<const std::byte> b);
// Sets all elements to one value.
void fill(DType dtype, std::span<std::byte> elements, double value);
// Element `index` of a tensor of any type.
double elementOf(const tools::HostTensor &tensor, int64_t index);
// The elements of a tensor of int32.
std::span<int32_t> integers(tools::HostTensor &tensor);

// Whether a query and its head may attend the token, by branch (cmp, sel, win). A compressed block depends on all its
// tokens, and is visible once its last token is.
std::array<bool, 3> mayAttend(const Spec &spec, std::span<const int32_t> list, int64_t position, int64_t token);

// The kernels that a plan must have, by operator and in order. They follow from the specification and the routes of
// docs/operators.md.
std::vector<std::string> expectedKernels(const Spec &spec, const Maxima &maxima);

// The geometries of this run, which are drawn once from a printed seed. Suites that draw share them, and so share their
// kernels.
constexpr int kDrawnGeometries = 12;
const std::vector<Geometry> &drawnGeometries(const Session &session);
// The limits of drawn cases. A machine with a GPU has enough cores for longer references.
OperatorDrawLimits drawLimits(const Session &session);

class OperatorTest : public AttentionTest {
protected:
  // Makes a plan, and asserts that the expected kernels serve on this device and that nothing failed before them.
  tools::PlanHandle plan(const Spec &spec, const Maxima &maxima);

  // Makes the plans for calls with these lengths, all at the same time.
  void makeReady(const std::vector<Spec> &specs, const tools::SequenceLengths &lengths);

  Result<NamedTensors> tryRun(const tools::PlanHandle &plan, const OperatorInputs &inputs,
                              const tools::Spacing &spacing = {});
  // Runs and returns all outputs. A failure is thrown, which ends the test.
  NamedTensors run(const tools::PlanHandle &plan, const OperatorInputs &inputs, const tools::Spacing &spacing = {});
  NamedTensors run(const OperatorInputs &inputs, const tools::Spacing &spacing = {});

  struct Outcome {
    Status status;
    NamedTensors outputs; // also when there was an error
  };
  // Enqueues, asks for the status, and downloads whatever there is.
  Outcome runAnyway(const OperatorInputs &inputs);

  // Draws inputs, runs them and compares all outputs with the reference.
  void check(const OperatorCase &shape, std::mt19937_64 &random);
  // Compares with the reference. Where `rows` names queries, only these are compared.
  static void checkOutputs(const OperatorInputs &inputs, const NamedTensors &outputs,
                           const std::vector<int64_t> &rows = {});
  // Expects that both sets of outputs have the same bytes in all rows of this query.
  static void expectSameQuery(const Spec &spec, const NamedTensors &outputs, const NamedTensors &others,
                              const reference::Sequence &sequence, int64_t query);

  // The same inputs, where everything that the query may not see has this value: later keys, other queries and all
  // other sequences.
  static OperatorInputs spoilAllBut(const OperatorInputs &inputs, const reference::Sequence &sequence, int64_t query,
                                    double value);

  // A token of a sequence.
  struct Token {
    size_t sequence;
    int64_t time;
  };
  // For `nsa`: changes the values of one token after another, and finds the rows of each branch that change with it.
  // They must be exactly the rows that may attend the token.
  void checkInfluence(const tools::PlanHandle &plan, const OperatorInputs &inputs, const std::vector<Token> &tokens);
};

// A suite that runs in every input and output type of the executable's template. The names of its tests end with the
// type.
class OperatorTestPerType : public OperatorTest, public ::testing::WithParamInterface<DType> {
protected:
  static DType dtype() { return GetParam(); }
};
#define NSA_INSTANTIATE_PER_TYPE(Suite)                                                                                \
  INSTANTIATE_TEST_SUITE_P(Types, Suite, ::testing::ValuesIn(servedTypes()),                                           \
                           [](const auto &info) { return std::string(dtypeName(info.param)); })

} // namespace nsa::test
