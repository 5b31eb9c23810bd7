// A pack or a kernel database, opened from its file as an engine and as the command line open it: what opens is listed,
// its kernels are loaded, it is verified, taken into another database and exported again.
#include "tests/fuzz/fuzz_target.h"

#include "cache/cache_file.h"
#include "cache/pack.h"
#include "cache/pack_writer.h"
#include "cache/rows/kernel_rows.h"
#include "cache/verification.h"
#include "runtime/base/manifest.h"
#include "tests/fuzz/pack_file_edit.h"

#include <algorithm>

namespace nsa::fuzz {
namespace {

using sqlite::Query;

// A kernel that was given out is the one of its row: by the row's digest, computed here.
void checkKernel(CacheFile &file, const StoredKernel &kernel, const std::string &content) {
  Query query(file.connection(), "SELECT digest FROM kernels WHERE content = ?1", content);
  expect(query.step(), "a kernel that is given out has a row");
  const Digest::Bytes digest = Digest().field(content).field(kernel.manifest).field(kernel.binary).finish();
  expect(kernel.content == content && std::ranges::equal(query.bytes(0), digest), "a kernel has the digest of its row");
}

// What stands in the file is what is found in it, where verifying finds nothing wrong; with something wrong it may be
// out of reach, but never another one. `found(...)` of a kernel, a choice and a route.
template <typename Source> void checkRows(CacheFile &file, const Verification &verified, Source &source) {
  const bool isFine = verified.findings.empty();
  const Result<std::vector<KernelSummary>> kernels = file.kernels();
  expect(kernels || !isFine, "kernels of a file that is fine can be listed");
  for (size_t i = 0; kernels && i < kernels->size(); ++i) {
    const std::string &content = (*kernels)[i].content;
    const std::optional<StoredKernel> kernel = source.kernel(content);
    expect(kernel || !isFine, "a kernel of a file that is fine is found");
    const Result<std::optional<StoredKernel>> read = file.kernel(content);
    expect((read && *read) == kernel.has_value(), "engine and command line find the same kernels");
    if (!kernel)
      continue;
    checkKernel(file, *kernel, content);
    const Result<Manifest> manifest = Manifest::parse(kernel->manifest);
    if (isFine)
      expect(manifest && manifest->templateName == (*kernels)[i].templateName && manifest->op == (*kernels)[i].op &&
                 manifest->target == (*kernels)[i].target && formatValues(manifest->config) == (*kernels)[i].config,
             "a kernel is listed as its manifest says");
  }
  const Result<std::vector<StoredChoice>> choices = file.choices();
  expect(choices || !isFine, "choices of a file that is fine can be listed");
  for (size_t i = 0; choices && i < choices->size(); ++i) {
    const std::optional<StoredChoice> choice = source.choice((*choices)[i].problem, (*choices)[i].device);
    expect(!isFine || (choice && *choice == (*choices)[i]), "a choice of a file that is fine is found");
  }
  const Result<std::vector<StoredRoute>> routes = file.routes();
  expect(routes || !isFine, "routes of a file that is fine can be listed");
  for (size_t i = 0; routes && i < routes->size(); ++i) {
    const StoredRoute &listed = (*routes)[i];
    const std::optional<StoredRoute> route = source.route(listed.family, listed.device, listed.name);
    expect(!isFine || (route && *route == listed), "a route of a file that is fine is found");
  }
}

struct FromPack {
  Pack &pack;
  auto kernel(const std::string &content) { return pack.findKernel(content); }
  auto choice(const std::string &problem, const std::string &device) { return pack.findChoice(problem, device); }
  auto route(const std::string &family, const std::string &device, const std::string &name) {
    return pack.findRoute(family, device, name);
  }
};

struct FromStore {
  KernelStore &store;
  template <typename Row> static std::optional<Row> take(Result<std::optional<Row>> found) {
    expect(found.isOk(), "a lookup never fails");
    return std::move(*found);
  }
  auto kernel(const std::string &content) { return take(store.findKernel(content)); }
  auto choice(const std::string &problem, const std::string &device) { return take(store.findChoice(problem, device)); }
  auto route(const std::string &family, const std::string &device, const std::string &name) {
    return take(store.findRoute(family, device, name));
  }
};

std::unique_ptr<KernelStore> openStore(const std::string &path, bool readOnly) {
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = path, .readOnly = readOnly}, warning);
  expect(store.isOk(), "a store opens whatever its file is");
  return std::move(*store);
}

// Kernels that are taken over or exported from a file are intact where they arrive, and all is fine that was.
void checkCopies(CacheFile &file, bool isFine) {
  const std::unique_ptr<KernelStore> store = openStore(":memory:", false);
  if (const Result<MergeReport> merged = store->merge(file, Prefer::kSource)) {
    const Result<std::vector<KernelSummary>> kernels = store->listKernels();
    expect(kernels && static_cast<int64_t>(kernels->size()) == merged->kernels, "merging writes what it says");
    for (const KernelSummary &kernel : *kernels)
      expect(FromStore{*store}.kernel(kernel.content).has_value(), "a kernel that was taken over is intact");
  }
  const std::string path = writeInput("exported.nsapack", "");
  PackRequest request;
  request.source = "0 (fuzz)";
  request.existing = ReplacingFile::Existing::kReplace;
  const Result<PackReport> exported = writePack(file, path, request);
  if (exported) {
    const Result<std::unique_ptr<Pack>> pack = Pack::open(path, {});
    expect(pack.isOk(), "what is exported opens");
    Result<CacheFile> copy = CacheFile::open(path);
    FromPack source{**pack};
    checkRows(*copy, isFine ? Verification{} : verifyCache(path, {}), source);
  }
}

void runPack(const std::string &path) {
  const Verification verified = verifyCache(path, {});
  const Result<std::unique_ptr<Pack>> pack = Pack::open(path, {});
  SignatureRules signedOnly{.requireSignature = true, .trusted = {signingKey().publicKey()}};
  const bool isSigned = Pack::open(path, signedOnly).isOk();
  if (!pack) {
    expect(!verified.findings.empty(), "a pack that is fine opens: " + pack.status().toString());
    expect(pack.status().toString().find(path) != std::string::npos, "what is refused names the file");
    expect(!isSigned, "a pack that does not open does not open with a signature");
    return;
  }
  // A verification ends where sqlite finds the file damaged, and names no signer then. An engine reads rows alone, so
  // it opens a pack with damage in space that no row uses.
  const bool isWhole = std::ranges::none_of(verified.findings, [](const std::string &finding) {
    return finding.starts_with("integrity_check") || finding.find("is malformed") != std::string::npos;
  });
  const bool hasSigned = std::ranges::count(verified.signers, signedOnly.trusted.front().hex()) > 0;
  expect(isWhole ? isSigned == hasSigned : !hasSigned, "a pack opens as signed by a key if that key's signature holds");
  Result<CacheFile> file = CacheFile::open(path);
  if (!file) { // an engine does not compare the evidence
    expect(!verified.findings.empty(), "a pack that is fine can be looked at: " + file.status().toString());
    return;
  }
  expect(file->isPack(), "a pack that opens is looked at as one");
  FromPack source{**pack};
  checkRows(*file, verified, source);
  std::vector<ChoiceSummary> choices;
  (*pack)->summarizeChoices("window", 1, choices);
  checkCopies(*file, verified.findings.empty());
}

// What is put into a database that is fine is found in it; in another one it may get lost, but not become another one.
void checkPut(KernelStore &store, bool isFine) {
  StoredKernel kernel;
  kernel.content = "new";
  kernel.manifest =
      "manifest 1\nentry a\ntemplate a\noperator window\ntarget cpu\nrevision 0\ngrid 1 ; 1 ; 1\nthreads 1\n";
  kernel.binary.resize(100);
  const StoredChoice choice{"window new", "cpu", kernel.content, true, "p", {{"a", "", "winner", 1, 1, ""}}};
  if (!store.put(kernel, &choice).isOk())
    return;
  FromStore source{store};
  if (const std::optional<StoredKernel> found = source.kernel(kernel.content))
    expect(found->binary == kernel.binary && found->manifest == kernel.manifest, "a kernel that was put is the same");
  else
    expect(!isFine, "a kernel that was put is found");
  expect(!isFine || source.choice(choice.problem, choice.device) == choice, "a choice that was put is found");
}

void runDatabase(const std::string &path, std::string_view input) {
  const Verification verified = verifyCache(path, {});
  const bool isFine = verified.findings.empty();
  {
    Result<CacheFile> file = CacheFile::open(path);
    expect(file || !isFine, "a database that is fine opens");
    if (file) {
      const std::unique_ptr<KernelStore> store = openStore(path, true);
      FromStore source{*store};
      checkRows(*file, verified, source);
      checkCopies(*file, isFine);
    }
  }
  expect(readBack(path) == input, "reading changes nothing");
  // A file that only a newer sqlite may write is looked at again and again, as one that is being replaced may be.
  constexpr size_t kWriteVersion = 18;
  if (static_cast<uint8_t>(input[kWriteVersion]) <= 2)
    checkPut(*openStore(path, false), isFine);
}

void runFile(std::string_view input) {
  clearInputs();
  const std::string path = writeInput("kernels", input);
  if (isDatabase(input))
    runDatabase(path, input);
  else
    runPack(path);
  clearInputs();
}

const Registration kPack({"pack", runFile, expandEdits});

} // namespace
} // namespace nsa::fuzz
