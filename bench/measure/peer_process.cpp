#include "bench/measure/peer_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace nsa::bench {
namespace {

// Importing the libraries and compiling their kernels take tens of seconds on a cold disk.
constexpr int kTimeoutMs = 180'000;
constexpr int kQuitMs = 5'000;

std::string textOf(const nlohmann::ordered_json &object, const char *field, const std::string &otherwise) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

Status peerError(const std::string &message) { return Status::error(ErrorCode::kUnavailable, message); }

} // namespace

class PeerContender final : public Contender {
public:
  PeerContender(PeerProcess &process, std::string name, nlohmann::ordered_json facts)
      : process(process), contenderName(std::move(name)), contenderFacts(std::move(facts)) {}
  const std::string &name() const override { return contenderName; }
  nlohmann::ordered_json facts() const override { return contenderFacts; }
  Result<double> sample() override {
    NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json answer, process.ask({{"command", "sample"}, {"name", contenderName}}));
    if (!answer.contains("milliseconds") || !answer["milliseconds"].is_number())
      return peerError(textOf(answer, "trouble", "no time in " + answer.dump()));
    return answer["milliseconds"].get<double>();
  }

private:
  PeerProcess &process;
  std::string contenderName;
  nlohmann::ordered_json contenderFacts;
};

std::string PeerProcess::shippedScript(const char *name) {
  const std::filesystem::path script = std::filesystem::path("peers") / name;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path bundled = folder.parent_path() / "libexec/nsa" / script;
  return (std::filesystem::exists(bundled, error) ? bundled : folder / script).string();
}

Result<std::unique_ptr<PeerProcess>> PeerProcess::start(const std::string &script, const std::string &device) {
  if (access(script.c_str(), R_OK) != 0)
    return peerError(script + ": " + std::strerror(errno));
  // One socket is the child's input and output: unlike a pipe it tells a dead reader by an error, not by a signal.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return peerError(std::string("socketpair: ") + std::strerror(errno));
  std::unique_ptr<PeerProcess> peer(new PeerProcess);
  peer->socket = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string arguments[] = {"python3", script, "--device", device};
  char *argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(), nullptr};
  const int error = posix_spawnp(&peer->process, "python3", &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    peer->process = -1;
    return peerError(std::string("python3 cannot be started: ") + std::strerror(error));
  }
  NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json greeting, peer->readAnswer());
  if (!greeting.contains("versions"))
    return peerError(textOf(greeting, "unavailable", "unexpected greeting " + greeting.dump()));
  peer->versionFacts = greeting["versions"];
  return peer;
}

PeerProcess::~PeerProcess() {
  if (socket >= 0)
    close(socket); // the end of its input is the script's sign to leave
  if (process < 0)
    return;
  for (int waited = 0; waited < kQuitMs; waited += 10) {
    if (waitpid(process, nullptr, WNOHANG) != 0)
      return;
    usleep(10'000);
  }
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

Result<nlohmann::ordered_json> PeerProcess::readAnswer() {
  for (;;) {
    if (const size_t end = received.find('\n'); end != std::string::npos) {
      nlohmann::ordered_json answer =
          nlohmann::ordered_json::parse(received.substr(0, end), nullptr, /*allow_exceptions=*/false);
      if (!answer.is_object())
        return peerError("the peers' script answered " + received.substr(0, end));
      received.erase(0, end + 1);
      return answer;
    }
    pollfd descriptor{socket, POLLIN, 0};
    const int ready = poll(&descriptor, 1, kTimeoutMs);
    if (ready == 0)
      return peerError("the peers' script has not answered for " + std::to_string(kTimeoutMs / 1000) + " s");
    char buffer[4096];
    const ssize_t count = ready < 0 ? -1 : read(socket, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return peerError("the peers' script has ended");
    received.append(buffer, static_cast<size_t>(count));
  }
}

Result<nlohmann::ordered_json> PeerProcess::ask(const nlohmann::json &question) {
  const std::string line = question.dump() + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = send(socket, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return peerError(std::string("the peers' script cannot be reached: ") + std::strerror(errno));
    sent += static_cast<size_t>(count);
  }
  return readAnswer();
}

Result<PeerProcess::Peers> PeerProcess::prepare(const BenchCase &benchCase, const tools::Buffer *flush) {
  nlohmann::json question = caseFields(benchCase);
  question["checked_queries"] = checkedQueries(benchCase.spec, benchCase.maxima);
  return prepare(std::move(question), flush);
}

Result<PeerProcess::Peers> PeerProcess::prepare(nlohmann::json question, const tools::Buffer *flush) {
  question["command"] = "prepare";
  question["flush_bytes"] = flush ? flush->size() : 0;
  NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json answer, ask(question));
  if (!answer.contains("implementations") || !answer["implementations"].is_array())
    return peerError(textOf(answer, "trouble", "unexpected answer " + answer.dump()));
  Peers peers;
  for (nlohmann::ordered_json &entry : answer["implementations"]) {
    const std::string name = textOf(entry, "name", "");
    if (entry.contains("trouble")) {
      peers.absent.push_back({name, textOf(entry, "trouble", "")});
      continue;
    }
    entry.erase("name");
    peers.contenders.push_back(std::make_unique<PeerContender>(*this, name, std::move(entry)));
  }
  return peers;
}

} // namespace nsa::bench
