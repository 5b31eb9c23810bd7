#include "tests/harness/session.h"

namespace nsa::test {

const char *const kTestDevice = "cuda:0";

} // namespace nsa::test
