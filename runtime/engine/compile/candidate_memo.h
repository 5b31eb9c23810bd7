// Keeps the binaries of the candidates that this engine has compiled. The key of a binary is its compile request.
// Candidates do not depend on the lengths, so after one length was tuned, tuning another length compiles no candidate
// again.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/compile/compiler_library.h"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace nsa {

class CandidateMemo {
public:
  // Keeps binaries of at most `mostBytes` in all, and drops the least recently used binaries.
  explicit CandidateMemo(size_t mostBytes = size_t{64} << 20) : mostBytes(mostBytes) {}

  std::shared_ptr<const CompiledKernel> find(const CompileRequest &request); // null: not kept
  void keep(const CompileRequest &request, std::shared_ptr<const CompiledKernel> kernel);

private:
  struct Entry {
    std::string key;
    std::shared_ptr<const CompiledKernel> kernel;
  };
  std::mutex mutex;
  const size_t mostBytes;
  size_t bytes = 0;
  std::list<Entry> entries; // the most recently used entry is first
  std::map<std::string_view, std::list<Entry>::iterator> byKey;
};

} // namespace nsa
