#include "runtime/engine/report/miss_report.h"

#include "runtime/base/config_text.h"
#include "runtime/base/text.h"

namespace nsa {

TunedSubject planTuning(const Spec &spec, const Maxima &maxima) {
  std::string options = "--op " + std::string(operatorName(spec.op)) + " --config " + shellWord(configText(spec)) +
                        " --batch " + std::to_string(maxima.batch) + " --seqlen-q " + std::to_string(maxima.seqlenQ) +
                        " --seqlen-k " + std::to_string(maxima.seqlenK);
  if (maxima.tokensQ != maxima.batch * maxima.seqlenQ)
    options += " --tokens-q " + std::to_string(maxima.tokensQ);
  return {std::move(options)};
}

TunedSubject programTuning(const std::string &name, const std::string &path,
                           const std::map<std::string, std::string> &values) {
  const std::string file = path.empty() ? name + ".tile" : path;
  TunedSubject subject{"--program " + shellWord(file)};
  for (const auto &[key, value] : values)
    subject.options += " --set " + shellWord(key + "=" + value);
  if (path.empty())
    subject.comment = "first save the text of the program as " + file;
  return subject;
}

std::string tuneHint(const TuneCommand &command) {
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
  text += "nsa tune " + command.subject.options + " --device " + command.device + " --cache " +
          (isPinned || !isKept ? "kernels.db" : shellWord(command.cachePath));
  std::string comment = command.subject.comment;
  auto add = [&](const char *more) { comment += (comment.empty() ? "" : "; ") + std::string(more); };
  if (isPinned) {
    add("then make the pinned table anew from its choices and kernels.db");
  } else if (!isKept) {
    text += " && nsa cache export kernels.nsapack --force --cache kernels.db";
    add("a pack for NSA_CACHE_PACKS");
  }
  return comment.empty() ? text : text + " # " + comment;
}

} // namespace nsa
