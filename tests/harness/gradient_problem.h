// Inputs of the kernels of gradients: queries, keys and values of sequences that lie in one of the layouts, and the
// gradient of the output.
// Thread-safety: none needed, one test uses one object.
#pragma once

#include "tests/harness/program_kernel.h"
#include "tools/reference/attention.h"
#include "tools/reference/elements.h"

#include <deque>
#include <random>

namespace nsa::test {

// Where sequences lie: side by side with equal lengths, or one behind the other with lengths of their own.
enum class Placing : uint8_t { kDense, kPacked };
std::string_view placingName(Placing placing);

struct SequenceLengths {
  int64_t queries, keys;
};

class GradientProblem {
public:
  // All lengths are equal unless the sequences are packed.
  GradientProblem(const Spec &spec, Placing placing, std::vector<SequenceLengths> lengths, std::mt19937_64 &random);
  GradientProblem(const GradientProblem &) = delete;

  // Makes all scores of the first query of each sequence so small that what stands in the place of a key that does not
  // exist, whose score is 0, has an infinite weight.
  void lowerScores();
  // Makes all scores 0, the elements of the keys of a sequence grow from `common` to twice as much, with another sign
  // in each sequence, and multiplies the gradient of the output. Of compressed keys.
  void alignKeys(double common, double gradientScale);
  // Makes the last key of each sequence NaN, and its value.
  void poisonLastKeys();
  // Makes the first key of each sequence NaN.
  void poisonFirstKeys();
  // Makes an element of the first key of each sequence -infinity, and the queries' factors of it positive: the key has
  // no weight, and its score with a query of zeros is NaN.
  void sinkFirstKeys();
  // Makes the first query of each sequence NaN.
  void poisonFirstQueries();

  // The element type, the sizes, and `packed`.
  ProgramKernel::Pairs fixed() const;
  // Keys, values, the numbers and the table of sequences. The arrays lie on the device as long as the problem.
  Arguments arguments(Device &device);

  DeviceArray array(Device &device, const reference::OwnedTensor &tensor) const;
  // One number for each query and head.
  DeviceArray rows(Device &device, const std::vector<float> &values) const;
  // An array of the same shape and type that no program has written to: all NaN.
  DeviceArray untouched(Device &device, const reference::OwnedTensor &like) const;
  // The elements of such an array, row by row.
  std::vector<double> read(const DeviceArray &array, const reference::OwnedTensor &like) const;
  // The first dimensions of what has a row for each query.
  std::vector<int64_t> queryShape(std::vector<int64_t> further) const;
  std::map<std::string, int64_t> gridSizes() const;

  std::vector<double> gradientOfOut() const;
  const std::vector<reference::Sequence> &sequences() const { return attention.sequences; }

  reference::Attention attention;
  reference::OwnedTensor q, k, v, dOut;

private:
  reference::OwnedTensor draw(std::mt19937_64 &random, int64_t batches, int64_t times, int64_t heads,
                              int64_t columns) const;

  Placing placing;
  std::deque<DeviceArray> onDevice;
};

} // namespace nsa::test
