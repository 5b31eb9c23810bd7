#include "tests/harness/session.h"

namespace nsa::test {

const char *const kTestDevice = "cpu";

} // namespace nsa::test
