// Makes the texts that describe the command line: its page in docs/, the manual page, and the completion of two shells.
// Thread-safety: pages.h has only pure functions.
#pragma once

#include "tools/nsa/pages/verb.h"

#include <string>

namespace nsa::tools {

std::string markdownPage(const Verb &program);
std::string manualPage(const Verb &program, const std::string &version);
std::string bashCompletion(const Verb &program);
std::string zshCompletion(const Verb &program);

} // namespace nsa::tools
