// A CUDA source with the device library written into it: NVRTC needs no include path, a person can read or compile
// the text as it stands, and its digest covers everything that made the kernel.
// Thread-safety: pure function.
#pragma once

#include "compiler/driver/TemplateFiles.h"

#include <string>
#include <vector>

namespace nsa {

struct DeviceSource {
  std::string text;
  std::vector<const TemplateFile *> headers; // those used, in order of first inclusion; owned by the TemplateFiles
};

// Puts templates/device/name.cuh, once, before the text of whatever says `#include "name.cuh"`. `file` names the source
// in errors. An include of anything else is an error: kernels use no toolkit header.
Result<DeviceSource> inlineDeviceLibrary(const std::string &source, const std::string &file,
                                         const TemplateFiles &files);

} // namespace nsa
