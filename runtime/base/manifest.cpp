#include "runtime/base/manifest.h"

#include "runtime/base/problem.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace nsa {

namespace {

constexpr int kMaxRank = 5; // as nsa_tensor

struct ScalarKind {
  std::string_view name;
  ManifestParam::Kind kind;
};
constexpr ScalarKind kScalarKinds[] = {
    {"i32", ManifestParam::Kind::kI32}, {"i64", ManifestParam::Kind::kI64}, {"f32", ManifestParam::Kind::kF32}};

// Cuts the text up to `separator` off the front of `rest` (all of it when there is none).
std::string_view takeUntil(std::string_view &rest, char separator) {
  size_t end = rest.find(separator);
  std::string_view head = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return head;
}

std::vector<std::string_view> splitWords(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view word; !(word = takeWord(text)).empty();)
    words.push_back(word);
  return words;
}

bool isWord(std::string_view text) { return !text.empty() && std::none_of(text.begin(), text.end(), isSpace); }

Status invalidLine(std::string_view line, std::string rule) {
  return Status::invalid("manifest", "'" + std::string(line) + "'", std::move(rule));
}

Status parseWord(std::string_view line, std::string_view value, std::string &result) {
  if (!isWord(value))
    return invalidLine(line, "needs one word");
  result = std::string(value);
  return Status::ok();
}

template <typename Integer>
Status parseCount(std::string_view line, std::string_view value, Integer least, Integer &result) {
  if (!parseInteger(value, result) || result < least)
    return invalidLine(line, "needs an integer of at least " + std::to_string(least));
  return Status::ok();
}

Status parseMap(std::string_view line, std::string_view value, std::map<std::string, std::string> &result) {
  Result<std::map<std::string, std::string>> parsed = parseValues(value);
  if (!parsed)
    return invalidLine(line, parsed.status().error().rule);
  result = std::move(*parsed);
  return Status::ok();
}

Status parseGrid(std::string_view line, std::string_view value, Expression (&grid)[3]) {
  if (std::count(value.begin(), value.end(), ';') != 2)
    return invalidLine(line, "needs three expressions separated by ';'");
  for (Expression &axis : grid) {
    NSA_ASSIGN_OR_RETURN(axis, Expression::parse(takeUntil(value, ';')));
  }
  return Status::ok();
}

// "map NAME VIEW DTYPE COLUMNS HEADS ROWS".
Status parseMapParam(std::string_view line, const std::vector<std::string_view> &words, ManifestParam &param) {
  param.kind = ManifestParam::Kind::kMap;
  param.view = std::string(words[2]);
  const Result<DType> dtype = parseDType(words[3]);
  if (!dtype)
    return invalidLine(line, "the element type must be bf16, fp16, fp32 or int32");
  param.dtype = std::string(words[3]);
  int64_t *const sizes[] = {&param.columns, &param.boxHeads, &param.boxRows};
  for (size_t i = 0; i < std::size(sizes); ++i)
    if (!parseInteger(words[4 + i], *sizes[i]) || *sizes[i] < 1 || *sizes[i] > ManifestParam::kMostColumns)
      return invalidLine(line, "columns, heads and rows must be integers from 1 to " +
                                   std::to_string(ManifestParam::kMostColumns));
  if (param.boxHeads * param.boxRows > ManifestParam::kMostBoxRows)
    return invalidLine(line, "a box must have at most " + std::to_string(ManifestParam::kMostBoxRows) + " rows");
  if (param.columns * dtypeBytes(*dtype) % 16 != 0)
    return invalidLine(line, "a row must be a multiple of 16 bytes");
  return Status::ok();
}

Status parseParam(std::string_view line, std::string_view value, std::vector<ManifestParam> &params) {
  std::vector<std::string_view> words = splitWords(value);
  ManifestParam param;
  const bool isGradient = words.size() == 4 && words[0] == "gradient";
  if (isGradient || ((words.size() == 4 || words.size() == 5) && words[0] == "view")) {
    param.kind = ManifestParam::Kind::kView;
    param.isGradient = isGradient;
    const Result<DType> dtype = parseDType(words[2]);
    if (!dtype)
      return invalidLine(line, "the element type must be bf16, fp16, fp32 or int32");
    if (isGradient && *dtype == DType::kI32)
      return invalidLine(line, "the element type of a gradient must be bf16, fp16 or fp32");
    param.dtype = std::string(words[2]);
    if (!parseInteger(words[3], param.rank) || param.rank < 1 || param.rank > kMaxRank)
      return invalidLine(line, "the rank must be an integer from 1 to " + std::to_string(kMaxRank));
    if (words.size() == 5 && (!parseInteger(words[4], param.pageRows) || param.pageRows < 1))
      return invalidLine(line, "the rows of a page must be an integer of at least 1");
    if (param.isPaged() && param.rank < 2)
      return invalidLine(line, "a view of pages must have at least 2 coordinates, the sequence and the row");
  } else if (words.size() == 7 && words[0] == "map") {
    NSA_RETURN_IF_ERROR(parseMapParam(line, words, param));
    if (!params.empty() && params.back().kind != ManifestParam::Kind::kMap)
      return invalidLine(line, "maps must come before other parameters");
  } else {
    const ScalarKind *kind = words.size() == 2 ? std::find_if(std::begin(kScalarKinds), std::end(kScalarKinds),
                                                              [&](const ScalarKind &k) { return k.name == words[0]; })
                                               : std::end(kScalarKinds);
    if (kind == std::end(kScalarKinds))
      return invalidLine(line, "needs 'view NAME DTYPE RANK [PAGE_ROWS]', 'gradient NAME DTYPE RANK', "
                               "'map NAME VIEW DTYPE COLUMNS HEADS ROWS' or 'i32|i64|f32 NAME'");
    param.kind = kind->kind;
  }
  param.name = std::string(words[1]);
  for (const ManifestParam &other : params)
    if (other.name == param.name)
      return invalidLine(line, "the name is used by an earlier parameter");
  params.push_back(std::move(param));
  return Status::ok();
}

std::string formatParam(const ManifestParam &param) {
  if (param.kind == ManifestParam::Kind::kView)
    return (param.isGradient ? "gradient " : "view ") + param.name + " " + param.dtype + " " +
           std::to_string(param.rank) + (param.isPaged() ? " " + std::to_string(param.pageRows) : "");
  if (param.kind == ManifestParam::Kind::kMap)
    return "map " + param.name + " " + param.view + " " + param.dtype + " " + std::to_string(param.columns) + " " +
           std::to_string(param.boxHeads) + " " + std::to_string(param.boxRows);
  for (const ScalarKind &kind : kScalarKinds)
    if (kind.kind == param.kind)
      return std::string(kind.name) + " " + param.name;
  assert(false && "a parameter of no known kind");
  return "";
}

} // namespace

int Manifest::slotCount() const {
  int count = 0;
  for (const ManifestParam &param : params)
    count += param.slots();
  return count;
}

std::string Manifest::serialize() const {
  std::string text = "manifest " + std::to_string(kManifestVersion) + "\n";
  auto line = [&](const char *key, const std::string &value) {
    text.append(key).append(" ").append(value).append("\n");
  };
  line("entry", entry);
  line("template", templateName);
  line("operator", op);
  line("target", target);
  if (!fixed.empty())
    line("fixed", formatValues(fixed));
  if (!config.empty())
    line("config", formatValues(config));
  line("revision", revision);
  for (const ManifestParam &param : params)
    line("param", formatParam(param));
  line("grid", grid[0].text() + " ; " + grid[1].text() + " ; " + grid[2].text());
  line("threads", std::to_string(threads));
  if (sharedBytes)
    line("shared", std::to_string(sharedBytes));
  if (scratchBytes)
    line("scratch", std::to_string(scratchBytes));
  if (!evidence.empty())
    line("evidence", formatValues(evidence));
  return text;
}

Result<Manifest> Manifest::parse(std::string_view text) {
  // The version comes first, so that another version's lines are not blamed for its novelty.
  std::string_view first = trim(takeUntil(text, '\n'));
  std::string expected = "manifest " + std::to_string(kManifestVersion);
  if (first != expected)
    return Status::invalid("manifest", "'" + std::string(first.substr(0, 80)) + "'",
                           "must begin with '" + expected + "'",
                           "the kernel was stored by another version, compile it again");

  Manifest result;
  std::set<std::string_view> seen;
  while (!text.empty()) {
    std::string_view line = trim(takeUntil(text, '\n'));
    if (line.empty())
      continue;
    std::string_view value = line;
    std::string_view key = takeUntil(value, ' ');
    value = trim(value);
    if (!seen.insert(key).second && key != "param")
      return invalidLine(line, "the line is repeated");

    Status status;
    if (key == "entry")
      status = parseWord(line, value, result.entry);
    else if (key == "template")
      status = parseWord(line, value, result.templateName);
    else if (key == "operator")
      status = parseWord(line, value, result.op);
    else if (key == "target")
      status = parseWord(line, value, result.target);
    else if (key == "revision")
      status = parseWord(line, value, result.revision);
    else if (key == "fixed")
      status = parseMap(line, value, result.fixed);
    else if (key == "config")
      status = parseMap(line, value, result.config);
    else if (key == "evidence")
      status = parseMap(line, value, result.evidence);
    else if (key == "param")
      status = parseParam(line, value, result.params);
    else if (key == "grid")
      status = parseGrid(line, value, result.grid);
    else if (key == "threads")
      status = parseCount(line, value, int32_t{1}, result.threads);
    else if (key == "shared")
      status = parseCount(line, value, int64_t{0}, result.sharedBytes);
    else if (key == "scratch")
      status = parseCount(line, value, int64_t{0}, result.scratchBytes);
    else
      status = invalidLine(line, "unknown key '" + std::string(key) + "'");
    NSA_RETURN_IF_ERROR(status);
  }
  for (const char *required : {"entry", "template", "operator", "target", "revision", "grid", "threads"})
    if (!seen.count(required))
      return Status::invalid("manifest", "", std::string("the line '") + required + "' is missing");
  return result;
}

std::string formatValues(const std::map<std::string, std::string> &values) {
  std::string text;
  for (const auto &[name, value] : values) {
    assert(isWord(name) && name.find('=') == std::string::npos && isWord(value) && "see the header");
    if (!text.empty())
      text += ' ';
    text += name + "=" + value;
  }
  return text;
}

Result<std::map<std::string, std::string>> parseValues(std::string_view text) {
  std::map<std::string, std::string> values;
  for (std::string_view word : splitWords(text)) {
    size_t equals = word.find('=');
    auto invalid = [&](const char *rule) { return Status::invalid("values", "'" + std::string(word) + "'", rule); };
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == word.size())
      return invalid("each value needs the form name=value");
    if (!values.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      return invalid("each name may stand once");
  }
  return values;
}

} // namespace nsa
