// The rows of a file as they were at one moment, but for binaries. Of a pack that is when its digest was computed, and
// without evidence; of a pinned database when it was opened. Lookups are answered from here: the file may be rewritten
// in its place later, with row digests that agree, and what was signed or pinned would not be what serves.
// Thread-safety: distinct objects may be used from distinct threads.
#pragma once

#include "cache/rows.h"
#include "runtime/base/digest.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nsa {

class PackIndex {
public:
  struct Kernel {
    std::string templateName, target, config;
    Digest::Bytes digest{}; // over content, manifest and binary
  };

  void addKernel(std::string content, Kernel kernel);
  void addChoice(StoredChoice choice);
  void addRoute(StoredRoute route);

  // Null: not there.
  const Kernel *kernel(const std::string &content) const;
  const StoredChoice *choice(const std::string &problem, const std::string &device) const;
  const StoredRoute *route(const std::string &family, const std::string &device, const std::string &name) const;
  // As listChoiceSummaries (cache/choice_rows.h).
  void summarizeChoices(const std::string &op, int layer, std::vector<ChoiceSummary> &summaries) const;
  // Ascending by family, device and name.
  std::vector<StoredRoute> listRoutes() const;

private:
  std::map<std::string, Kernel> kernels;
  std::map<std::pair<std::string, std::string>, StoredChoice> choices;
  std::map<std::tuple<std::string, std::string, std::string>, StoredRoute> routes;
};

} // namespace nsa
