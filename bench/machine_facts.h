// What a result must carry to be read later: processor, device, driver, versions and the source it was built from.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "tools/support/engine.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

Result<nlohmann::json> machineFacts(nsa_engine *engine);
std::string processorName();

} // namespace nsa::bench
