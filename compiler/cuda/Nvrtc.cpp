#include "compiler/cuda/Nvrtc.h"

#include "compiler/cuda/NvrtcSymbols.h"
#include "runtime/base/trust.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <memory>
#include <mutex>
#include <system_error>

namespace nsa {

struct Nvrtc::Functions {
#define NSA_DECLARE(member, symbol, parameters) int(*member) parameters = nullptr;
  NSA_NVRTC_SYMBOLS(NSA_DECLARE)
#undef NSA_DECLARE
  const char *(*errorString)(int result) = nullptr;
};

namespace {

constexpr int kNewestMajor = 13;
constexpr int kOldestMajor = 12;
constexpr int kMaxErrorLines = 3;

// The folders of NVIDIA's wheels in the Python installations of common systems, so that Python need not be asked.
constexpr const char *kSitePackages[] = {
    "/usr/lib/python3/dist-packages",        "/usr/lib/python3*/site-packages",
    "/usr/local/lib/python3*/site-packages", "/usr/local/lib/python3*/dist-packages",
    "/opt/*/lib/python3*/site-packages",
};

std::vector<std::string> expand(const std::string &pattern) {
  std::vector<std::string> paths;
  glob_t matches{};
  if (glob(pattern.c_str(), GLOB_NOESCAPE, nullptr, &matches) == 0)
    for (size_t i = 0; i < matches.gl_pathc; ++i)
      paths.emplace_back(matches.gl_pathv[i]);
  globfree(&matches);
  return paths;
}

// The real file of a path, with all links resolved. If there is none, or if it must not be opened, `reason` says why.
// NVRTC opens libnvrtc-builtins beside itself, through links if there are any, so the files beside it are checked too.
std::string trustedFile(const std::string &path, std::string &reason) {
  const FollowedPath library = followLinks(path);
  std::string fault = library.fault;
  if (fault.empty() && library.error) {
    reason = path + ": " + std::generic_category().message(library.error);
    return "";
  }
  const std::string folder = library.file.substr(0, library.file.rfind('/') + 1);
  const std::unique_ptr<DIR, int (*)(DIR *)> entries(fault.empty() ? ::opendir(folder.c_str()) : nullptr, &::closedir);
  while (const dirent *entry = entries && fault.empty() ? ::readdir(entries.get()) : nullptr)
    if (std::string_view(entry->d_name).starts_with("libnvrtc"))
      fault = followLinks(folder + entry->d_name).fault;
  if (!fault.empty())
    reason = path + " is not opened: " + fault;
  return library.file;
}

// Turns 12040 into "12.4".
std::string formatDriverVersion(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status unavailable(std::string message) {
  return Status::error(
      ErrorCode::kUnavailable, std::move(message),
      "install the CUDA toolkit's NVRTC (package cuda-nvrtc, or the Python wheel nvidia-cuda-nvrtc), or "
      "name the library with NSA_NVRTC");
}

std::string lineOf(std::string_view log, size_t position) {
  size_t begin = log.rfind('\n', position);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  return std::string(log.substr(begin, std::min(log.find('\n', position), log.size()) - begin));
}

// The first lines of the compiler's log that are errors, or its first line if no line is an error.
std::string firstErrors(std::string_view log) {
  std::string text;
  int count = 0;
  for (size_t at = 0; (at = log.find("error", at)) != std::string_view::npos && count < kMaxErrorLines; ++count) {
    text.append(text.empty() ? "" : "; ").append(lineOf(log, at));
    at = std::min(log.find('\n', at), log.size());
  }
  return text.empty() ? lineOf(log, 0) : text;
}

// The symbol in "Compiling entry function 'attention' for 'sm_90a'"; empty if there is none.
std::string entryOf(std::string_view log) {
  constexpr std::string_view kBefore = "entry function '";
  size_t begin = log.find(kBefore);
  if (begin == std::string_view::npos)
    return "";
  begin += kBefore.size();
  return std::string(log.substr(begin, log.find('\'', begin) - begin));
}

class Program {
public:
  explicit Program(int (*destroy)(NvrtcProgram **)) : destroy(destroy) {}
  ~Program() {
    if (handle)
      destroy(&handle);
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  NvrtcProgram *handle = nullptr;

private:
  int (*destroy)(NvrtcProgram **);
};

} // namespace

std::vector<std::string> Nvrtc::candidates(const NvrtcSearch &search) {
  if (!search.path.empty())
    return {search.path};
  // A driver loads code of its own major version and of older ones, never of a newer one.
  int newest = search.driverVersion ? std::min(search.driverVersion / 1000, kNewestMajor) : kNewestMajor;
  std::vector<std::string> paths;
  for (int major = newest; major >= kOldestMajor; --major) {
    std::string file = "libnvrtc.so." + std::to_string(major);
    paths.push_back(file);
    paths.push_back("/usr/local/cuda/lib64/" + file);
    for (const char *site : kSitePackages)
      for (const char *wheel : {"/nvidia/cu13/lib/", "/nvidia/cuda_nvrtc/lib/"})
        for (std::string &path : expand(site + std::string(wheel) + file))
          paths.push_back(std::move(path));
  }
  return paths;
}

const Nvrtc *Nvrtc::load(const std::string &path, std::string &reason) {
  // Opened libraries live as long as the process, because NVRTC keeps threads and static state.
  static std::mutex &mutex = *new std::mutex;
  static auto &opened = *new std::map<std::string, std::unique_ptr<Nvrtc>>;
  std::lock_guard lock(mutex);
  if (auto found = opened.find(path); found != opened.end())
    return found->second.get();

  // A name without a folder is searched by the dynamic linker, in the folders that the administrator or LD_LIBRARY_PATH
  // name.
  const std::string file = path.find('/') == std::string::npos ? path : trustedFile(path, reason);
  if (!reason.empty())
    return nullptr;
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    reason = dlerror();
    return nullptr;
  }
  auto functions = std::make_unique<Functions>();
  auto resolve = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function && reason.empty())
      reason = path + " lacks " + symbol;
  };
#define NSA_RESOLVE(member, symbol, parameters) resolve(#symbol, functions->member);
  NSA_NVRTC_SYMBOLS(NSA_RESOLVE)
#undef NSA_RESOLVE
  resolve("nvrtcGetErrorString", functions->errorString);
  int major = 0, minor = 0, count = 0;
  std::unique_ptr<Nvrtc> nvrtc(new Nvrtc);
  if (reason.empty() && (functions->version(&major, &minor) || functions->supportedArchCount(&count)))
    reason = path + " does not answer";
  if (reason.empty()) {
    nvrtc->archs.resize(static_cast<size_t>(count));
    if (functions->supportedArchs(nvrtc->archs.data()))
      reason = path + " does not answer";
  }
  if (!reason.empty()) {
    dlclose(library);
    return nullptr;
  }
  nvrtc->major = major;
  nvrtc->minor = minor;
  nvrtc->versionText = std::to_string(major) + "." + std::to_string(minor);
  nvrtc->functions = functions.release();
  return opened.emplace(path, std::move(nvrtc)).first->second.get();
}

Result<const Nvrtc *> Nvrtc::open(const NvrtcSearch &search) {
  if (search.driverVersion && search.driverVersion < kOldestMajor * 1000)
    return Status::error(ErrorCode::kUnavailable,
                         "the CUDA driver " + formatDriverVersion(search.driverVersion) + " is older than 12.0",
                         "install a newer NVIDIA driver");
  std::string tried;
  for (const std::string &path : candidates(search)) {
    std::string reason;
    const Nvrtc *nvrtc = load(path, reason);
    if (!nvrtc) {
      tried.append(tried.empty() ? "" : "; ").append(reason);
      continue;
    }
    if (search.driverVersion && nvrtc->major > search.driverVersion / 1000)
      return unavailable("NVRTC " + nvrtc->versionText + " makes code that the driver " +
                         formatDriverVersion(search.driverVersion) + " cannot load");
    return nvrtc;
  }
  return unavailable("no NVRTC could be opened; tried: " + tried);
}

std::vector<std::string> Nvrtc::options(std::string_view arch) {
  return {"-arch=" + std::string(arch), "-std=c++20", "--ptxas-options=-v", "-default-device"};
}

Status Nvrtc::checkArch(std::string_view arch) const {
  int number = 0;
  std::string_view digits = arch.substr(arch.find('_') + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (std::find(archs.begin(), archs.end(), number) != archs.end())
    return Status::ok();
  return Status::error(ErrorCode::kUnavailable, "NVRTC " + versionText + " cannot make code for " + std::string(arch),
                       "install the NVRTC of a newer CUDA toolkit");
}

Result<NvrtcOutput> Nvrtc::compile(const std::string &source, const std::string &name, std::string_view arch,
                                   Output output, int64_t residentBlocks) const {
  NSA_RETURN_IF_ERROR(checkArch(arch));
  Program program(functions->destroyProgram);
  auto failed = [&](const char *what, int code) {
    return Status::error(ErrorCode::kCompileFailed,
                         std::string("NVRTC ") + versionText + ": " + what + ": " + functions->errorString(code));
  };
  if (int code = functions->createProgram(&program.handle, source.c_str(), name.c_str(), 0, nullptr, nullptr))
    return failed("create program", code);

  std::vector<std::string> texts = options(arch);
  // From 12.9 on, NVRTC has its own cache if there is a driver. A hit leaves the report of ptxas out of the log. The
  // option that switches the cache off does not change the result, so it is not among the options of the content key.
  if (major > 12 || (major == 12 && minor >= 9))
    texts.push_back("--no-cache");
  if (residentBlocks > 0)
    texts.push_back("-DNSA_RESIDENT_BLOCKS=" + std::to_string(residentBlocks));
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(text.c_str());
  int compiled = functions->compileProgram(program.handle, static_cast<int>(pointers.size()), pointers.data());

  std::string log;
  size_t size = 0;
  if (functions->logSize(program.handle, &size) == 0 && size > 1) {
    log.resize(size);
    functions->log(program.handle, log.data());
    log.resize(size - 1); // the size counts the NUL
  }
  if (compiled) {
    return Status(ErrorInfo{.code = ErrorCode::kCompileFailed,
                            .field = "source",
                            .value = name,
                            .rule = "NVRTC " + versionText + " rejects it for " + std::string(arch) + ": " +
                                    (log.empty() ? functions->errorString(compiled) : firstErrors(log)),
                            .hint = "the line numbers refer to the output of `--emit cuda`"});
  }

  NvrtcOutput result;
  bool cubin = output == Output::kCubin;
  if (int code = (cubin ? functions->cubinSize : functions->ptxSize)(program.handle, &size))
    return failed("output size", code);
  result.bytes.resize(size);
  if (int code = (cubin ? functions->cubin : functions->ptx)(program.handle, result.bytes.data()))
    return failed("output", code);
  if (!cubin && !result.bytes.empty() && result.bytes.back() == '\0')
    result.bytes.pop_back();
  result.entry = entryOf(log);
  result.resources = parsePtxasReport(log);
  return result;
}

std::map<std::string, std::string> parsePtxasReport(std::string_view log) {
  // The number before each phrase, summed over its occurrences. Spill stores and spill loads make one number.
  static constexpr struct {
    const char *name;
    std::string_view phrase;
  } kPhrases[] = {{"registers", " registers"},
                  {"stack_bytes", " bytes stack frame"},
                  {"spill_bytes", " bytes spill stores"},
                  {"spill_bytes", " bytes spill loads"},
                  {"static_shared", " bytes smem"}};
  std::map<std::string, int64_t> numbers;
  for (const auto &[name, phrase] : kPhrases)
    for (size_t at = 0; (at = log.find(phrase, at)) != std::string_view::npos; at += phrase.size()) {
      size_t begin = at;
      while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9')
        --begin;
      int64_t value = 0;
      if (std::from_chars(log.data() + begin, log.data() + at, value).ec == std::errc())
        numbers[name] += value;
    }
  std::map<std::string, std::string> texts;
  for (const auto &[name, value] : numbers)
    texts[name] = std::to_string(value);
  return texts;
}

} // namespace nsa
