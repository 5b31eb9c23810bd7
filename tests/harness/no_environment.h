// An environment without variables, so that an engine's options stay as a test sets them.
#pragma once

namespace nsa::test {

inline const char *noVariable(const char *) { return nullptr; }

} // namespace nsa::test
