// Writes the device library into a CUDA source. With the device library in the source, NVRTC needs no include path, a
// person can read or compile the text as it is, and the digest of the text covers everything that made the kernel.
// Thread-safety: inlineDeviceLibrary is a pure function.
#pragma once

#include "compiler/driver/TemplateFiles.h"

#include <string>
#include <vector>

namespace nsa {

struct DeviceSource {
  std::string text;
  std::vector<const TemplateFile *>
      headers; // the included headers in order of first inclusion; owned by the TemplateFiles
};

// Replaces each `#include "name.cuh"` with the header of that name from the folder templates/device. A device header is
// written once, before the text of the file that includes it first. `file` names the source in errors. An include of a
// file that is not in templates/device is an error, because kernels use no header of the CUDA toolkit.
Result<DeviceSource> inlineDeviceLibrary(const std::string &source, const std::string &file,
                                         const TemplateFiles &files);

} // namespace nsa
