# A compiler library from another build takes the place of the target nsa_compiler. The sanitizer builds use it: ours is
# instrumented, LLVM's archives are not, and most of a build's time goes into the compiler.
if(NOT EXISTS ${NSA_PREBUILT_COMPILER})
  message(FATAL_ERROR "NSA_PREBUILT_COMPILER: there is no ${NSA_PREBUILT_COMPILER}; build the target nsa_compiler first")
endif()
add_library(nsa_compiler SHARED IMPORTED GLOBAL)
set_target_properties(nsa_compiler PROPERTIES IMPORTED_LOCATION ${NSA_PREBUILT_COMPILER})
# libnsa.so looks for it beside itself.
file(MAKE_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
file(CREATE_LINK ${NSA_PREBUILT_COMPILER} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libnsa_compiler.so SYMBOLIC)
