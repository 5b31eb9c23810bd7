// The loop over queries, on several threads.
// Thread-safety: any thread; `work` is called from several at once. If `work` throws, no further calls begin, and the
// loop throws the first exception again when all its threads have ended.
#pragma once

#include "tools/reference/sequence.h"

#include <cstdint>
#include <functional>
#include <span>

namespace nsa::reference {

// Calls work(i) once for each i in [0, count). threads = 0: one per core; none is started for less than `least` calls.
void forEachIndex(int64_t count, int threads, int64_t least, const std::function<void(int64_t)> &work);

// Calls work(sequence, query) once for each query of each sequence.
void forEachQuery(std::span<const Sequence> sequences, int threads,
                  const std::function<void(const Sequence &, int64_t)> &work);

} // namespace nsa::reference
