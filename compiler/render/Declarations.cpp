#include "compiler/render/Declarations.h"

#include "runtime/base/sequence_fields.h"
#include "runtime/base/text.h"

#include <algorithm>

namespace nsa {

namespace {

// "key_tile" becomes "kKeyTile".
std::string constantName(std::string_view name) {
  std::string result = "k";
  bool isFirst = true;
  for (char c : name) {
    if (c != '_')
      result += isFirst && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    isFirst = c == '_';
  }
  return result;
}

std::string_view deviceType(std::string_view dtype) {
  return dtype == "fp16" ? "f16" : dtype == "fp32" ? "float" : dtype; // bf16, int32
}

} // namespace

std::string declareFacts(const TemplateHeader &header, const Values &values) {
  std::string text = "struct Facts {\n  using Element = " + *values.find("element") + ";\n";
  auto declare = [&](const std::string &name) {
    int64_t value;
    const std::string *written = values.find(name);
    if (!written || !parseInteger(*written, value))
      return; // a name, such as the dtype
    const bool isInt32 = value == static_cast<int32_t>(value);
    text.append("  static constexpr ").append(isInt32 ? "int32 " : "int64 ");
    text.append(constantName(name)).append(" = ").append(*written).append(";\n");
  };
  for (const TemplateHeader::Fixed &fixed : header.fixed)
    declare(fixed.name);
  for (const TemplateHeader::Choice &choice : header.choices)
    declare(choice.name);
  for (const TemplateHeader::Step &step : header.steps)
    if (!step.isRequire)
      declare(step.name);
  // Device code that reads the table of sequences names its fields.
  const bool hasTable = std::any_of(header.params.begin(), header.params.end(),
                                    [](const ManifestParam &param) { return param.name == "sequences"; });
  for (size_t field = 0; hasTable && field < kSequenceFields; ++field)
    text.append("  static constexpr int32 ")
        .append(constantName("sequence_" + std::string(kSequenceFieldNames[field])))
        .append(" = ")
        .append(std::to_string(field))
        .append(";\n");
  return text + "};";
}

std::string declareArguments(std::span<const ManifestParam> params) {
  std::string text = "struct Arguments {\n";
  for (const ManifestParam &param : params) {
    std::string type;
    switch (param.kind) {
    case ManifestParam::Kind::kMap:
      type = "TensorMap";
      break;
    case ManifestParam::Kind::kView:
      type = (param.isPaged() ? "PagedView<" : "View<") + std::string(deviceType(param.dtype)) + ", " +
             std::to_string(param.rank) + (param.isPaged() ? ", " + std::to_string(param.pageRows) : "") + ">";
      break;
    case ManifestParam::Kind::kI32:
      type = "alignas(8) int32";
      break;
    case ManifestParam::Kind::kI64:
      type = "int64";
      break;
    case ManifestParam::Kind::kF32:
      type = "alignas(8) float";
      break;
    }
    text.append("  ").append(type).append(" ").append(param.name).append(";\n");
  }
  return text + "};";
}

} // namespace nsa
