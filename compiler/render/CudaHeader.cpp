#include "compiler/render/HeaderBuilder.h"

#include "runtime/base/text.h"

#include <algorithm>
#include <utility>

namespace nsa {

namespace {

constexpr std::string_view kHeaderFolder = "header/"; // of the headers that templates include

constexpr int kMaxViewRank = 5; // as nsa_tensor

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

class CudaHeaderReader : HeaderBuilder {
public:
  CudaHeaderReader(std::string file, const FindTemplateText &find)
      : HeaderBuilder(std::move(file), TemplateKind::kHandScheduled), find(find) {}

  Result<TemplateHeader> run(std::string_view text) {
    NSA_RETURN_IF_ERROR(readText(text));
    NSA_RETURN_IF_ERROR(checkComplete());
    return std::move(header);
  }

private:
  using Handler = Status (CudaHeaderReader::*)(std::string_view rest);
  struct Key {
    std::string_view name;
    Handler handler;
    bool repeats;
  };
  static const Key kKeys[];

  bool isIncluded() const { return place.file != header.file; }

  // Reads the header lines of a template, or all lines of an included header.
  Status readText(std::string_view text) {
    bool inHeader = true;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view content = trim(text.substr(begin, end - begin));
      begin = end + 1;
      ++place.line;
      if (content.starts_with("//!")) {
        if (!inHeader)
          return fail("a header line may not follow code");
        NSA_RETURN_IF_ERROR(readLine(content.substr(3)));
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
    if (std::ranges::find(header.includes, path) != header.includes.end())
      return fail("the header " + quoted(path) + " is included twice");
    header.includes.emplace_back(path);
    const TemplatePlace outer = std::exchange(place, TemplatePlace{.file = std::string(path)});
    NSA_RETURN_IF_ERROR(readText(*text));
    place = outer;
    return Status::ok();
  }

  Status readLine(std::string_view rest) {
    std::string_view word = takeWord(rest);
    const Key *key = std::find_if(keysBegin(), keysEnd(), [&](const Key &entry) { return entry.name == word; });
    if (key == keysEnd()) {
      std::string known;
      for (const Key *entry = keysBegin(); entry != keysEnd(); ++entry)
        known.append(known.empty() ? "" : ", ").append(entry->name);
      return fail("unknown key " + quoted(word), "a header line begins with one of " + known);
    }
    if (!seen.insert(key->name).second && !key->repeats)
      return fail(quoted(word) + " stands twice");
    return (this->*key->handler)(rest);
  }

  Status parseNames(std::string_view rest, std::vector<std::string_view> &names) const {
    names = split(rest, ',');
    for (std::string_view name : names)
      if (!isTemplateName(name))
        return fail("expected names separated by ',', found " + quoted(name));
    return Status::ok();
  }

  // "NAME serves a, b"
  Status onKernel(std::string_view rest) {
    const std::string_view name = takeWord(rest);
    if (!isTemplateName(name) || takeWord(rest) != "serves")
      return fail("expected 'kernel NAME serves OPERATOR, ..'");
    header.name = std::string(name);
    std::vector<std::string_view> operators;
    NSA_RETURN_IF_ERROR(parseNames(rest, operators));
    for (std::string_view op : operators)
      NSA_RETURN_IF_ERROR(addOperator(op));
    return Status::ok();
  }

  Status onTargets(std::string_view rest) {
    header.targetsPlace = place;
    std::vector<std::string_view> names;
    NSA_RETURN_IF_ERROR(parseNames(rest, names));
    for (std::string_view name : names) {
      if (name == "cpu")
        return fail("a hand-scheduled template cannot target the cpu");
      header.targets.emplace_back(name);
    }
    return Status::ok();
  }

  // "a, b" or "a, b when condition"
  Status onFixed(std::string_view rest) {
    constexpr std::string_view kWhen = " when ";
    const size_t when = std::min(rest.find(kWhen), rest.size());
    std::vector<std::string_view> names;
    NSA_RETURN_IF_ERROR(parseNames(rest.substr(0, when), names));
    for (std::string_view name : names)
      NSA_RETURN_IF_ERROR(addFixed(name, rest.substr(std::min(when + kWhen.size(), rest.size()))));
    return Status::ok();
  }

  // Splits `name = rest`, which is the form of const and choice lines.
  Status parseBinding(std::string_view &rest, std::string_view &name) const {
    size_t equals = rest.find('=');
    if (equals == std::string_view::npos)
      return fail("expected 'name = ...'");
    name = trim(rest.substr(0, equals));
    rest = trim(rest.substr(equals + 1));
    return isTemplateName(name) ? Status::ok() : fail("expected a name before '=', found " + quoted(name));
  }

  Status onConst(std::string_view rest) {
    for (std::string_view value : split(rest, ',')) {
      std::string_view name;
      NSA_RETURN_IF_ERROR(parseBinding(value, name));
      NSA_RETURN_IF_ERROR(addConstant(name, value));
    }
    return Status::ok();
  }

  Status onChoice(std::string_view rest) {
    for (std::string_view pick : split(rest, ',')) {
      std::string_view name;
      NSA_RETURN_IF_ERROR(parseBinding(pick, name));
      NSA_RETURN_IF_ERROR(addChoice(name));
      for (std::string_view part : split(pick, '|')) {
        int64_t value;
        if (!parseInteger(part, value))
          return fail("a choice is integers separated by '|', found " + quoted(part));
        NSA_RETURN_IF_ERROR(addChoiceValue(value));
      }
    }
    return Status::ok();
  }

  Status onRequire(std::string_view rest) { return addRequire(rest); }

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

  Status onCost(std::string_view rest) { return parseLine(rest, header.cost); }
  Status onThreads(std::string_view rest) { return parseLine(rest, header.threads); }
  Status onShared(std::string_view rest) { return parseLine(rest, header.shared); }

  Status onParam(std::string_view rest) {
    ManifestParam param;
    TemplateHeader::Line condition, pageRows;
    constexpr std::string_view kIf = " if ";
    const size_t end = rest.find(kIf);
    if (end != std::string_view::npos) {
      NSA_RETURN_IF_ERROR(parseLine(rest.substr(end + kIf.size()), condition));
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
      constexpr std::string_view kPaged = " paged ";
      if (const size_t at = rest.find(kPaged); at != std::string_view::npos) {
        NSA_RETURN_IF_ERROR(parseLine(rest.substr(at + kPaged.size()), pageRows));
        rest = trim(rest.substr(0, at));
      }
      int64_t rank;
      if (!parseInteger(rest, rank) || rank < 1 || rank > kMaxViewRank)
        return fail("a view's rank is 1 to " + std::to_string(kMaxViewRank) + ", found " + quoted(rest));
      param.rank = static_cast<int>(rank);
    } else if (kind == "map") {
      NSA_RETURN_IF_ERROR(parseMap(rest, param));
    } else if (!rest.empty() || !parseScalarKind(kind, param.kind)) {
      return fail("expected 'param view NAME TYPE RANK [paged ROWS]', 'param map NAME VIEW COLUMNS, HEADS, ROWS' or "
                  "'param i32|i64|f32 NAME'");
    }
    if (!isTemplateName(name))
      return fail("expected a parameter's name, found " + quoted(name));
    param.name = std::string(name);
    for (const ManifestParam &other : header.params)
      if (other.name == param.name)
        return fail("parameter " + quoted(name) + " is declared twice");
    header.params.push_back(std::move(param));
    header.conditions.push_back(std::move(condition));
    header.pageRows.push_back(std::move(pageRows));
    return Status::ok();
  }

  // "VIEW COLUMNS, HEADS, ROWS": a tensor map of a view of the problem's type. A box has this many heads and rows.
  Status parseMap(std::string_view rest, ManifestParam &param) {
    param.kind = ManifestParam::Kind::kMap;
    if (!header.params.empty() && header.params.back().kind != ManifestParam::Kind::kMap)
      return fail("maps come before other parameters");
    const std::string_view view = takeWord(rest);
    if (!isTemplateName(view))
      return fail("expected the name of the map's view, found " + quoted(view));
    param.view = std::string(view);
    param.dtype = "dtype";
    const std::vector<std::string_view> sizes = split(rest, ',');
    if (sizes.size() != 3)
      return fail("a map needs three sizes separated by ',': columns, and heads and rows of a box; found " +
                  std::to_string(sizes.size()));
    TemplateHeader::MapSizes map;
    map.param = header.params.size();
    NSA_RETURN_IF_ERROR(parseLine(sizes[0], map.columns));
    NSA_RETURN_IF_ERROR(parseLine(sizes[1], map.heads));
    NSA_RETURN_IF_ERROR(parseLine(sizes[2], map.rows));
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
    for (std::string_view required : {"kernel", "grid", "threads"})
      if (!seen.count(required))
        return fail("the header lacks the line '//! " + std::string(required) + "'");
    if (header.params.empty())
      return fail("a hand-scheduled template declares its arguments with '//! param'");
    if (header.targets.empty())
      header.targets.emplace_back("gpu");
    return Status::ok();
  }

  static const Key *keysBegin();
  static const Key *keysEnd();

  std::set<std::string_view> seen; // views of kKeys
  const FindTemplateText &find;
};

const CudaHeaderReader::Key CudaHeaderReader::kKeys[] = {
    {"kernel", &CudaHeaderReader::onKernel, false},   {"include", &CudaHeaderReader::onInclude, true},
    {"targets", &CudaHeaderReader::onTargets, false}, {"fixed", &CudaHeaderReader::onFixed, true},
    {"const", &CudaHeaderReader::onConst, true},      {"choice", &CudaHeaderReader::onChoice, true},
    {"require", &CudaHeaderReader::onRequire, true},  {"cost", &CudaHeaderReader::onCost, false},
    {"grid", &CudaHeaderReader::onGrid, false},       {"threads", &CudaHeaderReader::onThreads, false},
    {"param", &CudaHeaderReader::onParam, true},      {"shared", &CudaHeaderReader::onShared, false}};

const CudaHeaderReader::Key *CudaHeaderReader::keysBegin() { return std::begin(kKeys); }
const CudaHeaderReader::Key *CudaHeaderReader::keysEnd() { return std::end(kKeys); }

} // namespace

Result<TemplateHeader> readCudaHeader(std::string_view text, std::string file, const FindTemplateText &find) {
  return CudaHeaderReader(std::move(file), find).run(text);
}

} // namespace nsa
