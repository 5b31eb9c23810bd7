#include "compiler/render/TemplateHeader.h"

#include "compiler/render/Declarations.h"
#include "compiler/render/Values.h"
#include "runtime/base/kernel_arguments.h"
#include "runtime/base/kernel_constants.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <set>
#include <utility>

namespace nsa {

namespace {

constexpr DriverValue kDriverValues[] = {{"op", true},       {"cpu", true},          {"gpu", true},
                                         {"element", false}, {"mma_element", false}, {"dtype_bytes", true},
                                         {"dot_step", true}, {"shared_limit", true}, {"vector_lanes", true}};

constexpr std::string_view kHeaderFolder = "header/"; // of the headers that templates include

constexpr int kMaxViewRank = 5; // as nsa_tensor

bool isName(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// Splits at `separator` outside of parentheses; the parts are trimmed and may be empty.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(')
      ++depth;
    else if (i < text.size() && text[i] == ')')
      --depth;
    else if (i == text.size() || (text[i] == separator && depth == 0)) {
      parts.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return parts;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class HeaderParser {
public:
  HeaderParser(std::string file, TemplateKind kind, const FindTemplateText &find) : find(find) {
    header.file = std::move(file);
    header.kind = kind;
  }

  Result<TemplateHeader> run(std::string_view text) {
    place.file = header.file;
    NSA_RETURN_IF_ERROR(parseText(text));
    NSA_RETURN_IF_ERROR(checkComplete());
    return std::move(header);
  }

private:
  using Handler = Status (HeaderParser::*)(std::string_view rest);
  struct Key {
    std::string_view name;
    Handler handler;
    bool repeats;
    bool handScheduledOnly;
  };
  static const Key kKeys[];

  Status fail(std::string rule, std::string hint = "") const {
    return templateError(place, std::move(rule), std::move(hint));
  }

  bool isIncluded() const { return place.file != header.file; }

  // Parses the header lines of a template, or all lines of an included header.
  Status parseText(std::string_view text) {
    bool inHeader = true;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view content = trim(text.substr(begin, end - begin));
      begin = end + 1;
      ++place.line;
      if (content.starts_with("//!")) {
        if (!inHeader && content.starts_with(kPartLine))
          continue;
        if (!inHeader)
          return fail("a header line may not follow code");
        NSA_RETURN_IF_ERROR(parseLine(content.substr(3)));
      } else if (!content.empty() && !content.starts_with("//")) {
        if (isIncluded())
          return fail("an included header holds header lines and comments only");
        inHeader = false;
      }
    }
    return Status::ok();
  }

  Status onInclude(std::string_view path) {
    if (isIncluded())
      return fail("an included header may not include another one");
    const std::string *text = find && path.starts_with(kHeaderFolder) ? find(path) : nullptr;
    if (!text)
      return fail("there is no header " + quoted(path),
                  "write the path of a file in templates/" + std::string(kHeaderFolder));
    if (std::find(header.includes.begin(), header.includes.end(), path) != header.includes.end())
      return fail("the header " + quoted(path) + " is included twice");
    header.includes.emplace_back(path);
    const TemplatePlace outer = std::exchange(place, TemplatePlace{.file = std::string(path)});
    NSA_RETURN_IF_ERROR(parseText(*text));
    place = outer;
    return Status::ok();
  }

  Status parseLine(std::string_view rest) {
    std::string_view word = takeWord(rest);
    const Key *key = std::find_if(keysBegin(), keysEnd(), [&](const Key &entry) { return entry.name == word; });
    if (key == keysEnd()) {
      std::string known;
      for (const Key *entry = keysBegin(); entry != keysEnd(); ++entry)
        known.append(known.empty() ? "" : ", ").append(entry->name);
      return fail("unknown key " + quoted(word), "a header line begins with one of " + known);
    }
    if (key->handScheduledOnly && header.kind == TemplateKind::kTile)
      return fail(quoted(word) + " belongs to hand-scheduled templates; a tile program says it in its function");
    if (!seen.insert(key->name).second && !key->repeats)
      return fail(quoted(word) + " stands twice");
    return (this->*key->handler)(rest);
  }

  // Reserves a name for a value. A name has one meaning in a template.
  Status declare(std::string_view name) {
    if (!isName(name))
      return fail("expected a name, found " + quoted(name));
    int64_t unused;
    if (lookupEnumerator(name, unused))
      return fail(quoted(name) + " is the name of an operator or dtype");
    if (lookupKernelConstant(name, unused))
      return fail(quoted(name) + " is a constant of all kernels and cannot be declared");
    for (const DriverValue &value : kDriverValues)
      if (value.name == name)
        return fail(quoted(name) + " is given by the target and cannot be declared");
    if (name == kFactsHole || name == kArgumentsHole)
      return fail(quoted(name) + " is given by the header and cannot be declared");
    if (!declared.emplace(name).second)
      return fail(quoted(name) + " is declared twice");
    return Status::ok();
  }

  Status parseNames(std::string_view rest, std::vector<std::string_view> &names) {
    names = split(rest, ',');
    for (std::string_view name : names)
      if (!isName(name))
        return fail("expected names separated by ',', found " + quoted(name));
    return Status::ok();
  }

  // Every name must be known where it is used. So a misspelt name is found without a rendering.
  Status parseExpression(std::string_view text, bool atLaunch, Expression &result) {
    Result<Expression> parsed = Expression::parse(text);
    if (!parsed)
      return templateError(place, parsed.status());
    for (const std::string &name : parsed->names())
      NSA_RETURN_IF_ERROR(checkName(name, atLaunch));
    result = std::move(*parsed);
    return Status::ok();
  }

  Status checkName(const std::string &name, bool atLaunch) {
    int64_t unused;
    if (declared.count(name) || lookupEnumerator(name, unused) || lookupKernelConstant(name, unused))
      return Status::ok();
    for (const DriverValue &value : kDriverValues)
      if (value.name == name)
        return value.isNumber ? Status::ok() : fail(quoted(name) + " is text and cannot stand in an expression");
    if (findGridSize(name))
      return atLaunch ? Status::ok() : fail(quoted(name) + " is known at launch only and may stand in 'grid' only");
    return fail("unknown name " + quoted(name), "declare it with fixed, let or choice on an earlier line");
  }

  Status parseOnly(std::string_view rest, TemplateHeader::Line &result) {
    result.place = place;
    return parseExpression(rest, /*atLaunch=*/false, result.expression);
  }

  Status onTemplate(std::string_view rest) {
    if (!isName(rest))
      return fail("'template' needs one name, found " + quoted(rest));
    header.name = std::string(rest);
    return Status::ok();
  }

  Status parseOperators(std::string_view rest, std::vector<Operator> &operators) {
    std::vector<std::string_view> names;
    NSA_RETURN_IF_ERROR(parseNames(rest, names));
    for (std::string_view name : names) {
      Result<Operator> op = parseOperator(name);
      if (!op)
        return templateError(place, op.status());
      if (std::find(operators.begin(), operators.end(), *op) != operators.end())
        return fail("operator " + quoted(name) + " stands twice");
      operators.push_back(*op);
    }
    return Status::ok();
  }

  Status onOperator(std::string_view rest) { return parseOperators(rest, header.operators); }

  Status onTargets(std::string_view rest) {
    header.targetsPlace = place;
    std::vector<std::string_view> names;
    NSA_RETURN_IF_ERROR(parseNames(rest, names));
    for (std::string_view name : names) {
      if (name == "cpu" && header.kind == TemplateKind::kHandScheduled)
        return fail("a hand-scheduled template cannot target the cpu");
      header.targets.emplace_back(name);
    }
    return Status::ok();
  }

  // "a, b", or "op: a, b" if only the operators before the colon have the values.
  Status onFixed(std::string_view rest) {
    std::vector<Operator> operators;
    if (size_t colon = rest.find(':'); colon != std::string_view::npos) {
      NSA_RETURN_IF_ERROR(parseOperators(rest.substr(0, colon), operators));
      for (Operator op : operators)
        if (!header.serves(op))
          return fail("operator " + quoted(operatorName(op)) +
                      " is not served: 'operator' names it on an earlier line");
      rest = rest.substr(colon + 1);
    }
    std::vector<std::string_view> names;
    NSA_RETURN_IF_ERROR(parseNames(rest, names));
    for (std::string_view name : names) {
      NSA_RETURN_IF_ERROR(declare(name));
      header.fixed.push_back({std::string(name), operators});
    }
    return Status::ok();
  }

  // Splits `name = rest`, which is the form of let and choice lines.
  Status parseDefinition(std::string_view &rest, std::string &name) {
    size_t equals = rest.find('=');
    if (equals == std::string_view::npos)
      return fail("expected 'name = ...'");
    name = std::string(trim(rest.substr(0, equals)));
    rest = trim(rest.substr(equals + 1));
    return isName(name) ? Status::ok() : fail("expected a name before '=', found " + quoted(name));
  }

  Status onLet(std::string_view rest) {
    TemplateHeader::Step step;
    step.place = place;
    NSA_RETURN_IF_ERROR(parseDefinition(rest, step.name));
    // The name is declared after the expression was read, so a let cannot use itself.
    NSA_RETURN_IF_ERROR(parseExpression(rest, /*atLaunch=*/false, step.expression));
    NSA_RETURN_IF_ERROR(declare(step.name));
    header.steps.push_back(std::move(step));
    return Status::ok();
  }

  Status onChoice(std::string_view rest) {
    TemplateHeader::Choice choice;
    NSA_RETURN_IF_ERROR(parseDefinition(rest, choice.name));
    NSA_RETURN_IF_ERROR(declare(choice.name));
    for (std::string_view part : split(rest, '|')) {
      int64_t value;
      if (!parseInteger(part, value))
        return fail("a choice is integers separated by '|', found " + quoted(part));
      if (std::find(choice.values.begin(), choice.values.end(), value) != choice.values.end())
        return fail("the choice names " + quoted(part) + " twice");
      choice.values.push_back(value);
    }
    header.choices.push_back(std::move(choice));
    return Status::ok();
  }

  Status onRequire(std::string_view rest) {
    TemplateHeader::Step step;
    step.isRequire = true;
    step.place = place;
    NSA_RETURN_IF_ERROR(parseExpression(rest, /*atLaunch=*/false, step.expression));
    header.steps.push_back(std::move(step));
    return Status::ok();
  }

  Status onGrid(std::string_view rest) {
    std::vector<std::string_view> axes = split(rest, ',');
    if (axes.size() != 3)
      return fail("'grid' needs three expressions separated by ',', found " + std::to_string(axes.size()));
    for (int axis = 0; axis < 3; ++axis) {
      header.grid[axis].place = place;
      NSA_RETURN_IF_ERROR(parseExpression(axes[axis], /*atLaunch=*/true, header.grid[axis].expression));
    }
    return Status::ok();
  }

  Status onCost(std::string_view rest) { return parseOnly(rest, header.cost); }
  Status onThreads(std::string_view rest) { return parseOnly(rest, header.threads); }
  Status onShared(std::string_view rest) { return parseOnly(rest, header.shared); }

  Status onParam(std::string_view rest) {
    ManifestParam param;
    TemplateHeader::Line condition;
    constexpr std::string_view kIf = " if ";
    const size_t end = rest.find(kIf);
    if (end != std::string_view::npos) {
      NSA_RETURN_IF_ERROR(parseOnly(rest.substr(end + kIf.size()), condition));
      rest = trim(rest.substr(0, end));
    }
    std::string_view kind = takeWord(rest);
    std::string_view name = takeWord(rest);
    if (kind == "map" && condition.isPresent())
      return fail("a map has no condition");
    if (kind == "view") {
      param.kind = ManifestParam::Kind::kView;
      std::string_view dtype = takeWord(rest);
      if (dtype != "dtype" && !parseDType(dtype))
        return fail("a view's type is dtype, bf16, fp16, fp32 or int32, found " + quoted(dtype));
      param.dtype = std::string(dtype);
      int64_t rank;
      if (!parseInteger(rest, rank) || rank < 1 || rank > kMaxViewRank)
        return fail("a view's rank is 1 to " + std::to_string(kMaxViewRank) + ", found " + quoted(rest));
      param.rank = static_cast<int>(rank);
    } else if (kind == "map") {
      NSA_RETURN_IF_ERROR(parseMap(rest, param));
    } else if (!rest.empty() || !parseScalarKind(kind, param.kind)) {
      return fail("expected 'param view NAME TYPE RANK', 'param map NAME VIEW COLUMNS, HEADS, ROWS' or "
                  "'param i32|i64|f32 NAME'");
    }
    if (!isName(name))
      return fail("expected a parameter's name, found " + quoted(name));
    param.name = std::string(name);
    for (const ManifestParam &other : header.params)
      if (other.name == param.name)
        return fail("parameter " + quoted(name) + " is declared twice");
    header.params.push_back(std::move(param));
    header.conditions.push_back(std::move(condition));
    return Status::ok();
  }

  // "VIEW COLUMNS, HEADS, ROWS": a tensor map of a view of the problem's type. A box has this many heads and rows.
  Status parseMap(std::string_view rest, ManifestParam &param) {
    param.kind = ManifestParam::Kind::kMap;
    if (!header.params.empty() && header.params.back().kind != ManifestParam::Kind::kMap)
      return fail("maps come before other parameters");
    const std::string_view view = takeWord(rest);
    if (!isName(view))
      return fail("expected the name of the map's view, found " + quoted(view));
    param.view = std::string(view);
    param.dtype = "dtype";
    const std::vector<std::string_view> sizes = split(rest, ',');
    if (sizes.size() != 3)
      return fail("a map needs three sizes separated by ',': columns, and heads and rows of a box; found " +
                  std::to_string(sizes.size()));
    TemplateHeader::MapSizes map;
    map.param = header.params.size();
    NSA_RETURN_IF_ERROR(parseOnly(sizes[0], map.columns));
    NSA_RETURN_IF_ERROR(parseOnly(sizes[1], map.heads));
    NSA_RETURN_IF_ERROR(parseOnly(sizes[2], map.rows));
    header.maps.push_back(std::move(map));
    return Status::ok();
  }

  static bool parseScalarKind(std::string_view word, ManifestParam::Kind &kind) {
    if (word == "i32")
      kind = ManifestParam::Kind::kI32;
    else if (word == "i64")
      kind = ManifestParam::Kind::kI64;
    else if (word == "f32")
      kind = ManifestParam::Kind::kF32;
    else
      return false;
    return true;
  }

  Status checkComplete() {
    place.line = 1;
    for (std::string_view required : {"template", "operator", "grid", "threads"})
      if (!seen.count(required))
        return fail("the header lacks the line '//! " + std::string(required) + "'");
    if (header.kind == TemplateKind::kHandScheduled && header.params.empty())
      return fail("a hand-scheduled template declares its arguments with '//! param'");
    if (header.targets.empty() && header.kind == TemplateKind::kHandScheduled)
      header.targets.emplace_back("gpu");
    return Status::ok();
  }

  static const Key *keysBegin();
  static const Key *keysEnd();

  TemplateHeader header;
  std::set<std::string_view> seen; // views of kKeys
  std::set<std::string, std::less<>> declared;
  const FindTemplateText &find;
  TemplatePlace place; // the line that is parsed
};

const HeaderParser::Key HeaderParser::kKeys[] = {
    {"template", &HeaderParser::onTemplate, false, false}, {"include", &HeaderParser::onInclude, true, false},
    {"operator", &HeaderParser::onOperator, false, false}, {"targets", &HeaderParser::onTargets, false, false},
    {"fixed", &HeaderParser::onFixed, true, false},        {"let", &HeaderParser::onLet, true, false},
    {"choice", &HeaderParser::onChoice, true, false},      {"require", &HeaderParser::onRequire, true, false},
    {"cost", &HeaderParser::onCost, false, false},         {"grid", &HeaderParser::onGrid, false, false},
    {"threads", &HeaderParser::onThreads, false, false},   {"param", &HeaderParser::onParam, true, true},
    {"shared", &HeaderParser::onShared, false, true}};

const HeaderParser::Key *HeaderParser::keysBegin() { return std::begin(kKeys); }
const HeaderParser::Key *HeaderParser::keysEnd() { return std::end(kKeys); }

} // namespace

std::span<const DriverValue> driverValues() { return kDriverValues; }

Status templateError(const TemplatePlace &place, std::string rule, std::string hint) {
  return Status(ErrorInfo{.code = ErrorCode::kCompileFailed,
                          .field = "template",
                          .value = place.file + ":" + std::to_string(place.line),
                          .rule = std::move(rule),
                          .hint = std::move(hint)});
}

Status templateError(const TemplatePlace &place, const Status &cause) {
  const ErrorInfo &error = cause.error();
  std::string text = error.message;
  if (text.empty())
    text = error.field + " " + error.value + ": " + error.rule;
  return templateError(place, std::move(text), error.hint);
}

Result<TemplateHeader> TemplateHeader::parse(std::string_view text, std::string file, TemplateKind kind,
                                             const FindTemplateText &find) {
  return HeaderParser(std::move(file), kind, find).run(text);
}

bool TemplateHeader::Fixed::isOf(Operator op) const {
  return operators.empty() || std::find(operators.begin(), operators.end(), op) != operators.end();
}

bool TemplateHeader::serves(Operator op) const {
  return std::find(operators.begin(), operators.end(), op) != operators.end();
}

} // namespace nsa
