#include "runtime/device/loaded_kernel.h"

#include "runtime/base/text.h"

#include <algorithm>

namespace nsa {

namespace {

constexpr size_t kMaxGridNames = 32; // of one formula, as a launch keeps them on its stack; attention uses 3

// A plan binds tensors for the kernels that it chose, so this is no error of the caller's.
Status wrongPages(std::string_view view, bool isPaged) {
  return Status::error(ErrorCode::kInternal,
                       "param " + std::string(view) +
                           (isPaged ? ": the kernel reads pages, but the call has no block table"
                                    : ": the call has a block table, but the kernel reads no pages"));
}

} // namespace

Result<std::shared_ptr<const LoadedKernel>> LoadedKernel::load(Device &device, std::string content,
                                                               SharedManifest manifest,
                                                               std::span<const std::byte> binary,
                                                               const ArgumentNames &names) {
  std::shared_ptr<LoadedKernel> result(new LoadedKernel);
  result->contentId = std::move(content);
  NSA_RETURN_IF_ERROR(result->bind(device, std::move(manifest), names));
  NSA_ASSIGN_OR_RETURN(result->kernel, device.load(*result->parsed, binary));
  return std::shared_ptr<const LoadedKernel>(std::move(result));
}

Status LoadedKernel::check(const Device &device, SharedManifest manifest, const LaunchSizes &sizes,
                           const ArgumentNames &names) {
  LoadedKernel unloaded;
  NSA_RETURN_IF_ERROR(unloaded.bind(device, std::move(manifest), names));
  int32_t ignored[3];
  return unloaded.grid(sizes, ignored);
}

Status LoadedKernel::bind(const Device &device, SharedManifest manifest, const ArgumentNames &names) {
  parsed = std::move(manifest);
  for (int axis = 0; axis < 3; ++axis)
    gridLimits[axis] = device.gridLimit(axis);
  statusView = names.statusView();
  NSA_RETURN_IF_ERROR(names.check(*parsed));
  NSA_RETURN_IF_ERROR(bindArguments(names));
  return bindGrid(device.multiprocessors(), names);
}

Status LoadedKernel::bindArguments(const ArgumentNames &names) {
  if (static_cast<size_t>(parsed->slotCount()) > kMaxSlots)
    return Status::invalid("param", std::to_string(parsed->slotCount()) + " slots",
                           "a kernel takes at most " + std::to_string(kMaxSlots));
  for (const ManifestParam &param : parsed->params) {
    NSA_ASSIGN_OR_RETURN(Argument argument, bindArgument(param, names));
    arguments.push_back(argument);
  }
  return Status::ok();
}

Result<LoadedKernel::Argument> LoadedKernel::bindArgument(const ManifestParam &param,
                                                          const ArgumentNames &names) const {
  Argument argument;
  argument.kind = param.kind;
  if (param.kind != ManifestParam::Kind::kView && param.kind != ManifestParam::Kind::kMap) {
    NSA_ASSIGN_OR_RETURN(argument.index, names.scalar(*parsed, param));
    return argument;
  }
  const bool isMap = param.kind == ManifestParam::Kind::kMap;
  NSA_ASSIGN_OR_RETURN(const ArgumentNames::View view,
                       isMap ? names.mappedView(*parsed, param) : names.view(*parsed, param));
  argument.index = view.index;
  argument.dtype = view.dtype;
  if (isMap) {
    argument.map = &param;
    return argument;
  }
  argument.rank = param.rank;
  argument.isPaged = param.isPaged();
  return argument;
}

Status LoadedKernel::checkType(View view, DType dtype) const {
  for (const Argument &argument : arguments)
    if (argument.kind == ManifestParam::Kind::kView && argument.index == static_cast<int>(view) &&
        argument.dtype != dtype)
      return Status::invalid("param " + std::string(viewRule(view).name), std::string(dtypeName(argument.dtype)),
                             "must be " + std::string(dtypeName(dtype)) + ", as the tensor that the plan binds");
  return Status::ok();
}

Status LoadedKernel::bindGrid(int64_t multiprocessors, const ArgumentNames &names) {
  for (int axis = 0; axis < 3; ++axis) {
    const Expression &formula = parsed->grid[axis];
    if (formula.names().size() > kMaxGridNames)
      return Status::invalid("grid", formula.text(),
                             "a formula takes at most " + std::to_string(kMaxGridNames) + " names");
    for (const std::string &name : formula.names()) {
      GridName bound;
      auto fixed = parsed->fixed.find(name);
      auto config = parsed->config.find(name);
      if (const std::optional<GridSource> source = names.gridSource(name)) {
        bound.source = *source;
        bound.constant = multiprocessors;
      } else if (fixed != parsed->fixed.end() || config != parsed->config.end()) {
        const std::string &text = fixed != parsed->fixed.end() ? fixed->second : config->second;
        if (!parseInteger(text, bound.constant) && !lookupEnumerator(text, bound.constant))
          return Status::invalid("grid", formula.text(), "'" + name + "' is '" + text + "', which is no number");
      } else if (const std::optional<int64_t> word = names.word(*parsed, name)) {
        bound.constant = *word;
      } else {
        return Status::invalid("grid", formula.text(), "'" + name + "' is not known at launch");
      }
      gridNames[axis].push_back(bound);
    }
  }
  return Status::ok();
}

Status LoadedKernel::grid(const LaunchSizes &sizes, int32_t (&result)[3]) const {
  for (int axis = 0; axis < 3; ++axis) {
    int64_t values[kMaxGridNames];
    const std::vector<GridName> &names = gridNames[axis];
    for (size_t i = 0; i < names.size(); ++i)
      values[i] = names[i].value(sizes);
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
    const ViewSlots &view = argument.index == statusView ? status : call.views[static_cast<size_t>(argument.index)];
    if (view.data && argument.isPaged != (view.table != nullptr))
      return wrongPages(parsed->params[static_cast<size_t>(&argument - arguments.data())].name, argument.isPaged);
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
  NSA_RETURN_IF_ERROR(grid(call.sizes(), size));
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
