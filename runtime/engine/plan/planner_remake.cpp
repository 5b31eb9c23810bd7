// Kernels that another revision of the compiler made: which they are, who makes them again, and what stays of a choice.
#include "runtime/base/compiler_revision.h"
#include "runtime/engine/choices/remade.h"
#include "runtime/engine/plan/planner.h"

namespace nsa {

namespace {

// What a lease is for, besides the miss policies that make something.
constexpr std::string_view kRemaking = "again";

std::string_view compilerOf(const Manifest &manifest) {
  const auto found = manifest.evidence.find("compiler");
  return found == manifest.evidence.end() ? std::string_view() : found->second;
}

} // namespace

// No compiler is opened to know whether it is another build's.
bool Planner::isOutdated(Search &search, const Manifest &manifest) {
  if (search.waits || compilerOf(manifest) == compilerRevision())
    return false;
  search.core->fallbacks.push_back("the stored kernel is of another compiler revision: it serves until it is compiled "
                                   "again in the background");
  return true;
}

// Whether a compiler is at hand, and it is not the one that made this kernel. The runtime knows the revision of its own
// build, so that a hit opens no compiler; a compiler library of another build has the last word.
bool Planner::isSuperseded(const Manifest &manifest) {
  const std::string_view revision = compilerOf(manifest);
  if (*options.missPolicy == MissPolicy::kFail || revision == compilerRevision())
    return false;
  Result<std::shared_ptr<const CompilerLibrary>> library = compiler();
  return library && (*library)->sourceId() != revision;
}

std::shared_ptr<const KernelCore> Planner::remake(Search &search, const std::function<bool()> &stop) {
  std::shared_ptr<const KernelCore> found;
  const std::unique_ptr<KeyLease> lease =
      claim(search, std::string(kRemaking), [&] { return (found = find(search)) != nullptr; }, stop);
  if (found || !search.superseded || (stop && stop()))
    return found;
  return makeAgain(search, *search.superseded, FallbackStep::kExact);
}

// A stored choice outlives a change of the compiler or of a template, its binary does not: the same configuration is
// compiled again. Where that cannot be, the stored kernel serves.
std::shared_ptr<const KernelCore> Planner::makeAgain(Search &search, const ChoiceSource::Hit &hit, FallbackStep step) {
  Manifest manifest = *Manifest::parse(hit.kernel.manifest); // accepted before
  Result<std::shared_ptr<const CompilerLibrary>> library = compiler();
  if (!library)
    return load(search, hit, std::move(manifest));
  CompileRequest wanted = request(search);
  wanted.templateName = manifest.templateName;
  wanted.config = manifest.config;
  Result<CompiledKernel> kernel = (*library)->compile(wanted);
  if (!kernel) {
    search.core->fallbacks.push_back("the stored kernel is of another compiler revision and cannot be made again: " +
                                     kernel.status().toString());
    logger.log(LogLevel::kWarning, "planner", search.core->fallbacks.back());
    return load(search, hit, std::move(manifest));
  }
  Counters::raise(counters.kernelsCompiled);
  search.core->times.renderMs += kernel->renderMs;
  search.core->times.compileMs += kernel->compileMs;
  dump(wanted, *kernel);
  if (!adopt(search, kernel->content, kernel->manifest, kernel->binary).isOk())
    return load(search, hit, std::move(manifest));
  if (step == FallbackStep::kExact) // what serves in another's place is no choice for this problem
    (void)store(search, *kernel, originOfRemade(hit.choice)); // the cache has warned
  search.core->source = PlanSource::kCompiled;
  search.core->tuned = hit.choice.tuned;
  return search.core;
}

Planner::Origin Planner::originOfRemade(const StoredChoice &choice) const {
  if (!choice.tuned)
    return {.provenance = provenance()};
  return {true, remadeProvenance(choice.provenance, compilerLibrary->sourceId()), choice.evidence};
}

} // namespace nsa
