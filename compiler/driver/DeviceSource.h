// Writes the device library into a CUDA source. Because the source contains the device library, NVRTC needs no include
// path, a person can compile the text as it is, and the digest of the text covers all code of the kernel.
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

// Replaces each `#include` line by the text of the included file of templates/device. A device header is written once,
// before the text of the file that includes it first. `file` is the file name that errors show. An include of a file
// that is not in templates/device is an error, because kernels use no header of the CUDA toolkit.
Result<DeviceSource> inlineDeviceLibrary(const std::string &source, const std::string &file,
                                         const TemplateFiles &files);

} // namespace nsa
