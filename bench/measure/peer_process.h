// Runs other implementations of attention in a process of their own: a script (bench/peers) that exchanges JSON
// objects, one in a line, over a socket. The peer process is used only for measurements, and no part of the library
// needs it.
// Ownership: ends its process.
// Thread-safety: only one thread at a time may use a PeerProcess.
#pragma once

#include "bench/measure/bench_case.h"
#include "bench/measure/contender.h"

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace nsa::bench {

class PeerProcess {
public:
  // The path of a script of bench/peers: beside this program in a build tree, or under libexec/ in a bundle.
  static std::string shippedScript(const char *name);
  // Starts `python3 script --device D`. The error says why the peer implementations cannot be measured on this machine;
  // a bench then measures only this library.
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
  // Replaces the tensors in the peer process by tensors of the given shape, and runs and checks every implementation on
  // them. The peer process flushes its L2 by a buffer as large as `flush`; nullptr: on the CPU.
  Result<Peers> prepare(const BenchCase &benchCase, const tools::Buffer *flush);
  // The same for the program of a question. `question` has the fields that bench/peers/torch_programs.py documents.
  Result<Peers> prepare(nlohmann::json question, const tools::Buffer *flush);

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
