#include "runtime/device/loaded_kernel.h"

#include "runtime/base/text.h"

#include <algorithm>

namespace nsa {

namespace {

constexpr std::string_view kCpuTarget = "cpu";
constexpr size_t kMaxGridNames = 32; // of one formula, as a launch keeps them on its stack; attention uses 3

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

Status wrongParam(const ManifestParam &param, std::string rule,
                  std::string hint = "nsa check says where a template of your own breaks the rule; a stored kernel was "
                                     "made by another version of the templates") {
  return Status::invalid("param " + param.name,
                         param.kind == ManifestParam::Kind::kView  ? "view"
                         : param.kind == ManifestParam::Kind::kMap ? "map"
                                                                   : "scalar",
                         std::move(rule), std::move(hint));
}

// A plan binds tensors for the kernels that it chose, so this is no error of the caller's.
Status wrongPages(std::string_view view, bool isPaged) {
  return Status::error(ErrorCode::kInternal,
                       "param " + std::string(view) +
                           (isPaged ? ": the kernel reads pages, but the call has no block table"
                                    : ": the call has a block table, but the kernel reads no pages"));
}

} // namespace

Result<std::shared_ptr<const LoadedKernel>>
LoadedKernel::load(Device &device, std::string content, SharedManifest manifest, std::span<const std::byte> binary) {
  std::shared_ptr<LoadedKernel> result(new LoadedKernel);
  result->contentId = std::move(content);
  NSA_RETURN_IF_ERROR(result->bind(device, std::move(manifest)));
  NSA_ASSIGN_OR_RETURN(result->kernel, device.load(*result->parsed, binary));
  return std::shared_ptr<const LoadedKernel>(std::move(result));
}

Status LoadedKernel::check(const Device &device, SharedManifest manifest, const GridSizes &sizes) {
  LoadedKernel unloaded;
  NSA_RETURN_IF_ERROR(unloaded.bind(device, std::move(manifest)));
  int32_t ignored[3];
  return unloaded.grid(sizes, ignored);
}

Status LoadedKernel::bind(const Device &device, SharedManifest manifest) {
  parsed = std::move(manifest);
  for (int axis = 0; axis < 3; ++axis)
    gridLimits[axis] = device.gridLimit(axis);
  if (!findOperator(parsed->op))
    return Status::invalid("operator", parsed->op, "must be an operator of this library");
  NSA_RETURN_IF_ERROR(bindArguments());
  return bindGrid(device.multiprocessors());
}

Status LoadedKernel::bindArguments() {
  if (static_cast<size_t>(parsed->slotCount()) > kMaxSlots)
    return Status::invalid("param", std::to_string(parsed->slotCount()) + " slots",
                           "a kernel takes at most " + std::to_string(kMaxSlots));
  for (const ManifestParam &param : parsed->params) {
    Argument argument;
    if (param.kind == ManifestParam::Kind::kView || param.kind == ManifestParam::Kind::kMap) {
      NSA_ASSIGN_OR_RETURN(argument, param.kind == ManifestParam::Kind::kMap ? bindMap(param) : bindView(param));
    } else {
      argument.index = findRule(kScalars, scalarRuleAt, param.name);
      if (argument.index < 0)
        return wrongParam(param, "no operator has such a number", namesOf("numbers", kScalars, scalarRuleAt));
      if (kindOf(scalarRuleAt(argument.index).type) != param.kind)
        return wrongParam(param, param.kind == ManifestParam::Kind::kF32 ? "must be i32" : "must be f32");
    }
    argument.kind = param.kind;
    arguments.push_back(argument);
  }
  return Status::ok();
}

Result<LoadedKernel::Argument> LoadedKernel::bindView(const ManifestParam &param) const {
  Argument argument;
  argument.index = findRule(kViews, viewRuleAt, param.name);
  if (argument.index < 0)
    return wrongParam(param, "no operator has such a tensor", namesOf("tensors", kViews, viewRuleAt));
  NSA_RETURN_IF_ERROR(checkOperand(param, static_cast<View>(argument.index)));
  const ViewRule &rule = viewRuleAt(argument.index);
  if (param.rank != rule.rank)
    return wrongParam(param, "must be of rank " + std::to_string(rule.rank));
  NSA_ASSIGN_OR_RETURN(argument.dtype, bindType(param, rule.elements));
  argument.rank = param.rank;
  argument.isPaged = param.isPaged();
  return argument;
}

Result<LoadedKernel::Argument> LoadedKernel::bindMap(const ManifestParam &param) const {
  Argument argument;
  if (parsed->target == kCpuTarget)
    return wrongParam(param, "tensor maps are for GPUs", "");
  argument.index = findRule(kViews, viewRuleAt, param.view);
  if (argument.index < 0)
    return wrongParam(param, "no operator has a tensor '" + param.view + "'", namesOf("tensors", kViews, viewRuleAt));
  if (!mayHaveTensorMap(static_cast<View>(argument.index)))
    return wrongParam(param, "must be of rows of queries, keys or values (q, k or v), not of '" + param.view + "'", "");
  NSA_RETURN_IF_ERROR(checkOperand(param, static_cast<View>(argument.index)));
  NSA_ASSIGN_OR_RETURN(argument.dtype, bindType(param, viewRuleAt(argument.index).elements));
  argument.map = &param;
  return argument;
}

// A plan binds no tensor of another operator, and its view would be null.
Status LoadedKernel::checkOperand(const ManifestParam &param, View view) const {
  const OperatorDef &def = *findOperator(parsed->op);
  return def.mayTake(view) ? Status::ok()
                           : wrongParam(param, "the operator '" + parsed->op + "' has no such tensor",
                                        "the operator's tensors are " + joined(def.viewNames(), ", "));
}

// Which of the problem's types a view has, the plan says that binds a tensor.
Result<DType> LoadedKernel::bindType(const ManifestParam &param, ViewElements elements) const {
  std::string known;
  const auto allow = [&](std::string_view name) {
    known.append(known.empty() ? "" : " or ").append(name);
    return param.dtype == name;
  };
  bool isAllowed = false;
  if (elements != ViewElements::kOfTensor)
    isAllowed = allow(dtypeName(elements == ViewElements::kIndex ? DType::kI32 : DType::kF32));
  else
    for (const ProblemField field : {ProblemField::kDType, ProblemField::kCacheDType, ProblemField::kGradDType})
      if (const auto own = parsed->fixed.find(std::string(problemFieldName(field))); own != parsed->fixed.end())
        isAllowed = allow(own->second) || isAllowed;
  return isAllowed ? parseDType(param.dtype) : wrongParam(param, "must be of dtype " + known);
}

Status LoadedKernel::checkType(View view, DType dtype) const {
  for (const Argument &argument : arguments)
    if (argument.kind == ManifestParam::Kind::kView && argument.index == static_cast<int>(view) &&
        argument.dtype != dtype)
      return Status::invalid("param " + std::string(viewRule(view).name), std::string(dtypeName(argument.dtype)),
                             "must be " + std::string(dtypeName(dtype)) + ", as the tensor that the plan binds");
  return Status::ok();
}

Status LoadedKernel::bindGrid(int64_t multiprocessors) {
  for (int axis = 0; axis < 3; ++axis) {
    const Expression &formula = parsed->grid[axis];
    if (formula.names().size() > kMaxGridNames)
      return Status::invalid("grid", formula.text(),
                             "a formula takes at most " + std::to_string(kMaxGridNames) + " names");
    for (const std::string &name : formula.names()) {
      GridName bound;
      const GridSizeRule *size = findGridSize(name);
      auto fixed = parsed->fixed.find(name);
      auto config = parsed->config.find(name);
      if (size) {
        bound.size = size->size;
        bound.constant = multiprocessors;
      } else if (fixed != parsed->fixed.end() || config != parsed->config.end()) {
        const std::string &text = fixed != parsed->fixed.end() ? fixed->second : config->second;
        if (!parseInteger(text, bound.constant) && !lookupEnumerator(text, bound.constant))
          return Status::invalid("grid", formula.text(), "'" + name + "' is '" + text + "', which is no number");
      } else if (!lookupEnumerator(name == "op" ? parsed->op : name, bound.constant)) {
        return Status::invalid("grid", formula.text(), "'" + name + "' is not known at launch");
      }
      gridNames[axis].push_back(bound);
    }
  }
  return Status::ok();
}

Status LoadedKernel::grid(const GridSizes &sizes, int32_t (&result)[3]) const {
  for (int axis = 0; axis < 3; ++axis) {
    int64_t values[kMaxGridNames];
    const std::vector<GridName> &names = gridNames[axis];
    for (size_t i = 0; i < names.size(); ++i)
      values[i] = names[i].size ? sizes.*names[i].size : names[i].constant;
    int64_t value = 0;
    if (parsed->grid[axis].isName()) {
      value = values[0];
    } else {
      NSA_ASSIGN_OR_RETURN(value, parsed->grid[axis].evaluate(std::span<const int64_t>(values, names.size())));
    }
    if (value < 0 || value > gridLimits[axis]) {
      return Status(ErrorInfo{.code = ErrorCode::kUnsupported,
                              .field = std::string("grid.") + "xyz"[axis],
                              .value = std::to_string(value),
                              .rule = parsed->grid[axis].text() + " must be from 0 to " +
                                      std::to_string(gridLimits[axis]) + " on this device",
                              .hint = "split the batch into several calls"});
    }
    result[axis] = static_cast<int32_t>(value);
  }
  return Status::ok();
}

Status LoadedKernel::fillArguments(const KernelCall &call, const void *statusWord, Slots &slots) const {
  const ViewSlots status = {statusWord, {1}, 0, nullptr, 0, 0};
  uint64_t *next = slots.data();
  for (const Argument &argument : arguments) {
    if (argument.kind == ManifestParam::Kind::kMap) {
      NSA_RETURN_IF_ERROR(fillMap(call, argument, next));
      next += ManifestParam::kMapSlots;
      continue;
    }
    if (argument.kind != ManifestParam::Kind::kView) {
      *next++ = call.scalars[static_cast<size_t>(argument.index)];
      continue;
    }
    const ViewSlots &view =
        argument.index == static_cast<int>(View::kStatus) ? status : call.views[static_cast<size_t>(argument.index)];
    if (view.data && argument.isPaged != (view.table != nullptr))
      return wrongPages(viewRuleAt(argument.index).name, argument.isPaged);
    *next++ = reinterpret_cast<uint64_t>(view.data);
    for (int i = 0; i < argument.rank; ++i)
      *next++ = static_cast<uint64_t>(view.strides[static_cast<size_t>(i)]);
    *next++ = view.flags;
    if (argument.isPaged) {
      *next++ = reinterpret_cast<uint64_t>(view.table);
      *next++ = static_cast<uint64_t>(view.tableStride);
    }
  }
  // A struct that holds maps ends at a multiple of their alignment, and all of it is passed.
  static_assert(kMaxSlots % ManifestParam::kMapSlots == 0);
  for (; (next - slots.data()) % ManifestParam::kMapSlots != 0; ++next)
    *next = 0;
  return Status::ok();
}

Status LoadedKernel::fillMap(const KernelCall &call, const Argument &argument, uint64_t *slots) const {
  const std::optional<TensorMapShape> shape =
      tensorMapShape(call, static_cast<View>(argument.index), argument.dtype, *argument.map);
  if (shape)
    return kernel->writeMap(*shape, slots);
  std::fill_n(slots, ManifestParam::kMapSlots, 0);
  return Status::ok();
}

Status LoadedKernel::launch(const KernelCall &call, const void *statusWord, void *workspace, void *stream) const {
  int32_t size[3];
  NSA_RETURN_IF_ERROR(grid(call.grid, size));
  if (size[0] == 0 || size[1] == 0 || size[2] == 0)
    return Status::ok();
  Slots slots;
  NSA_RETURN_IF_ERROR(fillArguments(call, statusWord, slots));
  return kernel->launch(slots.data(), size, workspace, stream);
}

std::map<std::string, std::string> LoadedKernel::evidence() const {
  std::map<std::string, std::string> result = kernel->evidence();
  result.insert(parsed->evidence.begin(), parsed->evidence.end());
  return result;
}

} // namespace nsa
