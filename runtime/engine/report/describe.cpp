#include "runtime/engine/report/describe.h"

#include "runtime/engine/choices/routes.h"
#include "runtime/engine/report/timed_shape.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace nsa {

namespace {

// Keeps the order in which fields are written: a person reads these texts too.
using Json = nlohmann::ordered_json;

// Texts may come from a driver or a file system and hold anything; JSON is UTF-8.
std::string dump(const Json &json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

Json valueOf(PlanSource source) { return planSourceName(source); }
Json valueOf(FallbackStep step) { return fallbackStepName(step); }
template <typename Value> Json valueOf(const Value &value) { return value; }

Json phasesJson(const TunePhases &phases) {
  return {{"prepare", phases.prepare},
          {"compile", phases.compile},
          {"check", phases.check},
          {"measure", phases.measure},
          {"restart", phases.restart}};
}

Json evidenceJson(const Measurement &entry) {
  return {{"template", entry.templateName},
          {"config", entry.config},
          {"outcome", entry.outcome},
          {"milliseconds", entry.milliseconds},
          {"ratio_to_default", entry.ratioToIncumbent},
          {"detail", entry.detail}};
}

// The part of a candidate that stands apart for the winner.
Json winnerJson(const Json &candidate) {
  Json winner;
  for (const char *field : {"template", "config", "milliseconds", "ratio_to_default"})
    winner[field] = candidate[field];
  return winner;
}

} // namespace

PlanInfo infoOf(const PlanDescription &plan) {
  PlanInfo info;
  info.source = plan.source;
  info.workspace_bytes = plan.workspaceBytes;
  info.tuned = true;
  for (const PlanCore::Part &part : plan.core.parts) {
    const KernelCore &core = *part.kernel;
    info.tuned = info.tuned && (core.tuned || !isTuned(part.step.spec));
    if (plan.source == PlanSource::kMemory)
      continue;
    info.lookup_ms += core.times.lookupMs;
    info.render_ms += core.times.renderMs;
    info.compile_ms += core.times.compileMs;
    info.tune_ms += core.times.tuneMs;
    info.load_ms += core.times.loadMs;
  }
  return info;
}

namespace {

LaunchInfo launchOf(const KernelCore &core, PlanSource source, const GridSizes &sizes) {
  const Manifest &manifest = core.kernel->manifest();
  LaunchInfo launch{.operator_name = manifest.op,
                    .template_name = manifest.templateName,
                    .config = formatValues(manifest.config),
                    .content = core.kernel->content(),
                    .target = manifest.target,
                    .source = source == PlanSource::kMemory ? source : core.source,
                    .tuned = core.tuned,
                    .step = core.step,
                    .served_by = core.servedBy,
                    .threads = manifest.threads,
                    .shared_bytes = manifest.sharedBytes,
                    .scratch_bytes = manifest.scratchBytes,
                    .problem = core.problemKey};
  const bool evaluated = core.kernel->grid({sizes}, launch.grid).isOk();
  assert(evaluated && "checked when the plan was made");
  (void)evaluated;
  return launch;
}

Json jsonOf(const LaunchInfo &launch, const KernelCore &core) {
  const auto &formula = core.kernel->manifest().grid;
  Json entry;
#define NSA_LAUNCH_INFO(type, name, place)                                                                             \
  if (*(place))                                                                                                        \
    entry[Json::json_pointer(place)] = valueOf(launch.name);
#include "runtime/model/info_fields.def"
  entry["grid_formula"] = {formula[0].text(), formula[1].text(), formula[2].text()};
  entry["evidence"] = core.kernel->evidence();
  return entry;
}

} // namespace

std::vector<LaunchInfo> launchesOf(const PlanDescription &plan) {
  const GridSizes sizes = GridSizes::ofMaxima(plan.spec, plan.maxima);
  std::vector<LaunchInfo> launches;
  for (const PlanCore::Part &part : plan.core.parts)
    launches.push_back(launchOf(*part.kernel, plan.source, sizes));
  return launches;
}

std::string describeProgram(const KernelCore &core, PlanSource source, const std::string &deviceKey,
                            size_t workspaceBytes) {
  Json json = jsonOf(launchOf(core, source, {}), core);
  json.erase("grid"); // each call has its own
  json["device"] = deviceKey;
  json["workspace_bytes"] = workspaceBytes;
  const PlanTimes times = source == PlanSource::kMemory ? PlanTimes() : core.times;
  json["milliseconds"] = {{"lookup", times.lookupMs},
                          {"render", times.renderMs},
                          {"compile", times.compileMs},
                          {"tune", times.tuneMs},
                          {"load", times.loadMs}};
  json["fallbacks"] = core.fallbacks;
  return dump(json);
}

std::string describePlan(const PlanDescription &plan) {
  Json launches = Json::array(), fallbacks = Json::array();
  std::string problem;
  const std::vector<LaunchInfo> infos = launchesOf(plan);
  for (size_t i = 0; i < infos.size(); ++i) {
    const LaunchInfo &launch = infos[i];
    const KernelCore &core = *plan.core.parts[i].kernel;
    launches.push_back(jsonOf(launch, core));
    for (const std::string &fallback : core.fallbacks)
      fallbacks.push_back(fallback);
    problem += (problem.empty() ? "" : "; ") + core.problemKey;
  }
  Json json = {{"operator", operatorName(plan.spec.op)}, {"problem", problem}, {"device", plan.deviceKey}};
  const PlanInfo info = infoOf(plan);
#define NSA_PLAN_INFO(type, name, place) json[Json::json_pointer(place)] = valueOf(info.name);
#include "runtime/model/info_fields.def"
  json["fallbacks"] = std::move(fallbacks);
  json["launches"] = std::move(launches);
  return dump(json);
}

std::string joinTexts(const std::vector<std::string> &texts) {
  if (texts.size() == 1)
    return texts.front();
  Json kernels = Json::array();
  for (const std::string &text : texts)
    kernels.push_back(Json::parse(text));
  return dump({{"kernels", std::move(kernels)}});
}

std::string describeTuning(const TuningDescription &tuning) {
  Json candidates = Json::array();
  size_t compiled = 0, measured = 0, rejected = 0;
  for (const CandidateReport &entry : tuning.report.candidates) {
    compiled += entry.outcome == CandidateOutcome::kMeasured || entry.outcome == CandidateOutcome::kWinner ||
                entry.outcome == CandidateOutcome::kRejected;
    measured += entry.rounds > 0 && entry.outcome != CandidateOutcome::kRejected;
    rejected += entry.outcome == CandidateOutcome::kRejected;
    candidates.push_back({{"template", entry.candidate.templateName},
                          {"config", entry.candidate.config},
                          {"outcome", candidateOutcomeName(entry.outcome)},
                          {"milliseconds", entry.medianMs},
                          {"ratio_to_default", entry.ratioToIncumbent},
                          {"rounds", entry.rounds},
                          {"detail", entry.detail}});
  }
  return dump({{"problem", tuning.problem},
               {"device", tuning.device},
               {"tuned_elsewhere", false},
               {"shape", tuning.shape},
               {"cut", tuning.cut},
               {"seed", tuning.seed},
               {"milliseconds", tuning.milliseconds},
               {"seconds_in", phasesJson(tuning.report.phases)},
               {"tuned", tuning.report.wasMeasured()},
               {"winner", winnerJson(candidates[tuning.report.winner])},
               {"tie", tuning.report.tie},
               {"noise", tuning.report.noise},
               {"exhaustive", tuning.exhaustive},
               {"budget_exhausted", tuning.report.budgetExhausted},
               {"store_trouble", tuning.storeTrouble},
               {"compiled", compiled},
               {"measured", measured},
               {"rejected", rejected},
               {"candidates", std::move(candidates)}});
}

std::string describeTuningElsewhere(const StoredChoice &choice, double milliseconds) {
  Json candidates = Json::array(), winner;
  size_t measured = 0, rejected = 0;
  bool tie = false;
  for (const Measurement &entry : choice.evidence) {
    Json json = evidenceJson(entry);
    tie |= entry.detail == kTied;
    const bool won = entry.outcome == candidateOutcomeName(CandidateOutcome::kWinner);
    measured += won || entry.outcome == candidateOutcomeName(CandidateOutcome::kMeasured);
    rejected += entry.outcome == candidateOutcomeName(CandidateOutcome::kRejected);
    if (won)
      winner = winnerJson(json);
    candidates.push_back(std::move(json));
  }
  return dump({{"problem", choice.problem},
               {"device", choice.device},
               {"tuned_elsewhere", true},
               {"cut", cutTextOf(choice.provenance)},
               {"milliseconds", milliseconds},
               {"tuned", true},
               {"winner", std::move(winner)},
               {"tie", tie},
               {"store_trouble", ""},
               {"compiled", measured + rejected},
               {"measured", measured},
               {"rejected", rejected},
               {"candidates", std::move(candidates)}});
}

namespace {

std::string wouldText(const ExplainDescription &explain) {
  using Action = Decision::Action;
  const Decision &decision = explain.decision;
  if (explain.inMemory)
    return "run what is in memory";
  if (decision.isStoredChoice())
    return "run what the " + std::string(planSourceName(sourceOf(*decision.own))) + " holds";
  if (decision.rung)
    return "serve what is stored for another problem";
  if (decision.action == Action::kFail)
    return decision.failure.isOk() ? "fail with a cache miss" : "fail: " + decision.failure.toString();
  return decision.action == Action::kRemake ? "compile the stored configuration again"
         : decision.action == Action::kTune ? "compile and measure candidates"
                                            : "compile the first candidate";
}

// Says by which order a compiled default is the first candidate, and what it goes before.
std::string whyCompiled(const ExplainDescription &explain) {
  const Decision &decision = explain.decision;
  std::string text = "the first by predicted cost";
  if (decision.simple)
    text += ", where " + decision.threshold->name + " puts the template " + std::string(kSimpleTemplate) +
            (*decision.simple ? " first" : " last");
  for (const std::string &reason : decision.reasons)
    text += "; " + reason;
  if (!decision.worse.empty())
    text += "; it goes before the kernel stored for " + decision.worse;
  return text;
}

std::string whyText(const ExplainDescription &explain) {
  using Reason = ExplainDescription::Reason;
  const char *outdated =
      explain.decision.outdated ? "; made by another revision of the compiler: compiled again in the background" : "";
  switch (explain.reason()) {
  case Reason::kMeasured:
    return std::string("measured for this problem on this model") + outdated;
  case Reason::kStored:
    return std::string("stored, but never measured") + outdated;
  case Reason::kOther:
    return "stored for " + explain.decision.difference;
  case Reason::kSearch:
    return "the first of those that would be measured";
  case Reason::kCostModel:
    return whyCompiled(explain);
  case Reason::kMiss:
  case Reason::kError:
    return ""; // nothing is chosen
  }
  return "";
}

} // namespace

std::string ExplainDescription::templateName() const {
  return decision.stored ? decision.manifest->templateName : isChosen() ? candidates.front().templateName : "";
}

std::string ExplainDescription::config() const {
  return decision.stored ? formatValues(decision.manifest->config) : isChosen() ? candidates.front().config : "";
}

PlanSource ExplainDescription::source() const {
  return inMemory                                                        ? PlanSource::kMemory
         : decision.action == Decision::Action::kLoad && decision.stored ? sourceOf(*decision.stored)
                                                                         : PlanSource::kCompiled;
}

bool ExplainDescription::tunesInBackground() const {
  return policy == MissPolicy::kBackground && isChosen() &&
         (decision.outdated || (isTunedProblem(problem) && !(decision.tuned && decision.step == FallbackStep::kExact)));
}

ExplainDescription::Reason ExplainDescription::reason() const {
  if (!isChosen())
    return decision.failure.isOk() ? Reason::kMiss : Reason::kError;
  if (decision.rung)
    return Reason::kOther;
  if (decision.action == Decision::Action::kTune)
    return Reason::kSearch;
  if (decision.action == Decision::Action::kCompile)
    return Reason::kCostModel;
  return decision.tuned ? Reason::kMeasured : Reason::kStored;
}

ChoiceInfo infoOf(const ExplainDescription &explain) {
  const Decision &decision = explain.decision;
  ChoiceInfo info{.part = explain.route.part,
                  .problem = explain.problem,
                  .action = decision.action,
                  .reason = explain.reason(),
                  .in_memory = explain.inMemory,
                  .tunes_in_background = explain.tunesInBackground()};
  if (explain.fails())
    info.status = decision.failure.isOk() ? ErrorCode::kCacheMiss : decision.failure.code();
  if (!explain.isChosen())
    return info;
  info.template_name = explain.templateName();
  info.config = explain.config();
  info.source = explain.source();
  info.step = decision.step;
  info.tuned = decision.tuned;
  return info;
}

namespace {

Json routeJson(const RouteDescription &route) {
  Json json = {{"name", route.name}, {"other", route.other}, {"source", route.source}};
  if (const std::optional<RouteDescription::Threshold> &threshold = route.threshold) {
    json["threshold_way"] = threshold->way;
    json["threshold_side"] = threshold->side == PayingSide::kFrom ? "from" : "up_to";
    json["threshold_seqlen_k"] = threshold->keys == StoredRoute::kNever ? Json() : Json(threshold->keys);
  }
  json["why"] = route.why;
  return json;
}

} // namespace

std::string describeExplain(const ExplainDescription &explain) {
  const Decision &decision = explain.decision;
  Json json = {{"part", explain.route.part}, {"problem", explain.problem}, {"device", explain.device}};
  json["would"] = wouldText(explain);
  json["fails"] = explain.fails();
  json["in_memory"] = explain.inMemory;
  json["miss_policy"] = missPolicyName(explain.policy);
  json["fallbacks"] = explain.fallbacks;
  json["tunes_in_background"] = explain.tunesInBackground();
  if (explain.isChosen()) {
    json["step"] = fallbackStepName(decision.step);
    json["variant"] = explain.templateName();
    json["config"] = explain.config();
    json["tuned"] = decision.tuned;
    json["why"] = whyText(explain);
  }
  if (const std::optional<Rung> &rung = decision.rung)
    json["served_by"] = {{"problem", rung->choice.problem}, {"device", rung->choice.device},
                         {"content", rung->choice.content}, {"tuned_there", rung->choice.tuned},
                         {"layer", rung->choice.layer},     {"distance", rung->distance}};
  if (!explain.route.name.empty())
    json["route"] = routeJson(explain.route);
  if (!explain.route.splitsSource.empty())
    json["splits"] = {{"cmp", explain.route.splits[0]},
                      {"sel", explain.route.splits[1]},
                      {"win", explain.route.splits[2]},
                      {"source", explain.route.splitsSource}};
  if (decision.threshold)
    json["threshold"] = {{"name", decision.threshold->name},
                         {"from", decision.threshold->threshold},
                         {"never", decision.threshold->threshold == StoredRoute::kNever},
                         {"template", explain.measuredTemplate}};

  Json database = {{"found", decision.own != nullptr}, {"place", explain.choicePlace}};
  if (decision.own) {
    const StoredChoice &choice = decision.own->choice;
    const bool isRemade = decision.action == Decision::Action::kRemake && !decision.rung;
    database["source"] = planSourceName(sourceOf(*decision.own));
    database["content"] = choice.content;
    database["template"] = decision.ownManifest ? decision.ownManifest->templateName : "";
    database["config"] = decision.ownManifest ? formatValues(decision.ownManifest->config) : "";
    database["tuned"] = choice.tuned;
    database["provenance"] = choice.provenance;
    database["cut"] = cutTextOf(choice.provenance);
    database["trouble"] = isRemade
                              ? "made by another revision of the compiler: it is compiled again with the same config"
                              : decision.ownTrouble;
    database["evidence"] = Json::array();
    for (const Measurement &entry : choice.evidence)
      database["evidence"].push_back(evidenceJson(entry));
  }
  json["database"] = std::move(database);
  json["candidates_trouble"] = explain.candidatesTrouble;
  json["candidates"] = Json::array();
  for (const Candidate &candidate : explain.candidates)
    json["candidates"].push_back({{"template", candidate.templateName},
                                  {"config", candidate.config},
                                  {"predicted_cost", candidate.predictedCost}});
  return dump(json);
}

std::string describeEngine(const EngineDescription &engine) {
  Json device;
  for (const auto &[name, value] : engine.device)
    device[name] = value;
  Json json = {{"device", std::move(device)},
               {"gpu_trouble", engine.gpuTrouble},
               {"cache", {{"path", engine.cachePath}, {"trouble", engine.cacheTrouble}}},
               {"compiler", {{"path", engine.compilerPath}, {"trouble", engine.compilerTrouble}}},
               {"miss_policy", missPolicyName(engine.policy)},
               {"fallbacks", engine.fallbacks}};
  if (!engine.gateOverride.empty())
    json["gate_override"] = engine.gateOverride;
  if (!engine.pinPath.empty())
    json["pin"] = {{"path", engine.pinPath}, {"choices", engine.pinChoices}, {"digest", engine.pinDigest}};
  return dump(json);
}

} // namespace nsa
