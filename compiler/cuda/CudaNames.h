// Names of variables in emitted code: the template's where they are free, numbered where they are not.
// A name is unique among those visible where it is declared, so nothing is shadowed by accident.
// Owned by one emission; not shared between threads.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace nsa::cuda {

class CudaNames {
public:
  CudaNames();

  // Names declared while it stands are forgotten with it, as in a C++ block.
  class Scope {
  public:
    explicit Scope(CudaNames &names) : names(names) { names.scopes.emplace_back(); }
    ~Scope() { names.scopes.pop_back(); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    CudaNames &names;
  };

  // `wanted`, or wanted_2, wanted_3, ... if something visible has the name.
  std::string declare(llvm::StringRef wanted);
  // By the value's name in the template; `otherwise` if it has none.
  std::string declare(mlir::Value value, llvm::StringRef otherwise);

private:
  bool isTaken(llvm::StringRef name) const;

  llvm::SmallVector<llvm::StringSet<>> scopes;
};

} // namespace nsa::cuda
