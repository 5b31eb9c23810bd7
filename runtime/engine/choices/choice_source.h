// Where an engine takes its stored choices and thresholds from: a database with its packs (kernel_cache.h), or one
// pinned file (pinned_table.h).
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "cache/rows/rows.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa {

class ChoiceSource {
public:
  struct Hit {
    StoredChoice choice;
    StoredKernel kernel;
    int layer = 0; // the layer of the choice, as in ChoiceSummary: 0 is the database, and the packs follow from 1 on
    int kernelLayer = 0; // the layer that has the kernel
  };
  virtual ~ChoiceSource() = default;

  // The functions that look something up change no file and note no use.

  // Returns the choice for this problem and device with its kernel, or nullopt if no intact choice is stored.
  virtual std::optional<Hit> find(const std::string &problem, const std::string &device) = 0;
  // Lists the choices for an operator's problems on all devices, without the measurements and without the binaries. The
  // layers are in ascending order. The choices of a layer are in ascending order of problem and device.
  virtual std::vector<ChoiceSummary> choicesOf(const std::string &op) = 0;
  // Returns the measured threshold with this name, or nullopt if there is none. A threshold may also have the value
  // "never" (StoredRoute::kNever).
  virtual std::optional<StoredRoute> findRoute(const std::string &family, const std::string &device,
                                               const std::string &name) = 0;

  // Prepares lookups for plans: `open` may rename a damaged database.
  virtual void open() {}
  // Notes that a hit serves a plan: with its kernel, or with the configuration of it, which was compiled again.
  virtual void noteUse(const Hit &) {}

  // Returns true if new choices may be added. If takesChoices returns false, the choices stay as they are, whatever
  // other engines and processes do.
  virtual bool takesChoices() const = 0;
  virtual std::string layerPath(int layer) = 0;
  // Returns the files in which choices are looked up: "/kernels.db and the pack /a.nsapack".
  virtual std::string places() = 0;
  // Returns "" if all files can be used, or else the reason why one cannot be used.
  virtual std::string trouble() const = 0;
};

} // namespace nsa
