#include "tools/nsa/files/safetensors.h"

#include "runtime/json/json_input.h"

#include <algorithm>
#include <bit>

namespace nsa::tools {
namespace {

static_assert(std::endian::native == std::endian::little,
              "lengths and tensors are stored little-endian and copied as they are");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000; // the format's own limit

struct FileType {
  std::string_view name;
  uint64_t bytes;
};
// All types of the format; a file may hold a type that no operator computes with.
constexpr FileType kFileTypes[] = {{"F64", 8},  {"F32", 4},     {"F16", 2},     {"BF16", 2}, {"I64", 8}, {"I32", 4},
                                   {"I16", 2},  {"I8", 1},      {"U64", 8},     {"U32", 4},  {"U16", 2}, {"U8", 1},
                                   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"C64", 8}};

struct UsableType {
  std::string_view name;
  DType dtype;
};
constexpr UsableType kUsableTypes[] = {
    {"BF16", DType::kBf16}, {"F16", DType::kF16}, {"F32", DType::kF32}, {"I32", DType::kI32}};

Status malformed(const std::string &path, const std::string &reason) {
  return Status::error(ErrorCode::kInvalidArgument, path + " is not a valid safetensors file: " + reason);
}

// One entry of the header. Offsets in it count from the end of the header, those returned from the start of the file.
Result<SafetensorsFile::Entry> parseEntry(const std::string &path, const std::string &name, const nlohmann::json &value,
                                          uint64_t dataBegin, uint64_t fileBytes) {
  const std::string where = "tensor \"" + name + "\"";
  if (!value.is_object())
    return malformed(path, where + " must be an object");
  for (const auto &[key, unused] : value.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return malformed(path, where + " has the unknown key \"" + key + "\" (known: dtype, shape, data_offsets)");
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key))
      return malformed(path, where + " lacks " + key);

  SafetensorsFile::Entry entry;
  if (!value["dtype"].is_string())
    return malformed(path, where + ": dtype must be a string");
  entry.dtype = value["dtype"].get<std::string>();
  const auto *type = std::ranges::find(kFileTypes, entry.dtype, &FileType::name);
  if (type == std::end(kFileTypes))
    return malformed(path, where + " has the unknown dtype \"" + entry.dtype + "\"");

  if (!value["shape"].is_array())
    return malformed(path, where + ": shape must be an array");
  uint64_t expected = type->bytes;
  for (const nlohmann::json &extent : value["shape"]) {
    if (!extent.is_number_unsigned())
      return malformed(path, where + ": shape holds " + extent.dump() + ", extents must be integers from 0 up");
    const uint64_t number = extent.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX) || __builtin_mul_overflow(expected, number, &expected))
      return malformed(path, where + ": shape " + value["shape"].dump() + " has more elements than memory can hold");
    entry.shape.push_back(static_cast<int64_t>(number));
  }

  const nlohmann::json &offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return malformed(path, where + ": data_offsets must be two integers from 0 up");
  const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>(),
                 available = fileBytes - dataBegin;
  if (begin > end)
    return malformed(path, where + ": data_offsets " + offsets.dump() + " end before they begin");
  if (end > available)
    return malformed(path, where + ": data_offsets " + offsets.dump() + " leave the file, which has " +
                               std::to_string(available) + " bytes of data (is it truncated?)");
  if (end - begin != expected)
    return malformed(path, where + ": " + entry.dtype + " " + shapeText(entry.shape) + " takes " +
                               std::to_string(expected) + " bytes, data_offsets give " + std::to_string(end - begin));
  entry.begin = dataBegin + begin;
  entry.end = dataBegin + end;
  return entry;
}

// The format wants the data covered without overlap and without holes.
Status checkCoverage(const std::string &path, const std::map<std::string, SafetensorsFile::Entry> &tensors,
                     uint64_t dataBegin, uint64_t fileBytes) {
  std::vector<std::pair<const std::string *, const SafetensorsFile::Entry *>> order;
  for (const auto &[name, entry] : tensors)
    order.emplace_back(&name, &entry);
  std::ranges::sort(order, {}, [](const auto &each) { return std::pair(each.second->begin, each.second->end); });
  uint64_t covered = dataBegin;
  std::string before = "the header";
  for (const auto &[name, entry] : order) {
    if (entry->begin < covered)
      return malformed(path, "tensor \"" + *name + "\" overlaps " + before);
    if (entry->begin > covered)
      return malformed(path, std::to_string(entry->begin - covered) + " bytes between " + before + " and tensor \"" +
                                 *name + "\" belong to no tensor");
    covered = entry->end;
    before = "tensor \"" + *name + "\"";
  }
  if (covered != fileBytes)
    return malformed(path, std::to_string(fileBytes - covered) + " bytes after " + before + " belong to no tensor");
  return Status::ok();
}

} // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  NSA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  if (file.size() < kLengthBytes)
    return malformed(path, "it has " + std::to_string(file.size()) + " bytes, the length of the header alone takes 8");
  uint64_t headerBytes = 0;
  NSA_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(&headerBytes, 1))));
  if (headerBytes > kMaxHeaderBytes)
    return malformed(path, "its header claims " + std::to_string(headerBytes) + " bytes; the format allows 100000000");
  if (headerBytes > file.size() - kLengthBytes)
    return malformed(path, "its header claims " + std::to_string(headerBytes) + " bytes, the file has " +
                               std::to_string(file.size() - kLengthBytes) + " behind the length (is it truncated?)");
  std::string header(headerBytes, '\0');
  NSA_RETURN_IF_ERROR(file.read(kLengthBytes, std::as_writable_bytes(std::span(header))));
  NSA_ASSIGN_OR_RETURN(nlohmann::json json, parseJsonObject(header, "the header of " + path));

  SafetensorsFile result;
  result.path = path;
  const uint64_t dataBegin = kLengthBytes + headerBytes;
  for (const auto &[name, value] : json.items()) {
    if (name == "__metadata__")
      continue;
    NSA_ASSIGN_OR_RETURN(Entry entry, parseEntry(path, name, value, dataBegin, file.size()));
    result.tensors.emplace(name, std::move(entry));
  }
  NSA_RETURN_IF_ERROR(checkCoverage(path, result.tensors, dataBegin, file.size()));
  return result;
}

Result<HostTensor> SafetensorsFile::read(const std::string &name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    std::string list;
    for (const auto &[known, unused] : tensors)
      list += (list.empty() ? "" : ", ") + known;
    return Status::error(ErrorCode::kInvalidArgument, path + " has no tensor \"" + name + "\"",
                         "it has: " + (list.empty() ? "none" : list));
  }
  const Entry &entry = found->second;
  const auto *type = std::ranges::find(kUsableTypes, entry.dtype, &UsableType::name);
  if (type == std::end(kUsableTypes))
    return Status::invalid(name, entry.dtype, "must be of dtype BF16, F16, F32 or I32", "convert it in " + path);
  NSA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  HostTensor tensor = HostTensor::make(type->dtype, entry.shape);
  NSA_RETURN_IF_ERROR(file.read(entry.begin, tensor.bytes));
  return tensor;
}

Status writeSafetensors(Result<OutputFile> file,
                        const std::vector<std::pair<std::string, const HostTensor *>> &tensors) {
  if (!file)
    return file.status();
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  uint64_t offset = 0;
  for (const auto &[name, tensor] : tensors) {
    const auto *type = std::ranges::find(kUsableTypes, tensor->dtype, &UsableType::dtype);
    json[name] = {
        {"dtype", type->name}, {"shape", tensor->shape}, {"data_offsets", {offset, offset + tensor->bytes.size()}}};
    offset += tensor->bytes.size();
  }
  std::string header = json.dump();
  header.resize((header.size() + 7) / 8 * 8, ' '); // so that the data is aligned for those who map the file
  const uint64_t headerBytes = header.size();

  NSA_RETURN_IF_ERROR(file->write(std::as_bytes(std::span(&headerBytes, 1))));
  NSA_RETURN_IF_ERROR(file->write(std::as_bytes(std::span(header))));
  for (const auto &[name, tensor] : tensors)
    NSA_RETURN_IF_ERROR(file->write(tensor->bytes));
  return file->commit();
}

} // namespace nsa::tools
