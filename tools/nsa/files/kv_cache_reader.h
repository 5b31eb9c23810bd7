// Reads the tensors of a decoding cache from a file. The reader checks that the tensors of a cache agree with each
// other, and finds out whether the cache is in pages and for how many tokens it has memory.
// Ownership: a KvCacheReader borrows all its arguments.
// Thread-safety: only one thread at a time may use a KvCacheReader.
#pragma once

#include "runtime/json/config_file.h"
#include "tools/nsa/files/safetensors.h"
#include "tools/support/operator_job.h"

#include <string>

namespace nsa::tools {

// A tensor's name in files and messages.
inline std::string nameText(TensorName name) { return std::string(tensorName(name)); }

// Fails unless dimension `axis` of a tensor is `extent`. The error says where `extent` is from: `source`.
Status checkExtent(TensorName name, const HostTensor &tensor, size_t axis, int64_t extent, const std::string &source);
// Reads a tensor, which must be of int32.
Result<HostTensor> readIntegers(const SafetensorsFile &file, const std::string &name);

class KvCacheReader {
public:
  // A cache is stored in pages if `file` contains a block table.
  KvCacheReader(const ConfigFile &config, const SafetensorsFile &file, OperatorInputs &inputs);

  // The rule for a tensor's shape, as an error message shows it: "must be [batch, room, kv_heads, qk_dim]".
  std::string shapeRule(const TensorRule &rule) const;
  // Sets the spec's page_size from the shape of the cache tensors.
  Status settlePages(Spec &spec) const;
  // Reads the cache's lengths and block table, and checks that all tensors agree with each other and with the batch of
  // the new tokens. Sets the number of tokens that a sequence has memory for in the cache, as an extent of the inputs
  // and as `maxima.seqlenK`. If the cache has pages, `settle` also sets the number of pages.
  Status settle(const Spec &spec);

private:
  Status readTable(const std::string &name, size_t rank, const std::string &rule);
  Status checkLead(const Spec &spec, TensorName name, const HostTensor &tensor);

  const ConfigFile &config;
  const SafetensorsFile &file;
  OperatorInputs &inputs;
  const bool isPaged;
  TensorName roomSource = TensorName::kCacheSeqlens,
             pageSource = TensorName::kBlockTable; // the tensors that first gave room and pages
};

} // namespace nsa::tools
