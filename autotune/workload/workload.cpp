#include "autotune/workload/workload.h"

#include "runtime/base/text.h"
#include "runtime/json/config_file.h"
#include "runtime/json/json_fields.h"
#include "runtime/json/json_input.h"
#include "runtime/json/nearest_name.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>

namespace nsa {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostName = 64;
constexpr int64_t kMostBatch = 65536, kMostTokens = int64_t{1} << 22, kMostPage = 65536;

bool isOfName(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'; }

// Names stand in reports and on command lines.
bool isName(const std::string &name) {
  return !name.empty() && name.size() <= kMostName && std::ranges::all_of(name, isOfName);
}

Result<std::string> readName(JsonFields &fields) {
  Result<std::string> name = fields.text("name");
  if (name && !isName(*name))
    return fields.invalid("name", *name, "must be at most 64 of a-z, 0-9, '_', '-' and '.'");
  return name;
}

// A list of names, each once.
template <typename Enum, typename Parse>
Result<std::vector<Enum>> readNames(JsonFields &fields, std::string_view name, const nlohmann::json &value,
                                    const Parse &parse, const std::string &names) {
  const std::string rule = "must be a list of some of " + names;
  if (!value.is_array() || value.empty())
    return fields.invalid(name, value, rule);
  std::vector<Enum> list;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string place = std::string(name) + "[" + std::to_string(i) + "]";
    if (!value[i].is_string())
      return fields.invalid(place, value[i], "must be one of " + names);
    Result<Enum> one = parse(value[i].get<std::string>());
    if (!one)
      return fields.invalid(place, value[i], "must be one of " + names);
    if (std::ranges::find(list, *one) != list.end())
      return fields.invalid(place, value[i], "stands there twice");
    list.push_back(*one);
  }
  return list;
}

Status checkObject(JsonFields &fields, std::string_view name, const nlohmann::json &value) {
  return value.is_object() ? Status::ok() : fields.invalid(name, value, "must be an object { ... }");
}

// What decode needs of a specification, and so also the forward.
Result<Spec> readSpec(JsonFields &head, const std::string &path) {
  NSA_ASSIGN_OR_RETURN(const nlohmann::json *object,
                       head.need("config", "must be an object with query_heads, kv_heads, qk_dim"));
  NSA_RETURN_IF_ERROR(checkObject(head, "config", *object));
  for (const auto &[key, instead] : {std::pair("dtype", "dtypes"), std::pair("layout", "prefill.layouts"),
                                     std::pair("page_size", "decode.page_sizes")})
    if (object->contains(key))
      return head.invalid(std::string("config.") + key, object->at(key), "does not belong to a head",
                          std::string("the workload says it in ") + instead);
  return specIn(head, *object, path, Operator::kDecode);
}

Status readHeads(JsonFields &fields, Workload &workload) {
  const std::string rule = R"(must be a list of {"name": ..., "config": {...}})";
  NSA_ASSIGN_OR_RETURN(const nlohmann::json *list, fields.need("heads", rule));
  if (!list->is_array() || list->empty())
    return fields.invalid("heads", *list, rule);
  for (size_t i = 0; i < list->size(); ++i) {
    const nlohmann::json &element = (*list)[i];
    const std::string place = "heads[" + std::to_string(i) + "]";
    if (!element.is_object())
      return fields.invalid(place, element, "must be an object { ... }");
    JsonFields head(element, workload.path, place);
    NSA_ASSIGN_OR_RETURN(std::string name, readName(head));
    if (std::ranges::find(workload.heads, name, &Workload::Head::name) != workload.heads.end())
      return head.invalid("name", name, "must be another one for each head");
    NSA_ASSIGN_OR_RETURN(Spec spec, readSpec(head, workload.path));
    NSA_RETURN_IF_ERROR(head.finish());
    workload.heads.push_back({std::move(name), spec});
  }
  return Status::ok();
}

Status readPrefill(const nlohmann::json &object, Workload &workload) {
  JsonFields fields(object, workload.path, "prefill");
  Workload::Prefill &prefill = workload.prefill.emplace();
  if (fields.find("batch")) {
    NSA_ASSIGN_OR_RETURN(prefill.batch, fields.numbers("batch", 1, kMostBatch));
  }
  NSA_ASSIGN_OR_RETURN(prefill.lengths, fields.numbers("lengths", 1, kMostTokens));
  if (const nlohmann::json *value = fields.find("layouts")) {
    NSA_ASSIGN_OR_RETURN(prefill.layouts,
                         readNames<Layout>(fields, "layouts", *value, parseLayout, R"("dense", "packed")"));
  }
  if (const nlohmann::json *value = fields.find("crossover")) {
    if (!value->is_boolean())
      return fields.invalid("crossover", *value, "must be true or false");
    prefill.crossover = *value;
  }
  return fields.finish();
}

Status readDecode(const nlohmann::json &object, Workload &workload) {
  JsonFields fields(object, workload.path, "decode");
  Workload::Decode &decode = workload.decode.emplace();
  if (fields.find("batch")) {
    NSA_ASSIGN_OR_RETURN(decode.batch, fields.numbers("batch", 1, kMostBatch));
  }
  NSA_ASSIGN_OR_RETURN(decode.lengths, fields.numbers("lengths", 1, kMostTokens));
  if (fields.find("page_sizes")) {
    NSA_ASSIGN_OR_RETURN(std::vector<int64_t> pages, fields.numbers("page_sizes", 0, kMostPage));
    decode.pageSizes.assign(pages.begin(), pages.end());
  }
  return fields.finish();
}

Status readWorkload(const nlohmann::json &object, Workload &workload) {
  JsonFields fields(object, workload.path, "");
  NSA_ASSIGN_OR_RETURN(workload.name, readName(fields));
  if (fields.find("description")) {
    NSA_ASSIGN_OR_RETURN(workload.description, fields.text("description"));
  }
  if (const nlohmann::json *value = fields.find("plans")) {
    NSA_ASSIGN_OR_RETURN(workload.plans, readPlans(*value, workload.path));
  }
  // Plans have heads and types of their own.
  const bool hasHeads = workload.plans.empty() ||
                        std::ranges::any_of(std::initializer_list<const char *>{"heads", "dtypes", "prefill", "decode"},
                                            [&](const char *name) { return object.contains(name); });
  if (!hasHeads)
    return fields.finish();
  NSA_RETURN_IF_ERROR(readHeads(fields, workload));
  if (const nlohmann::json *value = fields.find("dtypes")) {
    NSA_ASSIGN_OR_RETURN(workload.dtypes,
                         readNames<DType>(fields, "dtypes", *value, parseIoDType, R"("bf16", "fp16", "fp32")"));
  }
  for (const auto &[part, read] : {std::pair("prefill", &readPrefill), std::pair("decode", &readDecode)})
    if (const nlohmann::json *value = fields.find(part)) {
      NSA_RETURN_IF_ERROR(checkObject(fields, part, *value));
      NSA_RETURN_IF_ERROR(read(*value, workload));
    }
  NSA_RETURN_IF_ERROR(fields.finish());
  if (!workload.prefill && !workload.decode)
    return Status::invalid(fields.pathOf("prefill"), "(absent)",
                           "must be there, or decode must: the heads are for one of them");
  return Status::ok();
}

// "My plans.jsonl" is "my-plans".
std::string nameOfFile(const std::string &path) {
  std::string name = fs::path(path).stem().string().substr(0, kMostName);
  for (char &c : name) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    c = isOfName(c) ? c : '-';
  }
  return name;
}

Status addRecord(std::string_view text, Workload &workload) {
  NSA_ASSIGN_OR_RETURN(ReadRecord record, readRecord(text, workload.path));
  workload.name = nameOfFile(workload.path);
  workload.description = "the plan record of a program";
  workload.plans = std::move(record.plans);
  workload.warnings = std::move(record.cut);
  return Status::ok();
}

} // namespace

Result<Workload> Workload::parse(std::string_view text, const std::string &path) {
  Workload workload;
  workload.path = path;
  if (isPlanRecord(text.substr(0, kPlanRecordBegin))) {
    NSA_RETURN_IF_ERROR(addRecord(text, workload));
  } else if (!trim(text).empty()) {
    NSA_ASSIGN_OR_RETURN(nlohmann::json json, parseJsonObject(text, path));
    NSA_RETURN_IF_ERROR(readWorkload(json, workload));
  }
  if (workload.plans.empty() && workload.heads.empty())
    return Status::error(
        ErrorCode::kInvalidArgument,
        path + " holds no plan: " + (workload.warnings.empty() ? "it is empty" : workload.warnings.front()),
        "run the program with NSA_RECORD=" + path + " once more");
  return workload;
}

std::string_view directionName(TuneDirection direction) {
  constexpr std::string_view kNames[] = {"forward", "backward", "both"};
  return kNames[static_cast<size_t>(direction)];
}

std::string operatorsText(const std::set<Operator> &operators) { return joined(operators, ", ", operatorName); }

Status limitTo(const std::vector<std::string> &operators, std::vector<Workload> &workloads) {
  std::set<Operator> kernels, wanted;
  std::vector<std::string_view> names;
  for (const OperatorDef &def : operatorTable())
    if (!def.isWhole) {
      kernels.insert(def.op);
      names.push_back(def.name);
    }
  for (const std::string &name : operators) {
    const Result<Operator> op = parseOperator(name);
    if (!op || isWhole(*op))
      return Status::invalid(kOperatorsField, name, "must be an operator of one kernel: " + operatorsText(kernels),
                             nearestHint(name, names));
    if (!wanted.insert(*op).second)
      return Status::invalid(kOperatorsField, name, "must stand there once");
  }
  for (Workload &workload : workloads)
    workload.operators = wanted;
  return Status::ok();
}

} // namespace nsa
