#include "runtime/engine/report/miss_report.h"

#include "runtime/base/config_text.h"

#include <string_view>

namespace nsa {

namespace {

// One argument of a shell, whatever the text holds.
std::string shellWord(const std::string &text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos)
    return text;
  std::string word = "'";
  for (const char each : text)
    word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

} // namespace

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
