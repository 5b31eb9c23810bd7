// Other implementations, in a process of their own beside ours: a script (bench/peers) that speaks one JSON object a
// line over a socket. It is measurement only; nothing of the product needs it.
// Ownership: ends its process. Thread-safety: one thread.
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
  // torch's script: beside this program, or where a bundle has it.
  static std::string defaultScript();
  // Starts `python3 script --device D`. An error says why peers cannot be measured here; that is nobody's fault.
  static Result<std::unique_ptr<PeerProcess>> start(const std::string &script, const std::string &device);
  ~PeerProcess();
  PeerProcess(const PeerProcess &) = delete;
  PeerProcess &operator=(const PeerProcess &) = delete;

  // Names and versions of what is measured.
  const nlohmann::ordered_json &versions() const { return versionFacts; }

  struct Absent {
    std::string name, reason;
  };
  struct Peers {
    std::vector<std::unique_ptr<Contender>> contenders;
    std::vector<Absent> absent; // does not serve the shape
  };
  // Readies the shape's tensors there, in place of those of the shape before, and runs and checks every implementation.
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
