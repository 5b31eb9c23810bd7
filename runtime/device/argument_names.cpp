#include "runtime/device/argument_names.h"

#include "runtime/base/tensor_map.h"
#include "runtime/base/text.h"

namespace nsa {

namespace {

constexpr std::string_view kCpuTarget = "cpu";

// The entry of a manifest's name in a list of rules; -1: not among them.
template <typename Rule> int findRule(int count, const Rule &(*rule)(int), std::string_view name) {
  for (int i = 0; i < count; ++i)
    if (rule(i).name == name)
      return i;
  return -1;
}
const ViewRule &viewRuleAt(int i) { return viewRule(static_cast<View>(i)); }
const ScalarRule &scalarRuleAt(int i) { return scalarRule(static_cast<Scalar>(i)); }
ManifestParam::Kind kindOf(ScalarType type) {
  return type == ScalarType::kF32 ? ManifestParam::Kind::kF32 : ManifestParam::Kind::kI32;
}

template <typename Rule> std::string namesOf(std::string_view what, int count, const Rule &(*rule)(int)) {
  std::string names("the " + std::string(what) + " of operators are ");
  for (int i = 0; i < count; ++i)
    names.append(i == 0 ? "" : ", ").append(rule(i).name);
  return names;
}

class OperatorArguments final : public ArgumentNames {
public:
  Status check(const Manifest &manifest) const override {
    return findOperator(manifest.op) ? Status::ok()
                                     : Status::invalid("operator", manifest.op, "must be an operator of this library");
  }

  Result<View> view(const Manifest &manifest, const ManifestParam &param) const override {
    View found;
    found.index = findRule(kViews, viewRuleAt, param.name);
    if (found.index < 0)
      return wrongParam(param, "no operator has such a tensor", namesOf("tensors", kViews, viewRuleAt));
    NSA_RETURN_IF_ERROR(checkOperand(manifest, param, static_cast<nsa::View>(found.index)));
    const ViewRule &rule = viewRuleAt(found.index);
    if (param.rank != rule.rank)
      return wrongParam(param, "must be of rank " + std::to_string(rule.rank));
    if (param.isGradient != (rule.elements == ViewElements::kGradient))
      return wrongParam(param, param.isGradient ? "must not be a gradient" : "must be a gradient");
    NSA_ASSIGN_OR_RETURN(found.dtype, typeOf(manifest, param, rule.elements));
    return found;
  }

  Result<View> mappedView(const Manifest &manifest, const ManifestParam &param) const override {
    View found;
    if (manifest.target == kCpuTarget)
      return wrongParam(param, "tensor maps are for GPUs", "");
    found.index = findRule(kViews, viewRuleAt, param.view);
    if (found.index < 0)
      return wrongParam(param, "no operator has a tensor '" + param.view + "'", namesOf("tensors", kViews, viewRuleAt));
    if (!mayHaveTensorMap(static_cast<nsa::View>(found.index)))
      return wrongParam(param, "must be of rows of queries, keys or values (q, k or v), not of '" + param.view + "'",
                        "");
    NSA_RETURN_IF_ERROR(checkOperand(manifest, param, static_cast<nsa::View>(found.index)));
    NSA_ASSIGN_OR_RETURN(found.dtype, typeOf(manifest, param, viewRuleAt(found.index).elements));
    return found;
  }

  Result<int> scalar(const Manifest &, const ManifestParam &param) const override {
    const int index = findRule(kScalars, scalarRuleAt, param.name);
    if (index < 0)
      return wrongParam(param, "no operator has such a number", namesOf("numbers", kScalars, scalarRuleAt));
    if (kindOf(scalarRuleAt(index).type) != param.kind)
      return wrongParam(param, param.kind == ManifestParam::Kind::kF32 ? "must be i32" : "must be f32");
    return index;
  }

  std::optional<GridSource> gridSource(std::string_view name) const override {
    const GridSizeRule *rule = findGridSize(name);
    if (!rule)
      return std::nullopt;
    return GridSource{.size = rule->size, .isMultiprocessors = !rule->size};
  }

  std::optional<int64_t> word(const Manifest &manifest, std::string_view name) const override {
    int64_t number = 0;
    return lookupEnumerator(name == "op" ? manifest.op : name, number) ? std::optional(number) : std::nullopt;
  }

  int statusView() const override { return static_cast<int>(nsa::View::kStatus); }

private:
  // A plan binds no tensor of another operator, and its view would be null.
  static Status checkOperand(const Manifest &manifest, const ManifestParam &param, nsa::View view) {
    const OperatorDef &def = *findOperator(manifest.op);
    return def.mayTake(view) ? Status::ok()
                             : wrongParam(param, "the operator '" + manifest.op + "' has no such tensor",
                                          "the operator's tensors are " + joined(def.viewNames(), ", "));
  }

  // Which of the problem's types a view has, the plan says that binds a tensor.
  static Result<DType> typeOf(const Manifest &manifest, const ManifestParam &param, ViewElements elements) {
    std::string known;
    const auto allow = [&](std::string_view name) {
      known.append(known.empty() ? "" : " or ").append(name);
      return param.dtype == name;
    };
    bool isAllowed = false;
    if (elements == ViewElements::kIndex || elements == ViewElements::kStatistics)
      isAllowed = allow(dtypeName(elements == ViewElements::kIndex ? DType::kI32 : DType::kF32));
    else
      for (const ProblemField field : {ProblemField::kDType, ProblemField::kCacheDType})
        if (const auto own = manifest.fixed.find(std::string(problemFieldName(field))); own != manifest.fixed.end())
          isAllowed = allow(own->second) || isAllowed;
    return isAllowed ? parseDType(param.dtype) : wrongParam(param, "must be of dtype " + known);
  }
};

} // namespace

Status ArgumentNames::wrongParam(const ManifestParam &param, std::string rule, std::string hint) {
  return Status::invalid("param " + param.name,
                         param.kind == ManifestParam::Kind::kView  ? "view"
                         : param.kind == ManifestParam::Kind::kMap ? "map"
                                                                   : "scalar",
                         std::move(rule), std::move(hint));
}

const ArgumentNames &operatorArguments() {
  static const OperatorArguments names;
  return names;
}

} // namespace nsa
