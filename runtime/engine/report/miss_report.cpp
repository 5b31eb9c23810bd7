#include "runtime/engine/report/miss_report.h"

#include "runtime/base/config_text.h"
#include "runtime/base/text.h"

namespace nsa {

std::string tuneHint(const TuneCommand &command) {
  const Maxima &maxima = command.maxima;
  const bool isPinned = !command.pinPath.empty(), isKept = command.cachePath != ":memory:";
  std::string text;
  auto variable = [&](const char *name, const std::string &value) { text += std::string(name) + "=" + value + " "; };
  if (!command.templateDir.empty())
    variable("NSA_TEMPLATE_DIR", shellWord(command.templateDir));
  if (!command.cpuFeatures.empty())
    variable("NSA_CPU_FEATURES", shellWord(command.cpuFeatures));
  if (command.decodeSplits != 0)
    variable("NSA_DECODE_SPLITS", std::to_string(command.decodeSplits));
  if (command.ignoreThresholds)
    variable("NSA_IGNORE_THRESHOLDS", "1");
  text += "nsa tune --op " + std::string(operatorName(command.spec.op)) + " --config " +
          shellWord(configText(command.spec)) + " --batch " + std::to_string(maxima.batch) + " --seqlen-q " +
          std::to_string(maxima.seqlenQ) + " --seqlen-k " + std::to_string(maxima.seqlenK);
  if (maxima.tokensQ != maxima.batch * maxima.seqlenQ)
    text += " --tokens-q " + std::to_string(maxima.tokensQ);
  text += " --device " + command.device + " --cache ";
  if (isPinned)
    return text + "kernels.db # then make the pinned table anew from its choices and kernels.db";
  if (!isKept)
    return text +
           "kernels.db && nsa cache export kernels.nsapack --force --cache kernels.db # a pack for NSA_CACHE_PACKS";
  return text + shellWord(command.cachePath);
}

} // namespace nsa
