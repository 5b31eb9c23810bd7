#include "runtime/engine/compile/compiler_library.h"

#include "runtime/engine/compile/library_place.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/process/process.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <span>

namespace nsa {

namespace {

// How often a kernel is compiled when its templates change meanwhile.
constexpr int kMostCompilations = 3;

// A call into the library, and what a fork makes of it: a child has a copy of LLVM's locks as they were, and those that
// another thread of the parent held never open. So calls are counted, and a child whose parent was in a call at that
// moment is refused instead of left hanging.
class LibraryCall {
public:
  LibraryCall() {
    const uint64_t own = uint64_t{processGeneration()} << kGenerationShift;
    uint64_t seen = calls.load();
    for (;;) {
      const bool parents = (seen ^ own) >> kGenerationShift != 0;
      if (parents && seen << kGenerationShift != 0)
        stuck.store(true);
      if (calls.compare_exchange_weak(seen, (parents ? own : seen) + 1))
        return;
    }
  }
  ~LibraryCall() { calls.fetch_sub(1); }
  LibraryCall(const LibraryCall &) = delete;
  LibraryCall &operator=(const LibraryCall &) = delete;

  Status status() const {
    if (!stuck.load())
      return Status::ok();
    return Status::error(ErrorCode::kUnavailable,
                         "this process is a fork of one in which another thread was compiling at that moment, and the "
                         "compiler's locks stay as they were",
                         "fork before kernels are compiled or after, or start the process with spawn or exec");
  }

private:
  static constexpr int kGenerationShift = 32;
  static inline constinit std::atomic<uint64_t> calls{0}; // of this process, below its generation
  static inline constinit std::atomic<bool> stuck{false};
};

// Owns a result of the library, on success and on failure.
class ApiResult {
public:
  explicit ApiResult(const nsa_compiler_api &api) : api(api) {}
  ~ApiResult() {
    if (result)
      api.destroy(result);
  }
  ApiResult(const ApiResult &) = delete;
  ApiResult &operator=(const ApiResult &) = delete;

  nsa_compiler_result **out() { return &result; }
  const nsa_compiler_result *get() const { return result; }
  // What the call has made: a binary or a text.
  std::string_view output() const {
    size_t bytes = 0;
    const void *data = api.output(result, &bytes);
    return {static_cast<const char *>(data), bytes};
  }

  Status status(nsa_compiler_status code) const {
    if (code == 0)
      return Status::ok();
    ErrorInfo info;
    info.code = static_cast<ErrorCode>(code);
    if (!result) {
      info.message = "the compiler library gave no reason";
      return Status(std::move(info));
    }
    auto text = [&](const char *(*accessor)(const nsa_compiler_result *)) {
      const char *value = accessor(result);
      return std::string(value ? value : "");
    };
    info.field = text(api.error_field);
    info.value = text(api.error_value);
    info.rule = text(api.error_rule);
    info.message = text(api.error_message);
    info.hint = text(api.error_hint);
    return Status(std::move(info));
  }

private:
  const nsa_compiler_api &api;
  nsa_compiler_result *result = nullptr;
};

// Borrows the texts.
std::vector<nsa_compiler_value> apiValues(const std::map<std::string, std::string> &values) {
  std::vector<nsa_compiler_value> result;
  for (const auto &[name, text] : values)
    result.push_back({name.c_str(), text.c_str()});
  return result;
}

// The C form of a request; borrows every text from it.
struct ApiRequest {
  std::vector<nsa_compiler_value> fixed, config, libraries;
  nsa_compiler_request value = {};

  ApiRequest(const CompileRequest &request, nsa_compiler_stage stage)
      : fixed(apiValues(request.fixed)), config(apiValues(request.config)) {
    value.size = sizeof value;
    value.target = request.target.c_str();
    value.op = request.op.c_str();
    value.fixed = fixed.data();
    value.fixed_count = fixed.size();
    value.template_name = request.templateName.c_str();
    value.config = config.data();
    value.config_count = config.size();
    value.template_dir = request.templateDir.c_str();
    value.nvrtc_path = request.nvrtcPath.c_str();
    value.driver_version = request.driverVersion;
    value.stage = stage;
    value.cpu_features = request.cpuFeatures.c_str();
    if (!request.program)
      return;
    libraries = apiValues(request.program->libraries);
    value.program_name = request.program->file.c_str();
    value.program_text = request.program->text.c_str();
    value.libraries = libraries.data();
    value.library_count = libraries.size();
  }
};

// "render=0.1 passes=3.0 ...": render, and the sum of the others.
void readTimings(const char *text, double &renderMs, double &otherMs) {
  Result<std::map<std::string, std::string>> parsed = parseValues(text ? text : "");
  if (!parsed)
    return; // evidence only
  for (const auto &[name, value] : *parsed)
    (name == "render" ? renderMs : otherMs) += std::strtod(value.c_str(), nullptr);
}

Status unavailable(std::string message) {
  return Status::error(
      ErrorCode::kUnavailable, std::move(message),
      "install libnsa_compiler.so beside libnsa.so, set compiler_path or NSA_COMPILER, or ship a cache "
      "that holds this kernel");
}

} // namespace

std::string CompilerLibrary::resolvePath(const std::string &path) {
  return path.empty() ? LibraryPlace::own().find("libnsa_compiler.so") : path;
}

Result<std::shared_ptr<const CompilerLibrary>> CompilerLibrary::open(const std::string &path) {
  LibraryCall inside;
  NSA_RETURN_IF_ERROR(inside.status());
  std::string file = resolvePath(path);
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *reason = dlerror();
    return unavailable("the compiler library cannot be opened: " + std::string(reason ? reason : file));
  }
  auto getApi = reinterpret_cast<decltype(&nsa_compiler_get_api)>(dlsym(library, "nsa_compiler_get_api"));
  if (!getApi)
    return unavailable(file + " is not a compiler library (it has no nsa_compiler_get_api)");
  const nsa_compiler_api *api = getApi(NSA_COMPILER_ABI_VERSION);
  if (!api || api->abi_version != NSA_COMPILER_ABI_VERSION || api->size < sizeof(nsa_compiler_api))
    return unavailable(file + " does not serve ABI version " + std::to_string(NSA_COMPILER_ABI_VERSION) +
                       ": it belongs to another version of the runtime");
  return std::shared_ptr<const CompilerLibrary>(new CompilerLibrary(std::move(file), api));
}

Result<std::vector<Candidate>> CompilerLibrary::list(const CompileRequest &request) const {
  LibraryCall inside;
  NSA_RETURN_IF_ERROR(inside.status());
  ApiRequest call(request, NSA_COMPILER_STAGE_BINARY);
  ApiResult result(*api);
  nsa_compiler_status code = api->list(&call.value, result.out());
  NSA_RETURN_IF_ERROR(result.status(code));
  std::vector<Candidate> candidates(api->candidate_count(result.get()));
  for (size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].templateName = api->candidate_template(result.get(), i);
    candidates[i].config = api->candidate_config(result.get(), i);
    candidates[i].predictedCost = api->candidate_cost(result.get(), i);
  }
  if (candidates.empty())
    return Status::error(ErrorCode::kUnsupported,
                         "no template has an admissible configuration for " + request.op + " " +
                             formatValues(request.fixed) + " on " + request.target,
                         "nsa explain lists the templates and the requirement each one misses");
  return candidates;
}

Result<CompiledKernel> CompilerLibrary::compile(const CompileRequest &request) const {
  if (request.templateDir.empty())
    return compileOnce(request);
  for (int i = 0; i < kMostCompilations; ++i) {
    NSA_ASSIGN_OR_RETURN(TemplateFolderState before, readTemplateFolder(request.templateDir));
    Result<CompiledKernel> kernel = compileOnce(request);
    Result<TemplateFolderState> after = readTemplateFolder(request.templateDir);
    if (!after || *after != before)
      continue;
    if (kernel)
      kernel->templates = std::move(after->content);
    return kernel;
  }
  return Status::error(ErrorCode::kIoError,
                       "template_dir " + request.templateDir + " changed during each of " +
                           std::to_string(kMostCompilations) + " compilations, so no state of it can be named",
                       "leave the folder as it is while kernels are compiled");
}

Result<CompiledKernel> CompilerLibrary::compileOnce(const CompileRequest &request) const {
  LibraryCall inside;
  NSA_RETURN_IF_ERROR(inside.status());
  ApiRequest call(request, NSA_COMPILER_STAGE_BINARY);
  ApiResult result(*api);
  nsa_compiler_status code = api->compile(&call.value, result.out());
  NSA_RETURN_IF_ERROR(result.status(code));
  CompiledKernel kernel;
  const std::string_view output = result.output();
  const char *manifest = api->manifest(result.get());
  if (output.empty() || !manifest)
    return Status::error(ErrorCode::kInternal, "the compiler library returned no binary or no manifest");
  const std::span<const std::byte> binary = std::as_bytes(std::span(output));
  kernel.binary.assign(binary.begin(), binary.end());
  kernel.manifestText = manifest;
  NSA_ASSIGN_OR_RETURN(kernel.manifest, Manifest::parse(kernel.manifestText));
  // The digest of all that went into the binary, which only the compiler knows.
  kernel.content = kernel.manifest.evidence["content"];
  if (kernel.content.empty())
    return Status::error(ErrorCode::kInternal, "the compiler library's manifest does not name its content");
  kernel.warnings = api->messages(result.get());
  readTimings(api->timings(result.get()), kernel.renderMs, kernel.compileMs);
  return kernel;
}

// A program with errors is a report and no error of the call.
static Result<ProgramReport> reportOf(const nsa_compiler_api &api, const ApiResult &result, nsa_compiler_status code) {
  ProgramReport report;
  report.isGood = code == 0;
  if (result.get())
    report.messages = api.messages(result.get());
  if (!report.isGood && report.messages.empty())
    return result.status(code);
  report.text = result.output();
  return report;
}

Result<ProgramReport> CompilerLibrary::check(const ProgramCheckRequest &request) const {
  LibraryCall inside;
  NSA_RETURN_IF_ERROR(inside.status());
  const std::vector<nsa_compiler_value> values = apiValues(request.values);
  nsa_compiler_check_request call = {};
  call.size = sizeof call;
  call.path = request.path.c_str();
  call.values = values.data();
  call.value_count = values.size();
  call.target = request.target.c_str();
  call.explain = request.explains;
  ApiResult result(*api);
  const nsa_compiler_status code = api->check(&call, result.out());
  return reportOf(*api, result, code);
}

Result<ProgramReport> CompilerLibrary::format(const std::string &name, std::string_view text) const {
  LibraryCall inside;
  NSA_RETURN_IF_ERROR(inside.status());
  ApiResult result(*api);
  const nsa_compiler_status code = api->format(name.c_str(), text.data(), text.size(), result.out());
  return reportOf(*api, result, code);
}

Result<std::string> CompilerLibrary::emit(const CompileRequest &request, nsa_compiler_stage stage) const {
  LibraryCall inside;
  NSA_RETURN_IF_ERROR(inside.status());
  ApiRequest call(request, stage);
  ApiResult result(*api);
  nsa_compiler_status code = api->compile(&call.value, result.out());
  NSA_RETURN_IF_ERROR(result.status(code));
  return std::string(result.output());
}

} // namespace nsa
