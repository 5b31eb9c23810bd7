// Names of variables in emitted code. A variable keeps the name of its value in the template if that name is free, else
// a number is added to the name. A name is unique among the names that are visible at its declaration, so no variable
// shadows another variable.
// Thread-safety: a CudaNames belongs to one emission.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace nsa::cuda {

class CudaNames {
public:
  CudaNames();

  // A C++ block: names that are declared while a Scope lives are free again when it ends.
  class Scope {
  public:
    explicit Scope(CudaNames &names) : names(names) { names.scopes.emplace_back(); }
    ~Scope() { names.scopes.pop_back(); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    CudaNames &names;
  };

  // Returns `wanted`, or wanted_2, wanted_3 and so on if a visible name is equal.
  std::string declare(llvm::StringRef wanted);
  // Declares a name for a value: the value's name in the template, or `otherwise` if the value has no name.
  std::string declare(mlir::Value value, llvm::StringRef otherwise);

private:
  bool isTaken(llvm::StringRef name) const;

  llvm::SmallVector<llvm::StringSet<>> scopes;
};

} // namespace nsa::cuda
