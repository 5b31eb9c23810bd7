#include "tools/nsa/validate_steps.h"

#include "tools/nsa/files/file_io.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>

extern char **environ;

namespace nsa::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char *, 3> kBranches = {"cmp", "sel", "win"};
constexpr int64_t kDecodedTokens = 32;
constexpr const char *kForward = "nsa", *kGradient = "nsa_bwd";
constexpr uint64_t kMostLogBytes = uint64_t{1} << 20;

constexpr const char *kThisProgram = "/proc/self/exe";
constexpr mode_t kMode = 0644;

struct ChildOutcome {
  int exitCode = 0; // 128 + the signal, where a signal ended it
  double seconds = 0;
};

// Runs a verb of this program in its own process, so that a crash ends that process alone, and waits for its end.
// stdout goes into the file `output`, and stderr is appended to the file `log`. The result is an error only when the
// process cannot be started; a verb that fails is no error of this function.
Result<ChildOutcome> runVerb(const std::vector<std::string> &verb, const std::string &output, const std::string &log) {
  std::vector<std::string> words = {"nsa"};
  words.insert(words.end(), verb.begin(), verb.end());
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, kMode);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, kMode);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int error = posix_spawn(&child, kThisProgram, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Status::error(ErrorCode::kIoError, "nsa " + verb.front() + " with its output in " + output +
                                                  " cannot be started: " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return Status::error(ErrorCode::kIoError, std::string("waitpid: ") + std::strerror(errno));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ChildOutcome{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), seconds};
}

std::string configName(const std::string &branch) {
  return branch.empty() ? "config.json" : "config_" + branch + ".json";
}

std::string lastLineOf(const std::string &path) {
  Result<std::string> text = readText(path, kMostLogBytes);
  if (!text)
    return text.status().toString();
  const size_t end = text->find_last_not_of('\n');
  if (end == std::string::npos)
    return "it said nothing";
  const size_t begin = text->rfind('\n', end) + 1; // 0 where there is no line before
  return text->substr(begin, end + 1 - begin);
}

} // namespace

std::vector<ValidateStep> validateSteps(const ValidateChoice &choice) {
  const auto file = [&](const std::string &name) { return choice.file(name); };
  const std::string tokens = std::to_string(choice.tokens);
  auto with = [](std::vector<std::string> words, const std::vector<std::string> &more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  auto option = [](const char *name, const std::string &value) {
    return value.empty() ? std::vector<std::string>() : std::vector<std::string>{name, value};
  };
  const std::vector<std::string> device = option("--device", choice.device), cache = option("--cache", choice.cache);
  const std::vector<std::string> engine = with(with(device, cache), option("--miss", choice.missPolicy));
  auto generate = [&](const std::string &branch, const std::string &input, const char *op = kForward) {
    return std::vector<std::string>{"generate",    "--op",          op,           "--config", file(configName(branch)),
                                    "--structure", "real-locality", "--seqlen-k", tokens,     "--output",
                                    file(input)};
  };
  auto run = [&](const std::string &branch, const std::string &input, const std::string &output,
                 const char *op = kForward) {
    return with({"run", "--op", op, "--config", file(configName(branch)), "--input", file(input), "--output",
                 file(output), "--check", "--all-outputs", "--json"},
                engine);
  };

  auto explain = [&](const char *op) {
    return with({"explain", "--op", op, "--config", file(configName("")), "--seqlen-k", tokens, "--json"}, engine);
  };

  std::vector<ValidateStep> steps;
  steps.push_back({"environment",
                   "What of this machine can be used, and whether versions go together",
                   {with({"doctor", "--json"}, cache)},
                   "environment.json"});
  steps.push_back(
      {"routing", "Which kernel serves each part, from where, and why", {explain(kForward)}, "routing.json"});
  for (const char *branch : kBranches) {
    const std::string name = branch;
    steps.push_back({"branch " + name,
                     "The " + name + " branch by itself against the fp64 reference",
                     {generate(name, "inputs_" + name + ".safetensors"),
                      run(name, "inputs_" + name + ".safetensors", "outputs_" + name + ".safetensors")},
                     "branch_" + name + ".json",
                     {"inputs_" + name + ".safetensors", "outputs_" + name + ".safetensors"}});
  }
  steps.push_back({"inputs",
                   "The tensors of the steps below",
                   {generate("", "inputs.safetensors")},
                   "inputs.txt",
                   {"inputs.safetensors"}});
  steps.push_back(
      {"parity",
       "The whole forward against the fp64 reference, and its last tokens decoded from a cache",
       {with(run("", "inputs.safetensors", "outputs.safetensors"), {"--decode-last", std::to_string(kDecodedTokens)})},
       "parity.json",
       {"outputs.safetensors"},
       "inputs"});
  steps.push_back({"gradient routing",
                   "Which kernel serves each part of the gradient, from where, and why",
                   {explain(kGradient)},
                   "gradient_routing.json"});
  steps.push_back({"gradient",
                   "The gradient of the whole forward against the fp64 reference",
                   {generate("", "inputs_gradient.safetensors", kGradient),
                    run("", "inputs_gradient.safetensors", "outputs_gradient.safetensors", kGradient)},
                   "gradient.json",
                   {"inputs_gradient.safetensors", "outputs_gradient.safetensors"}});
  steps.push_back(
      {"selection",
       "What each query selected, as ranges of tokens",
       {with({"dump-selection", "--op", "nsa", "--config", file(configName("")), "--input", file("inputs.safetensors")},
             engine)},
       "selection.jsonl",
       {},
       "inputs"});
  steps.push_back(
      {"decode",
       "What a step of decoding costs with kernels that are made for it, whatever is stored, and what it reads",
       {with({"bench", "decode", "--config", file(configName("")), "--samples", std::to_string(4 * choice.samples),
              "--warm-ups", "2", "--results", file("decode"), "--json"},
             device)},
       "decode.json",
       {"decode/decode.csv", "decode/decode.json"}});
  steps.push_back({"decode summary",
                   "The same as shares of the branches",
                   {{"bench", "summarize", file("decode/decode.csv")}},
                   "decode_summary.txt",
                   {},
                   "decode"});
  steps.push_back({"thresholds",
                   "From which length on one algorithm pays against another, with kernels that are made for it",
                   {with({"bench", "thresholds", "--config", file(configName("")), "--samples",
                          std::to_string(choice.samples), "--results", file("thresholds"), "--json"},
                         device)},
                   "thresholds.json",
                   {"thresholds/thresholds.csv", "thresholds/thresholds.json"}});
  return steps;
}

Status runSteps(const ValidateChoice &choice, std::vector<ValidateStep> &steps,
                const std::function<void(const ValidateStep &, bool done)> &told) {
  const auto file = [&](const std::string &name) { return choice.file(name); };
  std::error_code error;
  fs::create_directories(choice.folder, error);
  if (error)
    return Status::error(ErrorCode::kIoError, "folder " + choice.folder + " cannot be made: " + error.message());
  // Results of an earlier run must not pass for results of this run.
  std::vector<std::string> stale = {kValidatePage, kValidateSummary};
  for (const ValidateStep &step : steps) {
    stale.insert(stale.end(), {step.output, step.output + ".log"});
    stale.insert(stale.end(), step.makes.begin(), step.makes.end());
  }
  for (const std::string &name : stale)
    if (fs::remove(file(name), error); error)
      return Status::error(ErrorCode::kIoError,
                           file(name) + " of an earlier run cannot be removed: " + error.message());
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(choice.config);
  NSA_RETURN_IF_ERROR(writeText(file(configName("")), config.dump(2) + "\n"));
  for (const char *branch : kBranches) {
    config["branches"] = nlohmann::ordered_json::array({branch});
    NSA_RETURN_IF_ERROR(writeText(file(configName(branch)), config.dump(2) + "\n"));
  }
  for (ValidateStep &step : steps) {
    told(step, false);
    const std::string log = file(step.output + ".log"), output = file(step.output);
    const bool lacks =
        std::ranges::any_of(steps, [&](const ValidateStep &other) { return other.name == step.needs && !other.ok; });
    if (lacks) {
      step.trouble = "not run: it needs what `" + step.needs + "` makes";
      told(step, true);
      continue;
    }
    step.ok = true;
    for (size_t i = 0; i < step.verbs.size() && step.ok; ++i) {
      const bool isLast = i + 1 == step.verbs.size();
      Result<ChildOutcome> outcome = runVerb(step.verbs[i], isLast ? output : log + ".stdout", log);
      if (!isLast)
        fs::remove(log + ".stdout", error);
      if (!outcome)
        return outcome.status();
      step.seconds += outcome->seconds;
      step.ok = outcome->exitCode == 0;
      if (!step.ok)
        step.trouble = "nsa " + step.verbs[i].front() + " ended with " + std::to_string(outcome->exitCode) + ": " +
                       lastLineOf(log);
    }
    if (fs::is_empty(log, error))
      fs::remove(log, error);
    told(step, true);
  }
  return Status::ok();
}

} // namespace nsa::tools
