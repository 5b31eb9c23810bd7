// An engine's options as they are given, whatever variables the tests run under.
#pragma once

namespace nsa::test {

inline const char *noVariable(const char *) { return nullptr; }

} // namespace nsa::test
