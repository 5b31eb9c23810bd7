// The tensors of a decoding cache in a file: whether they belong together, and what they say of pages and room.
// Ownership: borrows everything. Thread-safety: one thread.
#pragma once

#include "tools/nsa/config_file.h"
#include "tools/nsa/safetensors.h"
#include "tools/support/operator_job.h"

#include <string>

namespace nsa::tools {

// As it stands in files and messages.
inline std::string nameText(TensorName name) { return std::string(tensorName(name)); }

class KvCacheReader {
public:
  // `file` has a cache in pages where it has a block table.
  KvCacheReader(const ConfigFile &config, const SafetensorsFile &file, OperatorInputs &inputs);

  static bool isOfCache(Lead lead);
  // "must be [batch, room, kv_heads, qk_dim]".
  std::string shapeRule(const TensorRule &rule) const;
  // page_size, from the pools that were read.
  Status settlePages(Spec &spec) const;
  // Lengths and block table, and that all agree with each other and with the batch of the new tokens. Sets room, pages
  // and the longest sequence that the maxima allow.
  Status settle(const Spec &spec);

private:
  Status readTable(const std::string &name, size_t rank, const std::string &rule);
  Status checkLead(const Spec &spec, TensorName name, const HostTensor &tensor);

  const ConfigFile &config;
  const SafetensorsFile &file;
  OperatorInputs &inputs;
  const bool isPaged;
  TensorName roomSource = TensorName::kCacheSeqlens, pageSource = TensorName::kBlockTable; // whose tensor said so first
};

} // namespace nsa::tools
