// Compression (docs/specification.md 3): phi over overlapping blocks of raw tokens, in fp64, rounded once to the io
// type. Everything that reads compressed rows reads the rounded ones. Ownership: views borrow. Thread-safety: pure
// functions; `compress` starts its own threads.
#pragma once

#include "tools/reference/sequence.h"
#include "tools/reference/tensor_view.h"

#include <set>
#include <span>
#include <vector>

namespace nsa::reference {

// What phi's kind reads, of K or of V; pe and biases may be left out. D is the head size.
struct Phi {
  TensorView pe{};       // [l, D]: (0, i, 0, column)
  TensorView w{}, b{};   // linear: [l, D, D]: (0, i, row, column), and [D]: (0, 0, 0, column)
  TensorView w1{}, b1{}; // mlp: [l, D, mlp_hidden] and [mlp_hidden]
  TensorView w2{}, b2{}; // mlp: [mlp_hidden, D]: (0, hidden, 0, column), and [D]
};

// What each weight of phi gets from the blocks that were differentiated. Weights that phi's kind lacks are empty; an
// embedding and a bias that were left out have a gradient all the same.
struct PhiGradient {
  std::vector<double> pe;     // [l, D]
  std::vector<double> w, b;   // of the first product, linear or mlp: [l, D, columns] and [columns]
  std::vector<double> w2, b2; // mlp: [mlp_hidden, D] and [D]
};

// Phi with its weights read once into fp64: a function of one block.
class PhiFunction {
public:
  PhiFunction(const Spec &spec, const Phi &phi, int64_t columns);
  // tokens [cmp_block, columns] to one row of `columns`, not yet rounded.
  std::vector<double> operator()(std::span<const double> tokens) const;

  PhiGradient zeroGradient() const;
  // The gradients of the tokens of a block, of whose row the gradient is `dRow`. Adds the gradients of the weights to
  // `sums`.
  std::vector<double> differentiate(std::span<const double> tokens, std::span<const double> dRow,
                                    PhiGradient &sums) const;
  // Adds to `hidden` the hidden values of the block that lie so near to the kink of relu that their sums in fp32 may
  // lie on the other side. The gradient of such a block is not determined by its inputs.
  void findNearKink(std::span<const double> tokens, std::set<int64_t> &hidden) const;

private:
  struct Matrix {
    int64_t rows = 0, columns = 0;
    std::vector<double> weights, bias; // [rows, columns], [columns]
    std::vector<double> multiply(std::span<const double> row) const;
    // Returns the gradient of `row`, and adds the gradients of the matrix.
    std::vector<double> differentiate(std::span<const double> row, std::span<const double> dResult,
                                      std::vector<double> &dWeights, std::vector<double> &dBias) const;
  };
  // [outer * inner, columns] from (0, outer, inner, column).
  static Matrix readMatrix(const TensorView &weights, const TensorView &bias, int64_t outer, int64_t inner,
                           int64_t columns);

  std::vector<double> embedded(std::span<const double> tokens) const; // with pe

  CmpKind kind;
  Activation activation;
  int64_t block, columns;
  std::vector<double> pe; // [cmp_block, columns]
  Matrix first, second;   // linear has only the first
};

struct Compression {
  Spec spec{};
  TensorView k{}, v{}; // raw; the one that is not given is not compressed
  Phi phiK{}, phiV{};
  std::vector<Sequence> sequences{}; // whole ones: what their keys compress to, whatever queries they have
};

// Rows stand where the sequences say: (keyBatch, blockBegin + c).
struct Compressed {
  OwnedTensor k, v;
};

// threads = 0: one per core.
Compressed compress(const Compression &compression, int threads = 0);

} // namespace nsa::reference
