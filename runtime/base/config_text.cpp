#include "runtime/base/config_text.h"

#include "runtime/base/spec_fields.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace nsa {

namespace {

// The members of an object. Names and values come from enumerations, so nothing needs to be escaped.
class Members {
public:
  void value(std::string_view name, const std::string &json) {
    text += (text.empty() ? "\"" : ",\"") + std::string(name) + "\":" + json;
  }
  void name(const char *key, std::string_view own) { value(key, "\"" + std::string(own) + "\""); }
  void number(const char *name, int64_t own) { value(name, std::to_string(own)); }
  std::string object() const { return "{" + text + "}"; }

private:
  std::string text;
};

// The shortest text that is read as the same number.
std::string floatText(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "0";
}

std::string json(spec_field::Scale, float value) { return floatText(value); }
std::string json(spec_field::Positive, float value) { return floatText(value); }
std::string json(spec_field::Flag, bool value) { return value ? "true" : "false"; }
template <int32_t least> std::string json(spec_field::Integer<least>, int32_t value) { return std::to_string(value); }
template <auto name, auto parse, typename Enum> std::string json(spec_field::Name<name, parse>, Enum value) {
  return "\"" + std::string(name(value)) + "\"";
}
std::string json(spec_field::Branches, int32_t branches) {
  std::string list;
  for (const auto &[bit, branch] :
       {std::pair(kBranchCmp, "cmp"), std::pair(kBranchSel, "sel"), std::pair(kBranchWin, "win")})
    if (branches & bit)
      list.append(list.empty() ? "" : ",").append("\"").append(branch).append("\"");
  return "[" + list + "]";
}

} // namespace

std::string configText(const Spec &spec) {
  const Spec defaults;
  const uint32_t fields = spec.fields();
  Members members;
  forEachSpecField([&](auto kind, const auto &field) {
    if (field.isIn(fields) && (field.isAlwaysText || spec.*field.member != defaults.*field.member))
      members.value(field.name, json(kind, spec.*field.member));
  });
  return members.object();
}

std::string planText(const Spec &spec, const Maxima &maxima) {
  Members members;
  members.name("op", operatorName(spec.op));
  members.number("batch", maxima.batch);
  members.number("seqlen_q", maxima.seqlenQ);
  members.number("seqlen_k", maxima.seqlenK);
  if (maxima.tokensQ != maxima.batch * maxima.seqlenQ)
    members.number("tokens_q", maxima.tokensQ);
  members.value("config", configText(spec));
  return members.object();
}

} // namespace nsa
