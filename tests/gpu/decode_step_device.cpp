#include "tests/harness/session.h"

namespace nsa::test {

const char *const kTestDevice = "cuda:0";
const char *const kTestTemplate = kStepTemplate;

} // namespace nsa::test
