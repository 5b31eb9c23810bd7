#include "runtime/engine/miss_report.h"

#include <string_view>

namespace nsa {

namespace {

// A configuration file's text: what the operator reads, without what is as by default.
std::string configText(const Spec &spec) {
  const Spec defaults;
  const uint32_t fields = fieldsOf(spec.op);
  std::string text = "{\"dtype\":\"" + std::string(dtypeName(spec.dtype)) + "\"";
  auto value = [&](const char *name, const std::string &json) { text += ",\"" + std::string(name) + "\":" + json; };
  auto number = [&](const char *name, int32_t own, int32_t byDefault) {
    if (own != byDefault)
      value(name, std::to_string(own));
  };
  auto name = [&](const char *key, std::string_view own) { value(key, "\"" + std::string(own) + "\""); };
  if (fields & kHeads)
    number("query_heads", spec.queryHeads, 0);
  number("kv_heads", spec.kvHeads, 0);
  if (fields & kQk)
    number("qk_dim", spec.qkDim, 0);
  if (fields & kV)
    number("v_dim", spec.vDim, 0);
  if (spec.layout == Layout::kPacked)
    name("layout", layoutName(spec.layout));
  if (fields & kWindowField)
    number("window", spec.window, defaults.window);
  if (fields & kCmpGeometry) {
    number("cmp_block", spec.cmpBlock, defaults.cmpBlock);
    number("cmp_stride", spec.cmpStride, defaults.cmpStride);
  }
  if (fields & kPhi && spec.cmpKind != defaults.cmpKind) {
    name("cmp_kind", cmpKindName(spec.cmpKind));
    if (spec.cmpKind == CmpKind::kMlp) {
      number("mlp_hidden", spec.mlpHidden, 0);
      name("mlp_activation", activationName(spec.mlpActivation));
    }
  }
  if (fields & kSelGeometry) {
    number("sel_block", spec.selBlock, defaults.selBlock);
    number("sel_count", spec.selCount, defaults.selCount);
  }
  if (fields & kGates) {
    if (spec.gate != defaults.gate)
      name("gate", gateName(spec.gate));
    if (spec.gatePerGroup)
      value("gate_per_group", "true");
    if (spec.branches != defaults.branches) {
      std::string list;
      for (const auto &[bit, branch] :
           {std::pair(kBranchCmp, "cmp"), std::pair(kBranchSel, "sel"), std::pair(kBranchWin, "win")})
        if (spec.hasBranch(bit))
          list.append(list.empty() ? "" : ",").append("\"").append(branch).append("\"");
      value("branches", "[" + list + "]");
    }
  }
  if (fields & kPages)
    number("page_size", spec.pageSize, defaults.pageSize);
  return text + "}";
}

// One argument of a shell, whatever the text holds.
std::string shellWord(const std::string &text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos)
    return text;
  std::string word = "'";
  for (const char each : text)
    word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

} // namespace

std::string tuneHint(const TuneCommand &command) {
  const bool isPinned = !command.pinPath.empty(), isKept = command.cachePath != ":memory:";
  const std::string json = configText(command.spec);
  auto hint = [&](bool withPaths, const std::string &content) {
    std::string text = "store one: ";
    if (!command.templateDir.empty())
      text += "NSA_TEMPLATE_DIR=" + (withPaths ? shellWord(command.templateDir) : "DIR") + " ";
    text += "nsa tune --op " + std::string(operatorName(command.spec.op)) + " --config C.json --batch " +
            std::to_string(command.maxima.batch) + " --seqlen-q " + std::to_string(command.maxima.seqlenQ) +
            " --seqlen-k " + std::to_string(command.maxima.seqlenK) + " --device " + command.device + " --cache " +
            (withPaths && isKept && !isPinned ? shellWord(command.cachePath) : "FILE");
    if (isPinned)
      text += ", then make the pinned table anew from all its choices and FILE";
    else if (!isKept)
      text += ", then export FILE as a pack for NSA_CACHE_PACKS";
    return text + ", with C.json holding " + content;
  };
  std::string text = hint(true, json);
  if (text.size() > kMostHintBytes)
    text = hint(false, json);
  if (text.size() > kMostHintBytes)
    text = hint(false, "the spec (keys: nsa tune --help)");
  return text;
}

} // namespace nsa
