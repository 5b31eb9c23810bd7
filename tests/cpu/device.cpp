#include "tests/harness/session.h"

namespace nsa::test {

const char *const kTestDevice = "cpu";
const char *const kTestTemplate = kTileTemplate;

} // namespace nsa::test
