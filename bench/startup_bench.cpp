// nsa_bench_startup: from the start of a fresh process to its first result, with an empty cache, with a filled one, and
// from packs alone without a compiler, beside a process that does nothing and one that only opens a CUDA context. Each
// process is this program in another role.
#include "bench/measure/bench_program.h"
#include "bench/measure/bench_report.h"
#include "bench/measure/timing.h"
#include "cache/pack_writer.h"
#include "runtime/base/device_name.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/driver.h"
#include "tools/support/operator_job.h"
#include "tools/support/scratch_folder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace nsa::bench {
namespace {

constexpr const char *kNoCompiler = "absent.so"; // which no loader finds: nothing may ask for it

struct Flags : CommonFlags {
  std::string role, cache, packs = "none"; // in a role: of the engine
  std::vector<std::string> more;           // packs to open beside the one that serves
  int runs = 10;
};

// The heads of the paper on a GPU; few tokens and all of them zero, so that no time goes into the arithmetic or the
// drawing.
tools::OperatorInputs firstInputs(bool cuda) {
  Spec spec;
  spec.queryHeads = cuda ? 64 : 8;
  spec.kvHeads = cuda ? 4 : 1;
  spec.qkDim = spec.vDim = cuda ? 128 : 64;
  tools::OperatorInputs inputs = tools::layOut(spec, {.q = {64}, .k = {64}});
  for (const TensorName name : {TensorName::kQ, TensorName::kK, TensorName::kV})
    inputs.tensors[name] = tools::HostTensor::make(spec.dtype, tools::shapeOf(spec, name, inputs.extents));
  return inputs;
}

// What a process prints: when it came to which point, and where its kernel was from.
struct Milestones {
  double begun = 0, engine = 0, plan = 0, result = 0;
  std::string source = "none";

  void print() const { std::printf("%.6f %.6f %.6f %.6f %s\n", begun, engine, plan, result, source.c_str()); }
};

Status openContextOnly(const std::string &device, Milestones &times) {
  NSA_ASSIGN_OR_RETURN(const std::optional<int> ordinal, gpuOrdinal(device));
  NSA_ASSIGN_OR_RETURN(const cuda::Driver *driver, cuda::Driver::get());
  cuda::DeviceId id = 0;
  NSA_CUDA_CALL(*driver, deviceGet, (&id, ordinal.value_or(0)));
  cuda::PrimaryContext context(*driver, id);
  NSA_RETURN_IF_ERROR(context.retain());
  times.engine = times.plan = times.result = wallMs();
  return Status::ok();
}

Status computeFirstResult(const Flags &flags, Milestones &times) {
  const tools::OperatorInputs inputs = firstInputs(flags.device != "cpu");
  const bool fromPacks = flags.role == "packs";
  tools::EngineSettings settings = flags.engineSettings(fromPacks ? NSA_MISS_FAIL : NSA_MISS_DEFAULT, flags.cache);
  settings.cachePacks = flags.packs;
  if (fromPacks)
    settings.compilerPath = kNoCompiler;
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(settings));
  times.engine = wallMs();
  NSA_ASSIGN_OR_RETURN(tools::PlanHandle plan, tools::createPlan(engine.get(), inputs.spec, inputs.maxima));
  times.plan = wallMs();
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<tools::Accelerator> accelerator, tools::Accelerator::open(flags.device));
  NSA_ASSIGN_OR_RETURN(tools::RunResult result,
                       tools::runOnce(*accelerator, plan.get(), inputs, tools::requiredOutputs(inputs.spec.op)));
  times.result = wallMs();
  times.source = tools::describePlan(plan.get()).value("source", "");
  // Zero values give a zero result; the output was poisoned.
  const bool right = std::ranges::all_of(result.outputs.at(TensorName::kOut).bytes,
                                         [](const std::byte byte) { return byte == std::byte(0); });
  return right ? Status::ok()
               : Status::error(ErrorCode::kInternal, "the first result is wrong, so its time says nothing");
}

Status playRole(const Flags &flags) {
  Milestones times;
  times.begun = times.engine = times.plan = times.result = wallMs();
  if (flags.role == "context")
    NSA_RETURN_IF_ERROR(openContextOnly(flags.device, times));
  if (flags.role == "result" || flags.role == "packs")
    NSA_RETURN_IF_ERROR(computeFirstResult(flags, times));
  times.print();
  return Status::ok();
}

// Starts this program in a role and gives its milestones, counted from the start.
Result<Milestones> startProcess(const Flags &flags, const std::string &role, const std::string &cache,
                                const std::string &packs) {
  std::vector<std::string> words = {"/proc/self/exe", "--role", role,      "--device", flags.device,
                                    "--cache",        cache,    "--packs", packs};
  if (!flags.compiler.empty())
    words.insert(words.end(), {"--compiler", flags.compiler});
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0)
    return Status::error(ErrorCode::kIoError, "no pipe can be made");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const double start = wallMs();
  const int failed = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 256> piece;
  for (ssize_t bytes; (bytes = read(ends[0], piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<size_t>(bytes));
  close(ends[0]);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Status::error(ErrorCode::kInternal, "the process in the role '" + role + "' failed");
  Milestones times;
  std::istringstream printed(text);
  if (!(printed >> times.begun >> times.engine >> times.plan >> times.result >> times.source))
    return Status::error(ErrorCode::kInternal, "the process in the role '" + role + "' printed: " + text);
  for (double *time : {&times.begun, &times.engine, &times.plan, &times.result})
    *time -= start;
  return times;
}

struct Measure {
  std::string name, role;
  bool coldCache = false, fromPacks = false;
  std::string expectedSource = "none";
  std::vector<Milestones> samples = {};

  double medianOf(double Milestones::*time) const {
    std::vector<double> values;
    for (const Milestones &sample : samples)
      values.push_back(sample.*time);
    return median(values);
  }
};

// What the warm cache holds as a pack, under the others that were named, as an engine is told of packs.
Result<std::string> packsOf(const Flags &flags, const std::string &cache, const std::string &path) {
  NSA_ASSIGN_OR_RETURN(CacheFile file, CacheFile::open(cache));
  NSA_ASSIGN_OR_RETURN(PackReport pack, writePack(file, path, {.source = nsa_source_id()}));
  std::string packs = path;
  for (const std::string &each : flags.more)
    packs += ":" + each;
  return packs;
}

Status run(const Flags &flags) {
  const bool cuda = flags.device != "cpu";
  NSA_ASSIGN_OR_RETURN(tools::ScratchFolder folder, tools::ScratchFolder::make());
  std::vector<Measure> measures = {{.name = "bare process", .role = "nothing"}};
  if (cuda)
    measures.push_back({.name = "bare CUDA context", .role = "context"});
  measures.push_back(
      {.name = "first result, cold cache", .role = "result", .coldCache = true, .expectedSource = "compiled"});
  measures.push_back({.name = "first result, warm cache", .role = "result", .expectedSource = "database"});
  measures.push_back(
      {.name = "first result, packs alone", .role = "packs", .fromPacks = true, .expectedSource = "pack"});

  // In turns, so that all see the same machine. The first turn brings the files into memory and fills the warm cache,
  // of which the pack is made.
  std::string packs;
  for (int turn = 0; turn <= (flags.quick ? 1 : flags.runs); ++turn)
    for (Measure &measure : measures) {
      if (measure.fromPacks && packs.empty()) {
        NSA_ASSIGN_OR_RETURN(packs, packsOf(flags, folder.file("warm.db"), folder.file("warm.nsapack")));
      }
      const bool cold = measure.coldCache && turn > 0;
      const std::string cache = folder.file(cold ? "cold" + std::to_string(turn) + ".db" : "warm.db");
      NSA_ASSIGN_OR_RETURN(Milestones times, startProcess(flags, measure.role, measure.fromPacks ? ":memory:" : cache,
                                                          measure.fromPacks ? packs : "none"));
      if (turn == 0)
        continue;
      if (times.source != measure.expectedSource)
        return Status::error(ErrorCode::kInternal, measure.name + ": the kernel came from " + times.source +
                                                       ", expected " + measure.expectedSource);
      measure.samples.push_back(times);
    }

  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(flags.engineSettings(NSA_MISS_DEFAULT)));
  NSA_ASSIGN_OR_RETURN(
      BenchReport report,
      BenchReport::create(engine.get(), flags.results, "startup", nlohmann::ordered_json::object(),
                          {"process = measure", "median ms = median_ms", "over the bare one = over_bare_ms",
                           "engine ms = engine_ms", "plan ms = plan_ms", "run ms = run_ms"}));
  const double bare = measures[cuda ? 1 : 0].medianOf(&Milestones::result);
  for (const Measure &measure : measures) {
    const double begun = measure.medianOf(&Milestones::begun), opened = measure.medianOf(&Milestones::engine),
                 planned = measure.medianOf(&Milestones::plan), result = measure.medianOf(&Milestones::result);
    const auto [fastest, slowest] =
        std::minmax_element(measure.samples.begin(), measure.samples.end(),
                            [](const Milestones &a, const Milestones &b) { return a.result < b.result; });
    std::printf("%-26s %9.2f ms (%.2f to %.2f), %9.2f over the bare one: engine %.2f, plan %.2f, run %.2f\n",
                measure.name.c_str(), result, fastest->result, slowest->result, result - bare, opened - begun,
                planned - opened, result - planned);
    NSA_RETURN_IF_ERROR(report.add({{"measure", measure.name},
                                    {"samples", measure.samples.size()},
                                    {"median_ms", result},
                                    {"fastest_ms", fastest->result},
                                    {"slowest_ms", slowest->result},
                                    {"over_bare_ms", result - bare},
                                    {"engine_ms", opened - begun},
                                    {"plan_ms", planned - opened},
                                    {"run_ms", result - planned}}));
  }
  return Status::ok();
}

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  nsa::bench::BenchProgram program("startup", "Measures fresh processes up to their first result.", flags,
                                   "One process of each kind");
  program.addDevice();
  program.addCount("--runs", flags.runs, "Processes of each kind", 1, 1000);
  CLI::App &options = program.options();
  options.add_option("--role", flags.role)->group(""); // of the processes that this program starts
  options.add_option("--cache", flags.cache)->group("");
  options.add_option("--packs", flags.packs)->group("");
  options.add_option("--pack", flags.more, "A pack that the processes without a compiler open too; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  options.get_option("--results")->required(false);
  options.callback([&flags] {
    if (flags.role.empty() && flags.results.empty())
      throw CLI::RequiredError("--results");
  });
  return program.run(argc, argv,
                     [&] { return flags.role.empty() ? nsa::bench::run(flags) : nsa::bench::playRole(flags); });
}
