// Whether NVRTC is here: its absence is a visible skip, and a failure where NSA_EXPECT_NVRTC=1 says it must be there.
#pragma once

#include "compiler/cuda/Nvrtc.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string_view>

#define NSA_REQUIRE_NVRTC()                                                                                            \
  if (nsa::Result<const nsa::Nvrtc *> nvrtc = nsa::Nvrtc::open({}); !nvrtc) {                                          \
    const char *expected = std::getenv("NSA_EXPECT_NVRTC");                                                            \
    if (expected && std::string_view(expected) == "1")                                                                 \
      FAIL() << nvrtc.status().toString();                                                                             \
    GTEST_SKIP() << nvrtc.status().toString();                                                                         \
  }
