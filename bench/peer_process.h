// Other implementations of attention, which run in a process of their own: a script (bench/peers) that exchanges JSON
// objects, one in a line, over a socket. The peer process only serves measurements, and no part of the product needs
// it.
// Ownership: ends its process.
// Thread-safety: one thread uses a PeerProcess.
#pragma once

#include "bench/bench_case.h"
#include "bench/contender.h"

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace nsa::bench {

class PeerProcess {
public:
  // The path of the script for torch: beside this program, or in its place in a bundle.
  static std::string defaultScript();
  // Starts `python3 script --device D`. The error says why peers cannot be measured on this machine, and a bench goes
  // on without peers.
  static Result<std::unique_ptr<PeerProcess>> start(const std::string &script, const std::string &device);
  ~PeerProcess();
  PeerProcess(const PeerProcess &) = delete;
  PeerProcess &operator=(const PeerProcess &) = delete;

  // Names and versions of the peer implementations.
  const nlohmann::ordered_json &versions() const { return versionFacts; }

  struct Absent {
    std::string name, reason;
  };
  struct Peers {
    std::vector<std::unique_ptr<Contender>> contenders;
    std::vector<Absent> absent; // implementations that do not serve the shape
  };
  // Makes the tensors of the shape in the peer process, in place of the last shape's tensors, and runs and checks every
  // implementation.
  Result<Peers> prepare(const BenchCase &benchCase, size_t flushBytes);

private:
  friend class PeerContender;
  PeerProcess() = default;
  Result<nlohmann::ordered_json> ask(const nlohmann::json &question);
  Result<nlohmann::ordered_json> readAnswer();

  pid_t process = -1;
  int socket = -1;
  std::string received;
  nlohmann::ordered_json versionFacts;
};

} // namespace nsa::bench
