// Wrong templates, each of which a test must notice. The table says of each what is changed, where, and which tests of
// the ordinary suites have to go red for it. Thread-safety: constants.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::mutation {

struct Mutant {
  std::string_view name;
  std::string_view operators; // which compute something wrong
  std::string_view file;      // below templates/
  std::string_view before;    // stands there once
  std::string_view after;
  std::string_view tests; // filters of GoogleTest, with spaces between them; of each, a test must fail
  // Why no test can tell the mutant from the original; empty: one must.
  std::string_view equivalent = {};
  // The host refuses the call on the CPU, or the code is compiled for GPUs alone.
  bool isSeenOnGpuAlone = false;
  // The change may end the tests' program by a signal, or keep it from ending. Another mutant that does so fails the
  // run: a limit of time alone does not tell a hang from a slow machine.
  bool mayCrash = false, mayHang = false;

  // Device code runs on a GPU alone, tile programs on every device.
  bool isDeviceCode() const { return !file.starts_with("tile/"); }
  bool needsGpu() const { return isDeviceCode() || isSeenOnGpuAlone; }
  std::vector<std::string> filters() const;
  // The program, beside this one, that has the tests for a device, "cpu" or "gpu".
  std::string program(std::string_view device) const {
    if (file.find("/decode_") != std::string_view::npos)
      return "nsa_decode_step_test";
    const bool isForHopper = file.find("/sm90/") != std::string_view::npos;
    return "nsa_" + (isForHopper ? "hopper" : std::string(device)) + "_attention_test";
  }
};

// Of templates/tile: attention, compression, selection, combination and what they share (templates/tile/library).
std::span<const Mutant> forwardMutants();
// Of templates/tile: what decode consists of.
std::span<const Mutant> decodeMutants();
// Of templates/tile: gradients of attention and gates.
std::span<const Mutant> gradientMutants();
// Of templates/tile: gradients of selected attention, and the inverse of lists of blocks.
std::span<const Mutant> selectedGradientMutants();
// Of templates/tile: gradients of compression.
std::span<const Mutant> compressionGradientMutants();
// Of templates/device and templates/cuda.
std::span<const Mutant> deviceMutants();
// Of the kernel decode_step.
std::span<const Mutant> stepMutants();

std::vector<Mutant> allMutants();

} // namespace nsa::mutation
