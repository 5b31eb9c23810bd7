#include "runtime/base/config_text.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace nsa {

namespace {

// The members of an object. Names and values come from enumerations, so nothing needs to be escaped.
class Members {
public:
  void value(const char *name, const std::string &json) {
    text += (text.empty() ? "\"" : ",\"") + std::string(name) + "\":" + json;
  }
  void name(const char *key, std::string_view own) { value(key, "\"" + std::string(own) + "\""); }
  void number(const char *name, int64_t own) { value(name, std::to_string(own)); }
  void numberUnless(const char *name, int64_t own, int64_t byDefault) {
    if (own != byDefault)
      number(name, own);
  }
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

std::string branchList(const Spec &spec) {
  std::string list;
  for (const auto &[bit, branch] :
       {std::pair(kBranchCmp, "cmp"), std::pair(kBranchSel, "sel"), std::pair(kBranchWin, "win")})
    if (spec.hasBranch(bit))
      list.append(list.empty() ? "" : ",").append("\"").append(branch).append("\"");
  return "[" + list + "]";
}

} // namespace

std::string configText(const Spec &spec) {
  const Spec defaults;
  const uint32_t fields = fieldsOf(spec.op);
  Members members;
  members.name("dtype", dtypeName(spec.dtype));
  if (fields & kHeads)
    members.number("query_heads", spec.queryHeads);
  members.number("kv_heads", spec.kvHeads);
  if (fields & kQk) {
    members.number("qk_dim", spec.qkDim);
    if (spec.scale != defaults.scale)
      members.value("scale", floatText(spec.scale));
  }
  if (fields & kV)
    members.number("v_dim", spec.vDim);
  if (spec.layout == Layout::kPacked)
    members.name("layout", layoutName(spec.layout));
  if (fields & kWindowField)
    members.numberUnless("window", spec.window, defaults.window);
  if (fields & kCmpGeometry) {
    members.numberUnless("cmp_block", spec.cmpBlock, defaults.cmpBlock);
    members.numberUnless("cmp_stride", spec.cmpStride, defaults.cmpStride);
  }
  if (fields & kPhi && spec.cmpKind != defaults.cmpKind) {
    members.name("cmp_kind", cmpKindName(spec.cmpKind));
    if (spec.cmpKind == CmpKind::kMlp) {
      members.number("mlp_hidden", spec.mlpHidden);
      members.name("mlp_activation", activationName(spec.mlpActivation));
    }
  }
  if (fields & kSelGeometry) {
    members.numberUnless("sel_block", spec.selBlock, defaults.selBlock);
    members.numberUnless("sel_count", spec.selCount, defaults.selCount);
  }
  if (fields & kForced) {
    members.numberUnless("init_blocks", spec.initBlocks, defaults.initBlocks);
    members.numberUnless("local_blocks", spec.localBlocks, defaults.localBlocks);
  }
  if (fields & kGates) {
    if (spec.gate != defaults.gate)
      members.name("gate", gateName(spec.gate));
    if (spec.gatePerGroup)
      members.value("gate_per_group", "true");
    if (spec.branches != defaults.branches)
      members.value("branches", branchList(spec));
  }
  if (fields & kPages)
    members.numberUnless("page_size", spec.pageSize, defaults.pageSize);
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
