// `nsa cache renew`: kernels of another compiler revision, compiled again by this one. The choices stay: what was
// measured needs no device to be kept, and a release's packs outlive a change of the templates.
#include "tools/nsa/cache/cache_verbs.h"

#include "cache/kernel_store.h"
#include "runtime/base/manifest.h"
#include "runtime/engine/choices/problem_key.h"
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/engine/options/compile_request.h"
#include "runtime/process/run_at_once.h"
#include "tools/nsa/command/interruption.h"
#include "tools/support/progress.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

namespace nsa::tools {
namespace {

// A kernel and the choices that name it.
struct OldKernel {
  StoredKernel kernel;
  Manifest manifest;
  std::vector<StoredChoice> choices;
};

class Renewal {
public:
  explicit Renewal(const FileFlags &flags) : flags(flags) {}

  Status run() {
    NSA_RETURN_IF_ERROR(open());
    NSA_RETURN_IF_ERROR(findOld());
    NSA_RETURN_IF_ERROR(work());
    report();
    if (!failures.empty())
      return Status::error(ErrorCode::kCompileFailed,
                           countText(static_cast<int64_t>(failures.size()), "kernel") +
                               " cannot be made again; the stored ones stay",
                           "tune their problems anew: nsa tune");
    return Status::ok();
  }

private:
  Status open() {
    NSA_ASSIGN_OR_RETURN(path, cachePathOf(flags.path));
    NSA_RETURN_IF_ERROR(options.resolve(EngineOptions::processEnvironment()));
    NSA_ASSIGN_OR_RETURN(compiler, CompilerLibrary::open(options.compilerPath));
    return Status::ok();
  }

  Status findOld() {
    NSA_ASSIGN_OR_RETURN(CacheFile file, CacheFile::open(path));
    if (file.isPack())
      return Status::invalid("--cache", path, "must be a database: packs do not change",
                             "merge it into one, renew that, and export it: docs/shipping_a_cache.md");
    NSA_ASSIGN_OR_RETURN(std::vector<StoredChoice> choices, file.choices());
    std::map<std::string, std::vector<StoredChoice>> byContent;
    for (StoredChoice &choice : choices)
      byContent[choice.content].push_back(std::move(choice));
    for (auto &[content, named] : byContent) {
      Result<std::optional<StoredKernel>> kernel = file.kernel(content);
      if (!kernel) {
        failures.emplace(content, "it cannot be read: " + kernel.status().toString());
        continue;
      }
      if (!*kernel)
        continue; // an engine that asks for it has a miss
      Result<Manifest> manifest = Manifest::parse((*kernel)->manifest);
      if (!manifest)
        failures.emplace(content, "its manifest cannot be read: " + manifest.status().toString());
      else if (manifest->evidence["compiler"] == compiler->sourceId())
        ++current;
      else
        old.push_back({std::move(**kernel), std::move(*manifest), std::move(named)});
    }
    return Status::ok();
  }

  Status work() {
    if (old.empty())
      return Status::ok();
    std::string warning;
    NSA_ASSIGN_OR_RETURN(store, KernelStore::open({.path = path}, warning));
    if (store->path() == ":memory:" || store->isReadOnly())
      return Status::error(ErrorCode::kIoError, warning.empty() ? "'" + path + "' cannot be written" : warning);
    const Interruption interruption;
    if (!flags.json)
      progress = std::make_unique<Progress>();
    const auto threads = static_cast<size_t>(std::max(options.compileThreads, 1));
    const Status status = runAtOnce(old.size(), threads, {"nsa-compile", "to compile a kernel"}, [&](size_t i) {
      if (!Interruption::wanted())
        renew(old[i]);
      return Status::ok();
    });
    progress.reset();
    return status;
  }

  void renew(const OldKernel &each) {
    const Status status = makeAgain(each);
    const std::lock_guard lock(mutex);
    ++done;
    if (status.isOk())
      ++renewed;
    else
      failures.emplace(each.kernel.content, each.manifest.templateName + " " + formatValues(each.manifest.config) +
                                                ": " + status.toString());
    if (progress)
      progress->step("compiling again: " + std::to_string(done) + " of " + std::to_string(old.size()));
  }

  // The same configuration of the same problem.
  Status makeAgain(const OldKernel &each) {
    if (const std::string_view program = programNameOf(each.manifest.op); !program.empty())
      return Status::error(ErrorCode::kUnavailable,
                           "it is a kernel of the program " + std::string(program) + ", whose text no cache holds",
                           "create the program with this database (nsa_program_create), which compiles it again");
    NSA_ASSIGN_OR_RETURN(CompiledKernel kernel, compiler->compile(requestOf(each.manifest, options)));
    for (StoredChoice choice : each.choices) {
      if (choice.device != withTemplates(choice.device, kernel.templates))
        return Status::error(ErrorCode::kUnavailable,
                             "it was chosen among the templates of '" + choice.device + "', which are not at hand",
                             "set NSA_TEMPLATE_DIR to the folder as it was, or leave it unset for built-in templates");
      choice.content = kernel.content;
      choice.provenance =
          choice.tuned ? remadeProvenance(choice.provenance, compiler->sourceId()) : provenanceOf(compiler->sourceId());
      NSA_RETURN_IF_ERROR(store->put({kernel.content, kernel.manifestText, kernel.binary}, &choice));
    }
    return Status::ok();
  }

  void report() const {
    const size_t left = old.size() - done;
    if (flags.json) {
      nlohmann::json failed = nlohmann::json::array();
      for (const auto &[content, why] : failures)
        failed.push_back({{"kernel", content}, {"why", why}});
      printJson({{"path", path},
                 {"compiler", compiler->sourceId()},
                 {"current", current},
                 {"renewed", renewed},
                 {"left", left},
                 {"failed", std::move(failed)}});
      return;
    }
    printText("%s: %s compiled again, %lld of this compiler already%s%s\n", path.c_str(),
              countText(static_cast<int64_t>(renewed), "kernel").c_str(), static_cast<long long>(current),
              failures.empty() ? "" : (", " + std::to_string(failures.size()) + " failed").c_str(),
              left > 0 ? (", " + std::to_string(left) + " left: interrupted").c_str() : "");
    for (const auto &[content, why] : failures)
      printText("stays as it is: %.12s, %s\n", content.c_str(), why.c_str());
  }

  const FileFlags &flags;
  std::string path;
  EngineOptions options;
  std::shared_ptr<const CompilerLibrary> compiler;
  std::vector<OldKernel> old;
  size_t current = 0;
  std::unique_ptr<KernelStore> store;
  std::unique_ptr<Progress> progress;
  std::mutex mutex; // of what follows
  size_t renewed = 0, done = 0;
  std::map<std::string, std::string> failures; // by content
};

} // namespace

void addCacheRenew(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<FileFlags>(
      cache, action, "renew",
      "Compile again what another revision of the compiler made, without a device; the choices and their evidence stay",
      [](const FileFlags &chosen) { return Renewal(chosen).run(); });
  flags.add(verb, "Database of kernels");
}

} // namespace nsa::tools
