// The rows of a pack or a database as they were at one moment, without the kernels' binaries. For a pack, a PackIndex
// holds the rows that the pack had when its digest was computed, except the evidence. For a pinned database, a
// PackIndex holds the rows that the database had when it was opened. Lookups use the PackIndex and not the file,
// because another process may later replace rows of the file together with their row digests. Rows that were replaced
// with correct digests pass the check for damage, although these rows were not signed or pinned.
// Thread-safety: distinct objects of PackIndex may be used from distinct threads.
#pragma once

#include "cache/rows/rows.h"
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

  // Lookups return null if the file does not have the row.
  const Kernel *kernel(const std::string &content) const;
  const StoredChoice *choice(const std::string &problem, const std::string &device) const;
  const StoredRoute *route(const std::string &family, const std::string &device, const std::string &name) const;
  // Like listChoiceSummaries (cache/rows/choice_rows.h).
  void summarizeChoices(const std::string &op, int layer, std::vector<ChoiceSummary> &summaries) const;
  // All routes in ascending order of family, device and name.
  std::vector<StoredRoute> listRoutes() const;

private:
  std::map<std::string, Kernel> kernels;
  std::map<std::pair<std::string, std::string>, StoredChoice> choices;
  std::map<std::tuple<std::string, std::string, std::string>, StoredRoute> routes;
};

} // namespace nsa
