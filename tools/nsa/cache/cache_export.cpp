// `nsa cache export`: a pack of what a file holds.
#include "tools/nsa/cache/cache_verbs.h"
#include "tools/support/number_option.h"

#include "cache/pack_writer.h"

namespace nsa::tools {
namespace {

struct ExportFlags {
  std::string path, target;
  std::vector<std::string> keys;
  PackRequest request;
  bool force = false, json = false;
};

Status exportPack(const ExportFlags &flags) {
  constexpr std::string_view kEnding = ".nsapack";
  if (!flags.target.ends_with(kEnding))
    return Status::invalid("PACK", flags.target, "must end in " + std::string(kEnding),
                           "packs are found in their folder by that ending");
  NSA_ASSIGN_OR_RETURN(const SignatureRules rules, signatureRulesOf(flags.keys));
  NSA_ASSIGN_OR_RETURN(const std::string path, cachePathOf(flags.path));
  // The environment's rules are about packs, as an engine has them; the database is this user's own.
  NSA_ASSIGN_OR_RETURN(CacheFile from,
                       openToTake(path, rules, flags.keys.empty() ? Databases::kAccepted : Databases::kRefused));
  PackRequest request = flags.request;
  request.source = nsa_source_id();
  request.existing = flags.force ? ReplacingFile::Existing::kReplace : ReplacingFile::Existing::kRefuse;
  NSA_ASSIGN_OR_RETURN(PackReport report, writePack(from, flags.target, request));
  if (flags.json) {
    printJson({{"pack", flags.target},
               {"bytes", report.bytes},
               {"kernels", report.kernels},
               {"choices", report.choices},
               {"routes", report.routes},
               {"digest", toHex(report.digest)},
               {"left_out", report.unnamed},
               {"damaged", report.damaged}});
    return Status::ok();
  }
  printText("%s: %s, %s, %s, %s\ndigest %s\n", flags.target.c_str(), bytesText(report.bytes).c_str(),
            countText(report.kernels, "kernel").c_str(), countText(report.choices, "choice").c_str(),
            countText(report.routes, "route").c_str(), toHex(report.digest).c_str());
  if (report.unnamed > 0)
    printText("left out: %s that no choice in the pack names\n", countText(report.unnamed, "kernel").c_str());
  for (const std::string &content : report.damaged)
    printText("left out: kernel %s, which is damaged\n", content.c_str());
  return Status::ok();
}

} // namespace

void addCacheExport(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<ExportFlags>(
      cache, action, "export", "Write a pack: choices, their kernels and the measured thresholds in one read-only file",
      exportPack);
  verb.add_option("PACK", flags.target, "The file to make, NAME.nsapack")->required();
  addCacheFlag(verb, flags.path, kDatabaseOrPack);
  addKeyFlag(verb, flags.keys);
  addOption(verb, "--device TEXT", flags.request.device, "Only choices of devices whose key holds this text");
  addOption(verb, "--op OP", flags.request.operators, "Only choices of this operator; may be repeated")
      ->allow_extra_args(false);
  verb.add_flag("--tuned-only", flags.request.tunedOnly,
                "Only choices that were measured, and kernels that have nothing to measure");
  verb.add_flag("--brief", flags.request.isBrief,
                "Without what was measured for each choice; what thresholds rest on stays");
  addOption(verb, "--compression LEVEL", flags.request.compression,
            "Compress the kernels anew: a higher level is smaller and takes longer (default: as they are stored)",
            wholeWithin(1, kMostCompression));
  verb.add_flag("--force", flags.force, "Replace a file of that name");
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
