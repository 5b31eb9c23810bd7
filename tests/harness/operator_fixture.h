// How tests run operators through the C ABI: the kernels that served are asserted with every plan, and a call that
// fails ends the test. Rows of tensors, to change and to compare.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/operator_case.h"
#include "tests/harness/session.h"
#include "tests/reference/sequence.h"

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

// The bytes of one time of a contiguous tensor [.., heads, ...], or of one of its heads there.
std::span<std::byte> timeOf(const Spec &spec, tools::HostTensor &tensor, int64_t batch, int64_t time);
std::span<std::byte> headOf(const Spec &spec, tools::HostTensor &tensor, int64_t batch, int64_t time, int64_t head);
std::span<const std::byte> headOf(const Spec &spec, const tools::HostTensor &tensor, int64_t batch, int64_t time,
                                  int64_t head);
// The same value in all elements.
void fill(DType dtype, std::span<std::byte> elements, double value);
// Element `index` of a tensor of any type.
double elementOf(const tools::HostTensor &tensor, int64_t index);

// Whether a query and head may attend the token, by branch (cmp, sel, win). A compressed block depends on all of its
// tokens, and is visible once its last token is.
std::array<bool, 3> mayAttend(const Spec &spec, std::span<const int32_t> list, int64_t position, int64_t token);

// The kernels that a plan must have, by operator and in order: what the specification and the routes of
// docs/operators.md demand.
std::vector<std::string> expectedKernels(const Spec &spec, const Maxima &maxima);

// The geometries of this run, drawn once from a printed seed: suites that draw share them, and so their kernels.
constexpr int kDrawnGeometries = 12;
const std::vector<Geometry> &drawnGeometries(const Session &session);
// A GPU machine has the cores for longer references.
OperatorDrawLimits drawLimits(const Session &session);

class OperatorTest : public AttentionTest {
protected:
  // Asserts that the expected kernels serve, on this device, with nothing that failed before them.
  tools::PlanHandle plan(const Spec &spec, const Maxima &maxima);

  // The plans that calls with these lengths need, made at once.
  void makeReady(const std::vector<Spec> &specs, const tools::SequenceLengths &lengths);

  Result<NamedTensors> tryRun(const tools::PlanHandle &plan, const OperatorInputs &inputs,
                              const tools::Spacing &spacing = {});
  // All outputs. A failure is thrown, which ends the test.
  NamedTensors run(const tools::PlanHandle &plan, const OperatorInputs &inputs, const tools::Spacing &spacing = {});
  NamedTensors run(const OperatorInputs &inputs, const tools::Spacing &spacing = {});

  // Draws inputs, runs them and compares all outputs with the reference.
  void check(const OperatorCase &shape, std::mt19937_64 &random);
  // `rows` of the queries, when there are any, stand for all.
  static void checkOutputs(const OperatorInputs &inputs, const NamedTensors &outputs,
                           const std::vector<int64_t> &rows = {});
  // Every output that has a row for this query holds the same bytes in both.
  static void expectSameQuery(const Spec &spec, const NamedTensors &outputs, const NamedTensors &others,
                              const reference::Sequence &sequence, int64_t query);

  // The same inputs with this value in place of everything that the query may not see: later keys, other queries and
  // all other sequences.
  static OperatorInputs spoilAllBut(const OperatorInputs &inputs, const reference::Sequence &sequence, int64_t query,
                                    double value);

  // A token of a sequence.
  struct Token {
    size_t sequence;
    int64_t time;
  };
  // Of `nsa`: changes the values of one token after the other and looks which rows of which branch follow. They must be
  // exactly those that may attend it.
  void checkInfluence(const tools::PlanHandle &plan, const OperatorInputs &inputs, const std::vector<Token> &tokens);
};

// A suite that runs in every io type of the executable's template; the tests' names end with it.
class OperatorTestPerType : public OperatorTest, public ::testing::WithParamInterface<DType> {
protected:
  static DType dtype() { return GetParam(); }
};
#define NSA_INSTANTIATE_PER_TYPE(Suite)                                                                                \
  INSTANTIATE_TEST_SUITE_P(Types, Suite, ::testing::ValuesIn(servedTypes()),                                           \
                           [](const auto &info) { return std::string(dtypeName(info.param)); })

} // namespace nsa::test
