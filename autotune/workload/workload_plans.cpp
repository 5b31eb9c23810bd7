#include "autotune/workload/workload_plans.h"

#include "runtime/base/config_text.h"
#include "runtime/base/text.h"
#include "runtime/json/config_file.h"
#include "runtime/json/json_fields.h"
#include "runtime/json/json_input.h"
#include "runtime/json/nearest_name.h"

#include <algorithm>
#include <limits>
#include <set>

namespace nsa {
namespace {

constexpr size_t kShownBytes = 40;           // of a line that was cut
constexpr uint64_t kMostLineBytes = 1 << 16; // a plan has some hundred

Result<Operator> readOperator(JsonFields &fields) {
  NSA_ASSIGN_OR_RETURN(std::string name, fields.text("op"));
  const OperatorDef *def = findOperator(name);
  if (def && def->isPublic())
    return def->op;
  std::vector<std::string_view> names;
  for (const OperatorDef &each : publicOperators())
    names.push_back(each.name);
  return fields.invalid("op", name, "must be one of " + namesOf(publicOperators()), nearestHint(name, names));
}

Result<Maxima> readMaxima(JsonFields &fields) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  Maxima maxima;
  const struct {
    const char *name;
    int64_t Maxima::*field;
    int64_t least;
  } numbers[] = {{"batch", &Maxima::batch, 1}, {"seqlen_q", &Maxima::seqlenQ, 0}, {"seqlen_k", &Maxima::seqlenK, 0}};
  for (const auto &[name, field, least] : numbers) {
    NSA_ASSIGN_OR_RETURN(maxima.*field, fields.number(name, least, kMost));
  }
  maxima.tokensQ = maxima.batch * maxima.seqlenQ;
  if (fields.find("tokens_q")) {
    NSA_ASSIGN_OR_RETURN(maxima.tokensQ, fields.number("tokens_q", 0, kMost));
  }
  return maxima;
}

Result<PlannedCall> readPlan(const nlohmann::json &object, const std::string &file, const std::string &place) {
  JsonFields fields(object, file, place);
  NSA_ASSIGN_OR_RETURN(Operator op, readOperator(fields));
  NSA_ASSIGN_OR_RETURN(Maxima maxima, readMaxima(fields));
  const std::string rule = "must be an object with the keys of --config";
  NSA_ASSIGN_OR_RETURN(const nlohmann::json *given, fields.need("config", rule));
  if (!given->is_object())
    return fields.invalid("config", *given, rule);
  NSA_ASSIGN_OR_RETURN(const Spec spec, specIn(fields, *given, file, op));
  NSA_RETURN_IF_ERROR(fields.finish());
  if (const Status status = maxima.validate(spec); !status.isOk()) {
    ErrorInfo info = status.error();
    info.field = file + ": " + place + (place.empty() ? "" : ": ") + info.field;
    return Status(std::move(info));
  }
  return PlannedCall{spec, maxima};
}

// Keeps each plan once.
class PlanList {
public:
  void add(PlannedCall plan) {
    if (known.insert(planText(plan.spec, plan.maxima)).second)
      plans.push_back(plan);
  }
  std::vector<PlannedCall> plans;

private:
  std::set<std::string> known;
};

} // namespace

Result<Spec> specIn(const JsonFields &fields, const nlohmann::json &config, const std::string &file, Operator op) {
  const Result<ConfigFile> read = ConfigFile::of(config, file);
  const Result<Spec> spec = read ? specOf(op, *read) : read.status();
  return spec ? spec : fields.within("config", spec.status());
}

std::string PlannedCall::headsText() const {
  const uint32_t fields = fieldsOf(spec.op);
  const auto number = [](int64_t value) { return std::to_string(value); };
  std::string text = (fields & kHeads ? number(spec.queryHeads) + "/" : "") + number(spec.kvHeads) + "x";
  if (fields & kQk)
    text += number(spec.qkDim) + (fields & kV ? "/" : "");
  return text + (fields & kV ? number(spec.vDim) : "");
}

Result<std::vector<PlannedCall>> readPlans(const nlohmann::json &list, const std::string &file) {
  const std::string rule =
      R"(must be a list of {"op": ..., "batch": ..., "seqlen_q": ..., "seqlen_k": ..., "config": {...}})";
  if (!list.is_array() || list.empty())
    return Status::invalid(file + ": plans", list.dump(), rule);
  PlanList plans;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = "plans[" + std::to_string(i) + "]";
    if (!list[i].is_object())
      return Status::invalid(file + ": " + place, list[i].dump(), "must be an object { ... }");
    NSA_ASSIGN_OR_RETURN(PlannedCall plan, readPlan(list[i], file, place));
    plans.add(plan);
  }
  return std::move(plans.plans);
}

bool isPlanRecord(std::string_view text) {
  constexpr std::string_view kBegin = "{\"op\"";
  bool isRecord = false;
  for (text = trim(text); !text.empty() && !isRecord; text = trim(text)) {
    const std::string_view line = trim(text.substr(0, text.find('\n')));
    text.remove_prefix(line.size());
    std::string begin;
    for (const char letter : line.substr(0, 2 * kBegin.size()))
      if (letter != ' ' && letter != '\t')
        begin += letter;
    isRecord = begin.starts_with(kBegin);
    if (!isRecord && !kBegin.starts_with(begin))
      return false; // the line was not cut, and is no plan's
  }
  return isRecord;
}

Result<ReadRecord> readRecord(std::string_view text, const std::string &file) {
  PlanList plans;
  ReadRecord record;
  std::set<std::string_view> readLineTexts;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    if (whole.size() > kMostLineBytes)
      return Status::error(ErrorCode::kIoError,
                           file + ": has a line of more than " + std::to_string(kMostLineBytes) + " bytes");
    const std::string_view line = trim(whole);
    if (line.empty() || readLineTexts.contains(line))
      continue;
    const std::string place = file + ":" + std::to_string(number);
    bool isCut = false;
    Result<nlohmann::json> json = parseJsonObject(line, place, &isCut);
    if (isCut) {
      record.cut.push_back(place + " was cut off and is passed over: " + std::string(line.substr(0, kShownBytes)) +
                           (line.size() > kShownBytes ? "..." : ""));
      continue;
    }
    if (!json)
      return json.status();
    NSA_ASSIGN_OR_RETURN(PlannedCall plan, readPlan(*json, place, ""));
    plans.add(plan);
    readLineTexts.insert(line);
  }
  record.plans = std::move(plans.plans);
  return record;
}

} // namespace nsa
