// A compiler library for tests of the runtime. It asks libnsa_compiler.so, and keeps each answer for the CPU in a file
// of the build folder, because the tests of the plain build and of both sanitizers' builds ask for the same kernels. A
// file is used only if all that its answer depends on is equal: the compiler library, the request, and a hash of all
// template files. Whether the compiler's answers are right is for tests that call the compiler itself.
// NSA_TEST_KEPT_KERNELS names another folder for the files; with an empty value nothing is kept.
#include "compiler/api/nsa_compiler.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;

struct nsa_compiler_result {
  std::string output, manifest, timings, messages;
  struct Candidate {
    std::string templateName, config;
    double cost;
  };
  std::vector<Candidate> candidates;
  std::string field, value, rule, message, hint; // of the error
};

namespace {

// A record is a sequence of fields: the length of each in 8 bytes, then its bytes.
void append(std::string &record, std::string_view field) {
  const uint64_t size = field.size();
  record.append(reinterpret_cast<const char *>(&size), sizeof size).append(field);
}

std::optional<std::string_view> takeField(std::string_view &record) {
  uint64_t size = 0;
  if (record.size() < sizeof size)
    return std::nullopt;
  record.copy(reinterpret_cast<char *>(&size), sizeof size);
  record.remove_prefix(sizeof size);
  if (record.size() < size)
    return std::nullopt;
  const std::string_view field = record.substr(0, size);
  record.remove_prefix(size);
  return field;
}

// FNV-1a. Equal records are compared in full, so the hash only has to spread them over files and find damage.
std::string hashOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::optional<std::string> contentOf(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

struct RealCompiler {
  const nsa_compiler_api *api = nullptr;
  std::string identity;

  static const RealCompiler &get() {
    static const RealCompiler compiler;
    return compiler;
  }

private:
  RealCompiler() {
    void *library = dlopen(NSA_REAL_COMPILER, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    auto getApi =
        library ? reinterpret_cast<decltype(&nsa_compiler_get_api)>(dlsym(library, "nsa_compiler_get_api")) : nullptr;
    api = getApi ? getApi(NSA_COMPILER_ABI_VERSION) : nullptr;
    struct stat file = {};
    if (!api || stat(NSA_REAL_COMPILER, &file) != 0)
      return;
    // The digest of our sources does not say which LLVM was linked; the time of the link does.
    append(identity, api->source_id);
    append(identity, std::to_string(file.st_size) + " " + std::to_string(file.st_mtim.tv_sec) + " " +
                         std::to_string(file.st_mtim.tv_nsec));
  }
};

void append(std::string &record, const nsa_compiler_value *values, size_t count) {
  append(record, std::to_string(count));
  for (size_t i = 0; i < count; ++i) {
    append(record, values[i].name);
    append(record, values[i].value);
  }
}

std::string_view textOf(const char *text) { return text ? text : ""; }

// The paths of all files of a folder, and their contents.
std::optional<std::string> recordOf(const fs::path &folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file(error))
      paths.push_back(entry->path());
  if (error)
    return std::nullopt;
  std::sort(paths.begin(), paths.end());
  std::string record;
  for (const fs::path &path : paths) {
    const std::optional<std::string> content = contentOf(path);
    if (!content)
      return std::nullopt;
    append(record, path.lexically_relative(folder).native());
    append(record, *content);
  }
  return record;
}

// All that the answer depends on; nullopt: the answer is not kept. A kernel for a GPU also depends on NVRTC.
std::optional<std::string> keyOf(std::string_view call, const nsa_compiler_request *request) {
  if (!request || request->size != sizeof *request || textOf(request->target) != "cpu" ||
      textOf(request->cpu_features).empty())
    return std::nullopt;
  std::string key;
  append(key, call);
  append(key, textOf(request->op));
  append(key, request->fixed, request->fixed_count);
  append(key, textOf(request->template_name));
  append(key, request->config, request->config_count);
  append(key, std::to_string(request->stage));
  append(key, request->cpu_features);
  append(key, textOf(request->program_name));
  append(key, request->program_text ? "program" : "operator");
  append(key, textOf(request->program_text));
  append(key, request->libraries, request->library_count);
  if (const std::string_view folder = textOf(request->template_dir); !folder.empty()) {
    const std::optional<std::string> templates = recordOf(folder);
    if (!templates)
      return std::nullopt;
    append(key, hashOf(*templates));
    append(key, std::to_string(templates->size()));
  }
  return key;
}

std::string serialize(const nsa_compiler_result &result) {
  std::string record;
  for (const std::string *text : {&result.output, &result.manifest, &result.timings, &result.messages})
    append(record, *text);
  for (const nsa_compiler_result::Candidate &candidate : result.candidates) {
    append(record, candidate.templateName);
    append(record, candidate.config);
    append(record, {reinterpret_cast<const char *>(&candidate.cost), sizeof candidate.cost});
  }
  return record;
}

bool parse(std::string_view record, nsa_compiler_result &result) {
  for (std::string *text : {&result.output, &result.manifest, &result.timings, &result.messages}) {
    const std::optional<std::string_view> field = takeField(record);
    if (!field)
      return false;
    *text = *field;
  }
  while (!record.empty()) {
    const auto templateName = takeField(record), config = takeField(record), cost = takeField(record);
    if (!cost || cost->size() != sizeof(double))
      return false;
    nsa_compiler_result::Candidate &added = result.candidates.emplace_back();
    added.templateName = *templateName;
    added.config = *config;
    cost->copy(reinterpret_cast<char *>(&added.cost), sizeof added.cost);
  }
  return true;
}

class KeptAnswer {
public:
  KeptAnswer(const fs::path &folder, std::string key) : key(std::move(key)), path(folder / hashOf(this->key)) {}

  bool read(nsa_compiler_result &result) const {
    const std::optional<std::string> content = contentOf(path);
    if (!content)
      return false;
    std::string_view rest = *content;
    const auto hash = takeField(rest);
    if (!hash || *hash != hashOf(rest))
      return false;
    const auto identity = takeField(rest), ownKey = takeField(rest);
    return ownKey && *identity == RealCompiler::get().identity && *ownKey == key && parse(rest, result);
  }

  // Another process sees the whole file or none. A file that cannot be written is no error: the next call compiles.
  void write(const nsa_compiler_result &result) const {
    std::string record, content;
    append(record, RealCompiler::get().identity);
    append(record, key);
    record += serialize(result);
    append(content, hashOf(record));
    content += record;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    static std::atomic<unsigned> files = 0;
    const fs::path written = path.native() + "." + std::to_string(getpid()) + "." + std::to_string(files++);
    if (std::ofstream(written, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size())))
      fs::rename(written, path, error);
    else
      fs::remove(written, error);
  }

private:
  std::string key;
  fs::path path;
};

nsa_compiler_result *copyOf(nsa_compiler_result *real) {
  const nsa_compiler_api &api = *RealCompiler::get().api;
  auto *copy = new nsa_compiler_result;
  if (!real)
    return copy;
  size_t size = 0;
  const auto *bytes = static_cast<const char *>(api.output(real, &size));
  copy->output.assign(bytes ? bytes : "", bytes ? size : 0);
  copy->manifest = api.manifest(real);
  copy->timings = api.timings(real);
  copy->messages = api.messages(real);
  for (size_t i = 0; i < api.candidate_count(real); ++i)
    copy->candidates.push_back(
        {api.candidate_template(real, i), api.candidate_config(real, i), api.candidate_cost(real, i)});
  copy->field = api.error_field(real);
  copy->value = api.error_value(real);
  copy->rule = api.error_rule(real);
  copy->message = api.error_message(real);
  copy->hint = api.error_hint(real);
  api.destroy(real);
  return copy;
}

fs::path keptFolder() {
  const char *named = std::getenv("NSA_TEST_KEPT_KERNELS");
  return named ? named : NSA_KEPT_KERNELS;
}

using Function = nsa_compiler_status (*)(const nsa_compiler_request *, nsa_compiler_result **);

nsa_compiler_status answer(std::string_view call, Function function, const nsa_compiler_request *request,
                           nsa_compiler_result **result) {
  const fs::path folder = keptFolder();
  const std::optional<std::string> key = folder.empty() ? std::nullopt : keyOf(call, request);
  if (key) {
    auto *kept = new nsa_compiler_result;
    if (KeptAnswer(folder, *key).read(*kept)) {
      *result = kept;
      return 0;
    }
    delete kept;
  }
  nsa_compiler_result *real = nullptr;
  const nsa_compiler_status status = function(request, &real);
  *result = copyOf(real);
  // If the templates changed meanwhile, the answer belongs to another key.
  if (status == 0 && key && keyOf(call, request) == key)
    KeptAnswer(folder, *key).write(**result);
  return status;
}

nsa_compiler_status list(const nsa_compiler_request *request, nsa_compiler_result **result) {
  return answer("list", RealCompiler::get().api->list, request, result);
}
nsa_compiler_status compile(const nsa_compiler_request *request, nsa_compiler_result **result) {
  return answer("compile", RealCompiler::get().api->compile, request, result);
}
nsa_compiler_status check(const nsa_compiler_check_request *request, nsa_compiler_result **result) {
  nsa_compiler_result *real = nullptr;
  const nsa_compiler_status status = RealCompiler::get().api->check(request, &real);
  *result = copyOf(real);
  return status;
}
nsa_compiler_status format(const char *name, const char *text, size_t bytes, nsa_compiler_result **result) {
  nsa_compiler_result *real = nullptr;
  const nsa_compiler_status status = RealCompiler::get().api->format(name, text, bytes, &real);
  *result = copyOf(real);
  return status;
}

size_t candidateCount(const nsa_compiler_result *result) { return result->candidates.size(); }
const char *candidateTemplate(const nsa_compiler_result *result, size_t index) {
  return result->candidates[index].templateName.c_str();
}
const char *candidateConfig(const nsa_compiler_result *result, size_t index) {
  return result->candidates[index].config.c_str();
}
double candidateCost(const nsa_compiler_result *result, size_t index) { return result->candidates[index].cost; }
const void *output(const nsa_compiler_result *result, size_t *size) {
  *size = result->output.size();
  return result->output.data();
}
template <std::string nsa_compiler_result::*Member> const char *text(const nsa_compiler_result *result) {
  return (result->*Member).c_str();
}
void destroy(nsa_compiler_result *result) { delete result; }

} // namespace

extern "C" __attribute__((visibility("default"))) const nsa_compiler_api *nsa_compiler_get_api(uint32_t version) {
  if (version != NSA_COMPILER_ABI_VERSION || !RealCompiler::get().api)
    return nullptr;
  using Result = nsa_compiler_result;
  static const nsa_compiler_api api = {.size = sizeof(nsa_compiler_api),
                                       .abi_version = NSA_COMPILER_ABI_VERSION,
                                       .source_id = RealCompiler::get().api->source_id,
                                       .list = list,
                                       .compile = compile,
                                       .candidate_count = candidateCount,
                                       .candidate_template = candidateTemplate,
                                       .candidate_config = candidateConfig,
                                       .candidate_cost = candidateCost,
                                       .output = output,
                                       .manifest = text<&Result::manifest>,
                                       .timings = text<&Result::timings>,
                                       .error_field = text<&Result::field>,
                                       .error_value = text<&Result::value>,
                                       .error_rule = text<&Result::rule>,
                                       .error_message = text<&Result::message>,
                                       .error_hint = text<&Result::hint>,
                                       .destroy = destroy,
                                       .check = check,
                                       .format = format,
                                       .messages = text<&Result::messages>};
  return &api;
}
