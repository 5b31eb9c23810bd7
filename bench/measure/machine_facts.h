// Collects the facts about a measurement that later readers of its record need: processor, device, driver, versions,
// and the commit that the program was built from.
// Thread-safety: machine_facts.h has only pure functions.
#pragma once

#include "runtime/base/status.h"
#include "tools/support/engine.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::bench {

Result<nlohmann::json> machineFacts(nsa_engine *engine);
std::string processorName();

} // namespace nsa::bench
