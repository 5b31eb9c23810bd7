// A program of one's own on the executable's device (kTestDevice), through the C ABI, on tensors as the interpreter of
// the tile language has them.
// Thread-safety: one thread at a time.
#pragma once

#include "tests/harness/tile/interpreted.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"

#include <memory>
#include <set>
#include <string>

namespace nsa::test {

// The device, and an engine without stored kernels.
class ProgramDevice {
public:
  static Result<std::unique_ptr<ProgramDevice>> open();

  // Compiles the program, runs it on copies of the call's tensors, and returns the tensors `outputs` as it left them.
  // Behind each row lie `gap` elements that are not the row's. Fails where anything but an element was written.
  Result<std::map<std::string, tile::TileTensor>> run(const std::string &text, const tile::TileCall &call,
                                                      const std::set<std::string> &outputs, int64_t gap);
  bool isCuda() const { return device->isCuda(); }

private:
  ProgramDevice() = default;

  std::unique_ptr<tools::Accelerator> device;
  tools::EngineHandle engine;
};

} // namespace nsa::test
