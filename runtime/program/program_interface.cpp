#include "runtime/program/program_interface.h"

#include "compiler/language/syntax/Suggestion.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <array>
#include <bit>

namespace nsa {

std::string nameHint(std::string_view name, std::span<const std::string_view> declared) {
  const std::string_view nearest = language::nearestWord(name, declared);
  return !nearest.empty()   ? "did you mean '" + std::string(nearest) + "'?"
         : declared.empty() ? "it declares none"
                            : "it declares " + joined(declared, ", ");
}

Result<ProgramSize> ProgramSize::make(Expression formula,
                                      const std::function<std::optional<int64_t>(const std::string &name)> &constant,
                                      const std::function<int(const std::string &name)> &scalar) {
  ProgramSize size;
  if (formula.names().size() > kMostNames)
    return Status::invalid("size", formula.text(), "is made of more than " + std::to_string(kMostNames) + " names");
  for (const std::string &name : formula.names()) {
    Name &resolved = size.names.emplace_back();
    if (const std::optional<int64_t> value = constant(name))
      resolved.constant = *value;
    else if ((resolved.scalar = scalar(name)) < 0)
      return Status::invalid("size", formula.text(),
                             "'" + name + "' is no fixed value, no constant of fixed values and no scalar of i32");
  }
  size.formula = std::move(formula);
  return size;
}

bool ProgramSize::isKnown(const KnownScalars &scalars) const {
  return std::ranges::all_of(names, [&](const Name &name) { return name.scalar < 0 || scalars.has(name.scalar); });
}

Result<int64_t> ProgramSize::evaluate(const KnownScalars &scalars) const {
  std::array<int64_t, kMostNames> values = {};
  for (size_t i = 0; i < names.size(); ++i)
    values[i] = names[i].scalar < 0 ? names[i].constant : scalars.integer(names[i].scalar);
  return formula.evaluate(std::span(values).first(names.size()));
}

Result<std::vector<int64_t>> ProgramTensor::shape(const KnownScalars &scalars) const {
  std::vector<int64_t> result;
  for (const Dimension &dimension : dimensions) {
    if (!dimension.extent)
      return Status::invalid("tensor " + name, "'" + dimension.label + "'",
                             "has no extent, so nothing says how large the tensor is",
                             "declare it, for example " + name + "[" + dimension.label + ": n]");
    NSA_ASSIGN_OR_RETURN(const int64_t extent, dimension.extent->evaluate(scalars));
    if (extent < 0 || extent > INT32_MAX)
      return Status::invalid("tensor " + name, "extent " + std::to_string(extent), "must be from 0 to 2147483647");
    result.push_back(extent);
  }
  return result;
}

std::string ProgramTensor::dimensionsText() const {
  return "[" +
         joined(dimensions, ", ",
                [](const Dimension &dimension) {
                  return dimension.label + (dimension.extent ? ": " + dimension.extent->text() : "");
                }) +
         "]";
}

uint64_t ProgramScalar::slotOf(double value) const {
  return type == ScalarType::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                  : static_cast<uint32_t>(static_cast<int32_t>(value));
}

double ProgramScalar::valueOf(uint64_t slot) const {
  const auto bits = static_cast<uint32_t>(slot);
  return type == ScalarType::kF32 ? static_cast<double>(std::bit_cast<float>(bits))
                                  : static_cast<double>(static_cast<int32_t>(bits));
}

KnownScalars ProgramInterface::given() const {
  KnownScalars result;
  for (size_t i = 0; i < scalarList.size(); ++i)
    if (scalarList[i].given)
      result.set(static_cast<int>(i), *scalarList[i].given);
  return result;
}

int ProgramInterface::findTensor(std::string_view name) const {
  const auto found = std::ranges::find(tensorList, name, &ProgramTensor::name);
  return found == tensorList.end() ? -1 : static_cast<int>(found - tensorList.begin());
}

int ProgramInterface::findScalar(std::string_view name) const {
  const auto found = std::ranges::find(scalarList, name, &ProgramScalar::name);
  return found == scalarList.end() ? -1 : static_cast<int>(found - scalarList.begin());
}

Status ProgramInterface::named(const Status &status) const {
  if (status.isOk())
    return Status::ok();
  ErrorInfo info = status.error();
  info.message = "program " + kernel + ": " + info.sentence();
  return Status(std::move(info));
}

Status ProgramInterface::statusOf(DeviceReport report) const {
  if (report.code == 0)
    return Status::ok(); // before any text: every run on the CPU asks
  const auto found = std::ranges::find(codeList, report.code, &ProgramCode::number);
  const bool isOwn = found != codeList.end();
  // A name that the library `status` declares.
  const std::string name = isOwn ? found->name : std::string(deviceStatusName(report.code));
  const std::string program = "the program " + kernel + " (" + (isOwn ? found->place : file) + ") ";
  ErrorInfo info{.code = ErrorCode::kDeviceError, .field = "status"};
  info.value = (name.empty() ? std::to_string(report.code) : name) + " at " + std::to_string(report.place);
  if (name.empty()) {
    info.rule = program + "reported a code that it does not declare";
    info.hint = "declare it: code name = " + std::to_string(report.code);
  } else {
    info.rule = program + "reported it" + (isOwn && !found->meaning.empty() ? ": " + found->meaning : "");
    info.hint = "'report " + name + "' in " + file + " or its libraries says when";
  }
  return Status(std::move(info));
}

Status ProgramInterface::check(const Manifest &manifest) const {
  return manifest.templateName == kernel
             ? Status::ok()
             : Status::invalid("template", manifest.templateName, "must be the program " + kernel);
}

Result<ArgumentNames::View> ProgramInterface::view(const Manifest &, const ManifestParam &param) const {
  const int place = findTensor(param.name);
  if (place < 0)
    return param.name == kStatusTensor
               ? Result<View>(View{kStatusPlace, DType::kI32})
               : wrongParam(param, "the program " + kernel + " declares no such tensor",
                            "a tensor that a library declares has to be declared by the program, too");
  const ProgramTensor &tensor = tensorList[static_cast<size_t>(place)];
  if (param.rank != tensor.coordinates)
    return wrongParam(param, "must be of rank " + std::to_string(tensor.coordinates));
  if (param.dtype != dtypeName(tensor.dtype))
    return wrongParam(param, "must be of dtype " + std::string(dtypeName(tensor.dtype)));
  return View{place, tensor.dtype};
}

Result<ArgumentNames::View> ProgramInterface::mappedView(const Manifest &, const ManifestParam &param) const {
  return wrongParam(param, "a program has no tensor maps");
}

Result<int> ProgramInterface::scalar(const Manifest &, const ManifestParam &param) const {
  const int place = findScalar(param.name);
  if (place < 0)
    return wrongParam(param, "the program " + kernel + " declares no such scalar",
                      "a scalar that a library declares has to be declared by the program, too");
  const bool isReal = scalarList[static_cast<size_t>(place)].type == ScalarType::kF32;
  if (isReal != (param.kind == ManifestParam::Kind::kF32))
    return wrongParam(param, isReal ? "must be f32" : "must be i32");
  return place;
}

std::optional<GridSource> ProgramInterface::gridSource(std::string_view name) const {
  const int place = findScalar(name);
  if (place < 0 || scalarList[static_cast<size_t>(place)].type == ScalarType::kF32)
    return std::nullopt;
  return GridSource{.scalar = place};
}

std::optional<int64_t> ProgramInterface::word(const Manifest &, std::string_view name) const {
  int64_t number = 0;
  return lookupEnumerator(name, number) ? std::optional(number) : std::nullopt;
}

} // namespace nsa
