#include "runtime/engine/compile/candidate_memo.h"

#include "runtime/base/manifest.h"

namespace nsa {

namespace {

// Everything of a request that an engine does not keep fixed.
std::string keyOf(const CompileRequest &request) {
  return request.op + '|' + request.templateName + '|' + formatValues(request.fixed) + '|' +
         formatValues(request.config);
}

} // namespace

std::shared_ptr<const CompiledKernel> CandidateMemo::find(const CompileRequest &request) {
  std::lock_guard lock(mutex);
  auto found = byKey.find(keyOf(request));
  if (found == byKey.end())
    return nullptr;
  entries.splice(entries.begin(), entries, found->second);
  return entries.front().kernel;
}

void CandidateMemo::keep(const CompileRequest &request, std::shared_ptr<const CompiledKernel> kernel) {
  std::string key = keyOf(request);
  std::lock_guard lock(mutex);
  if (byKey.contains(key))
    return; // another thread has made the same meanwhile
  bytes += kernel->binary.size();
  entries.push_front({std::move(key), std::move(kernel)});
  byKey.emplace(entries.front().key, entries.begin());
  while (bytes > mostBytes && entries.size() > 1) {
    const Entry &last = entries.back();
    bytes -= last.kernel->binary.size();
    byKey.erase(last.key);
    entries.pop_back();
  }
}

} // namespace nsa
