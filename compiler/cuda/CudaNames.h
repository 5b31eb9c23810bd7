// Chooses the names of variables in emitted CUDA code. A variable has the name of its value in the template; if that
// name is taken, a number is appended. A name is unique among the names that are visible at its declaration, so no
// variable shadows another variable.
// Thread-safety: a CudaNames object is used for one kernel, by one thread.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace nsa::cuda {

class CudaNames {
public:
  CudaNames();

  // A Scope stands for a block of C++ code. When a Scope is destroyed, the names that were declared during its lifetime
  // become free.
  class Scope {
  public:
    explicit Scope(CudaNames &names) : names(names) { names.scopes.emplace_back(); }
    ~Scope() { names.scopes.pop_back(); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    CudaNames &names;
  };

  // Returns the name `wanted`; if that name is visible already, returns the first free name of wanted_2, wanted_3 and
  // so on.
  std::string declare(llvm::StringRef wanted);
  // Declares a name for a value: the value's name in the template, or `otherwise` if the value has no name.
  std::string declare(mlir::Value value, llvm::StringRef otherwise);

private:
  bool isTaken(llvm::StringRef name) const;

  llvm::SmallVector<llvm::StringSet<>> scopes;
};

} // namespace nsa::cuda
