#include "runtime/base/kernel_constants.h"

#include "runtime/base/device_status.h"
#include "runtime/base/sequence_fields.h"

#include <algorithm>
#include <iterator>

namespace nsa {

bool lookupKernelConstant(std::string_view name, int64_t &number) {
  constexpr std::string_view kSequence = "sequence_", kStatus = "status_";
  if (name == "sequence_fields") {
    number = kSequenceFields;
    return true;
  }
  if (name == "most_k_offset") {
    number = kMostKOffset;
    return true;
  }
  if (name.starts_with(kSequence)) {
    const auto *found =
        std::find(std::begin(kSequenceFieldNames), std::end(kSequenceFieldNames), name.substr(kSequence.size()));
    if (found == std::end(kSequenceFieldNames))
      return false;
    number = found - std::begin(kSequenceFieldNames);
    return true;
  }
  return name.starts_with(kStatus) && findDeviceStatusCode(name.substr(kStatus.size()), number);
}

} // namespace nsa
