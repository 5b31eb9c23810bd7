// The list of all NVRTC functions that the compiler looks up at run time. The entry points of NVRTC are declared in
// this file instead of included from <nvrtc.h>, so that a build needs no CUDA toolkit. The C ABI of the declared NVRTC
// functions has not changed since CUDA 11.1. NSA_NVRTC_SYMBOLS(X) calls X(member, symbol, parameters). Every function
// of NVRTC returns an nvrtcResult (0: success).
#pragma once

#include <cstddef>

namespace nsa {

struct NvrtcProgram; // _nvrtcProgram of the CUDA headers

#define NSA_NVRTC_SYMBOLS(X)                                                                                           \
  X(version, nvrtcVersion, (int *major, int *minor))                                                                   \
  X(supportedArchCount, nvrtcGetNumSupportedArchs, (int *count))                                                       \
  X(supportedArchs, nvrtcGetSupportedArchs, (int *archs))                                                              \
  X(createProgram, nvrtcCreateProgram,                                                                                 \
    (NvrtcProgram * *program, const char *source, const char *name, int headerCount, const char *const *headers,       \
     const char *const *headerNames))                                                                                  \
  X(compileProgram, nvrtcCompileProgram, (NvrtcProgram * program, int optionCount, const char *const *options))        \
  X(destroyProgram, nvrtcDestroyProgram, (NvrtcProgram * *program))                                                    \
  X(logSize, nvrtcGetProgramLogSize, (NvrtcProgram * program, size_t *size))                                           \
  X(log, nvrtcGetProgramLog, (NvrtcProgram * program, char *log))                                                      \
  X(cubinSize, nvrtcGetCUBINSize, (NvrtcProgram * program, size_t *size))                                              \
  X(cubin, nvrtcGetCUBIN, (NvrtcProgram * program, char *cubin))                                                       \
  X(ptxSize, nvrtcGetPTXSize, (NvrtcProgram * program, size_t *size))                                                  \
  X(ptx, nvrtcGetPTX, (NvrtcProgram * program, char *ptx))

} // namespace nsa
