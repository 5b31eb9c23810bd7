// `nsa cache verify|diff`: whether files hold what they say, and in what two of them differ.
#include "tools/nsa/cache/cache_verbs.h"

#include "cache/difference.h"

#include <cstdio>

namespace nsa::tools {
namespace {

struct VerifyFlags {
  std::vector<std::string> files, keys;
  bool requireSignature = false, json = false;
};

struct DiffFlags {
  std::string first, second;
  bool json = false;
};

Status verify(const VerifyFlags &flags) {
  NSA_ASSIGN_OR_RETURN(SignatureRules rules, signatureRulesOf(flags.keys));
  rules.requireSignature = rules.requireSignature || flags.requireSignature;
  const bool wantsSignature = flags.requireSignature || !flags.keys.empty();
  std::vector<std::string> files = flags.files;
  if (files.empty()) {
    NSA_ASSIGN_OR_RETURN(std::string path, cachePathOf(""));
    files.push_back(path);
  }
  size_t findings = 0;
  nlohmann::json reports = nlohmann::json::array();
  for (const std::string &file : files) {
    // The environment's rules are about packs; that a database has no signature is a finding for who asks for one.
    const Verification found = verifyCache(file, wantsSignature || isPackFile(file) ? rules : SignatureRules{});
    findings += found.findings.size();
    reports.push_back({{"path", file},
                       {"kind", found.isPack ? "pack" : "database"},
                       {"kernels", found.kernels},
                       {"choices", found.choices},
                       {"routes", found.routes},
                       {"signers", found.signers},
                       {"findings", found.findings}});
    if (flags.json)
      continue;
    printText("%s: %s, %s, %s: %s\n", file.c_str(), countText(found.kernels, "kernel").c_str(),
              countText(found.choices, "choice").c_str(), countText(found.routes, "route").c_str(),
              found.findings.empty() ? "good"
                                     : countText(static_cast<int64_t>(found.findings.size()), "finding").c_str());
    for (const std::string &signer : found.signers)
      printText("  signed by %s\n", signer.c_str());
    for (const std::string &finding : found.findings)
      printText("  %s\n", finding.c_str());
  }
  if (flags.json)
    printJson({{"files", reports}});
  if (findings == 0)
    return Status::ok();
  return Status::error(ErrorCode::kIoError,
                       "verification failed: " + countText(static_cast<int64_t>(findings), "finding"));
}

nlohmann::json toJson(const RowDifference &rows) {
  return {
      {"only_first", rows.onlyFirst}, {"only_second", rows.onlySecond}, {"changed", rows.changed}, {"same", rows.same}};
}

void print(const char *kind, const RowDifference &rows) {
  for (const std::string &name : rows.onlyFirst)
    printText("- %s %s\n", kind, name.c_str());
  for (const std::string &name : rows.onlySecond)
    printText("+ %s %s\n", kind, name.c_str());
  for (const std::string &name : rows.changed)
    printText("* %s %s\n", kind, name.c_str());
}

Result<CacheDifference> compare(const DiffFlags &flags) {
  NSA_ASSIGN_OR_RETURN(CacheFile first, CacheFile::open(flags.first));
  NSA_ASSIGN_OR_RETURN(CacheFile second, CacheFile::open(flags.second));
  return compareCaches(first, second);
}

// The exit codes are the same as in diff(1).
Ending diff(const DiffFlags &flags) {
  Result<CacheDifference> found = compare(flags);
  if (!found)
    return {ExitCode::kTrouble, found.status()};
  const ExitCode code = found->isNone() ? ExitCode::kDone : ExitCode::kFailed;
  if (flags.json) {
    printJson({{"first", flags.first},
               {"second", flags.second},
               {"same", found->isNone()},
               {"kernels", toJson(found->kernels)},
               {"choices", toJson(found->choices)},
               {"routes", toJson(found->routes)}});
    return code;
  }
  print("kernel", found->kernels);
  print("choice", found->choices);
  print("route", found->routes);
  printText("%s: %s, %s and %s in both alike\n",
            found->isNone() ? "the same" : "they differ (- only in the first, + only in the second, * changed)",
            countText(found->kernels.same, "kernel").c_str(), countText(found->choices.same, "choice").c_str(),
            countText(found->routes.same, "route").c_str());
  return code;
}

} // namespace

void addCacheVerify(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<VerifyFlags>(
      cache, action, "verify",
      "Look at every row of files: structure, digests, manifests, signatures; fails when anything is wrong", verify);
  verb.add_option("FILE", flags.files, "Databases or packs (default: the database)");
  addKeyFlag(verb, flags.keys);
  verb.add_flag("--require-signature", flags.requireSignature, "A pack that none of the keys has signed is wrong");
  addJsonFlag(verb, flags.json);
}

void addCacheDiff(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<DiffFlags>(
      cache, action, "diff",
      "In what two files differ: kernels by their digests, choices by what they name, thresholds", diff);
  verb.footer("The exit code is 0 if the files hold the same, 1 if they differ, and 2 if one cannot be read.");
  verb.add_option("FIRST", flags.first, "A database or a pack")->required();
  verb.add_option("SECOND", flags.second, "A database or a pack")->required();
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
