#include "runtime/engine/miss_report.h"

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

} // namespace

std::string tuneHint(const TuneCommand &command) {
  const std::string lengths = "nsa tune --op " + std::string(operatorName(command.spec.op)) +
                              " --config C.json --batch " + std::to_string(command.maxima.batch) + " --seqlen-q " +
                              std::to_string(command.maxima.seqlenQ) + " --seqlen-k " +
                              std::to_string(command.maxima.seqlenK) + " --device " + command.device;
  const std::string json = configText(command.spec);
  std::string hint = "store one: " + lengths + " --cache " + command.cachePath + ", with C.json holding " + json;
  if (hint.size() > kMostHintBytes)
    hint = "store one: " + lengths + " --cache FILE, with C.json holding " + json;
  if (hint.size() > kMostHintBytes)
    hint = "store one: " + lengths + " --cache FILE, with C.json holding the spec (keys: nsa tune --help)";
  return hint;
}

} // namespace nsa
