// Names the state of compiler/ and templates/ that this build was made from. The compiler writes its revision into the
// manifests of its kernels, and the runtime compares the kernel's revision with the revision of this build. Where the
// compiler library can be opened, the runtime compiles a kernel of another revision again.
// Thread-safety: a constant.
#pragma once

#include <string_view>

namespace nsa {

// Returns 64 hex digits: SHA-256 over the paths and contents of all sources of the compiler and of all templates.
std::string_view compilerRevision();

} // namespace nsa
