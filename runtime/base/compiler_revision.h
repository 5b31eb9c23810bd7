// Identifies the sources in compiler/ and templates/ from which this library was built. The compiler writes its
// revision into the manifests of its kernels, and the runtime compares the kernel's revision with the revision of this
// build. If the compiler library can be opened, the runtime compiles a stored kernel of another revision again.
// Thread-safety: a constant.
#pragma once

#include <string_view>

namespace nsa {

// Returns 64 hex digits: SHA-256 over the paths and contents of all sources of the compiler and of all templates.
std::string_view compilerRevision();

} // namespace nsa
