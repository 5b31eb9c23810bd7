// The functions that nsa/program.h declares.
#include "runtime/include/nsa/program.h"

#include "runtime/capi/convert.h"
#include "runtime/capi/handles.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/engine/program.h"

#include <array>

using namespace nsa;
using namespace nsa::capi;

namespace {

// A program's handle is the program itself.
const Program *programOf(const nsa_program *handle) { return reinterpret_cast<const Program *>(handle); }

// An engine, a program's text and its values.
struct ProgramRequest {
  Engine *engine = nullptr;
  ProgramSource::Pointer source;
  ProgramValues values;
};

Status readSource(const nsa_program_source *source, ProgramSource::Pointer &result) {
  nsa_program_source storage;
  NSA_RETURN_IF_ERROR(readStruct(source, storage, "source"));
  if (!source->path == !source->text)
    return Status::invalid("source", source->path ? "path and text" : "neither path nor text",
                           "must have either a path or a text");
  NSA_ASSIGN_OR_RETURN(result, source->path ? ProgramSource::read(source->path)
                                            : ProgramSource::of(source->name ? source->name : "program", source->text));
  return Status::ok();
}

Result<ProgramRequest> readRequest(nsa_engine *engine, const nsa_program_source *source,
                                   const nsa_program_value *values, size_t count) {
  ProgramRequest request;
  NSA_ASSIGN_OR_RETURN(request.engine, engineOf(engine));
  NSA_RETURN_IF_ERROR(readSource(source, request.source));
  if (count != 0)
    NSA_RETURN_IF_ERROR(requirePointer(values, "values"));
  for (size_t i = 0; i < count; ++i) {
    if (!values[i].name || !values[i].value)
      return nullError(values[i].name ? "values.value" : "values.name");
    if (!request.values.emplace(values[i].name, values[i].value).second)
      return Status::invalid(values[i].name, values[i].value, "stands twice in values");
  }
  return request;
}

// The names of one call, without memory of its own.
template <typename Item, size_t kMost> class CallList {
public:
  // Checks the C array that `add` will go through.
  static Status check(const void *array, size_t length, const char *what) {
    if (length > kMost)
      return Status::invalid(what, std::to_string(length), "a program takes at most " + std::to_string(kMost));
    return length != 0 ? requirePointer(array, what) : Status::ok();
  }
  Status add(const char *name, Item item, const char *what) {
    if (!name)
      return nullError(std::string(what) + ".name");
    items[count++] = item;
    return Status::ok();
  }
  std::span<const Item> all() const { return std::span(items).first(count); }

private:
  std::array<Item, kMost> items;
  size_t count = 0;
};

// The tensors and scalars of one call.
struct ProgramArguments {
  CallList<NamedTensor, ProgramInterface::kMostTensors> bound;
  CallList<NamedScalar, ProgramInterface::kMostScalars> given;

  Status read(const nsa_program_tensor *tensors, size_t tensorCount, const nsa_program_scalar *scalars,
              size_t scalarCount) {
    NSA_RETURN_IF_ERROR(bound.check(tensors, tensorCount, "tensors"));
    NSA_RETURN_IF_ERROR(given.check(scalars, scalarCount, "scalars"));
    for (size_t i = 0; i < tensorCount; ++i) {
      NamedTensor named{.name = tensors[i].name ? tensors[i].name : "", .tensor = {}};
      NSA_RETURN_IF_ERROR(convert(named.name, tensors[i].tensor, named.tensor));
      NSA_RETURN_IF_ERROR(bound.add(tensors[i].name, named, "tensors"));
    }
    for (size_t i = 0; i < scalarCount; ++i)
      NSA_RETURN_IF_ERROR(
          given.add(scalars[i].name, {scalars[i].name ? scalars[i].name : "", scalars[i].value}, "scalars"));
    return Status::ok();
  }
};

} // namespace

nsa_status nsa_program_create(nsa_engine *engine, const nsa_program_source *source, const nsa_program_value *values,
                              size_t valueCount, void *stream, nsa_program **program, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(program, "program"));
    *program = nullptr;
    NSA_ASSIGN_OR_RETURN(const ProgramRequest request, readRequest(engine, source, values, valueCount));
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<Program> made,
                         request.engine->program(request.source, request.values, stream));
    *program = reinterpret_cast<nsa_program *>(made.release());
    return Status::ok();
  });
}

void nsa_program_destroy(nsa_program *program) noexcept { delete programOf(program); }

nsa_status nsa_program_workspace_size(const nsa_program *program, size_t *bytes, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(program, "program"));
    NSA_RETURN_IF_ERROR(requirePointer(bytes, "bytes"));
    *bytes = programOf(program)->workspaceBytes();
    return Status::ok();
  });
}

nsa_status nsa_program_run(const nsa_program *program, const nsa_program_tensor *tensors, size_t tensorCount,
                           const nsa_program_scalar *scalars, size_t scalarCount, void *workspace,
                           size_t workspaceBytes, void *stream, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(program, "program"));
    ProgramArguments call;
    NSA_RETURN_IF_ERROR(call.read(tensors, tensorCount, scalars, scalarCount));
    return programOf(program)->run(call.bound.all(), call.given.all(), workspace, workspaceBytes, stream);
  });
}

nsa_status nsa_program_check(const nsa_program *program, const nsa_program_tensor *tensors, size_t tensorCount,
                             const nsa_program_scalar *scalars, size_t scalarCount, void *stream,
                             nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(program, "program"));
    ProgramArguments call;
    NSA_RETURN_IF_ERROR(call.read(tensors, tensorCount, scalars, scalarCount));
    return programOf(program)->check(call.bound.all(), call.given.all(), stream);
  });
}

nsa_status nsa_program_compare(const nsa_program *program, const nsa_program_tensor *tensors, size_t tensorCount,
                               const nsa_program_scalar *scalars, size_t scalarCount, void *workspace,
                               size_t workspaceBytes, void *stream, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(program, "program"));
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    ProgramArguments call;
    NSA_RETURN_IF_ERROR(call.read(tensors, tensorCount, scalars, scalarCount));
    return giveText(programOf(program)->compare(call.bound.all(), call.given.all(), workspace, workspaceBytes, stream),
                    json);
  });
}

nsa_status nsa_program_status(const nsa_program *program, void *stream, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(program, "program"));
    return programOf(program)->status(stream);
  });
}

nsa_status nsa_program_describe(const nsa_program *program, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(program, "program"));
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    return giveText(programOf(program)->describe(), json);
  });
}

nsa_status nsa_program_explain(nsa_engine *engine, const nsa_program_source *source, const nsa_program_value *values,
                               size_t valueCount, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    NSA_ASSIGN_OR_RETURN(const ProgramRequest request, readRequest(engine, source, values, valueCount));
    return giveText(request.engine->explainProgram(request.source, request.values), json);
  });
}

nsa_status nsa_program_tune(nsa_engine *engine, const nsa_program_source *source, const nsa_program_value *values,
                            size_t valueCount, double budgetSeconds, char **report, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    if (report)
      *report = nullptr;
    NSA_ASSIGN_OR_RETURN(const ProgramRequest request, readRequest(engine, source, values, valueCount));
    Result<std::string> made = request.engine->tuneProgram(request.source, request.values, budgetSeconds);
    return report || !made ? (made ? giveText(made, report) : made.status()) : Status::ok();
  });
}
