# Settings shared by all of our targets, and the libraries that are linked statically and hidden.

find_package(Threads REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_library(NSA_ZSTD_STATIC libzstd.a REQUIRED)
find_library(NSA_SODIUM_STATIC libsodium.a REQUIRED)
find_path(NSA_XXHASH_INCLUDE xxhash.h REQUIRED)

# Warnings and sanitizers of a target of ours. Public headers of the repository are found from its root.
function(nsa_target target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections)
  if(NSA_SANITIZE)
    # Every finding ends the program. Kernels made at run time have no type before their entry, which `function` reads.
    target_compile_options(${target} PRIVATE
      -fsanitize=${NSA_SANITIZE} -fno-sanitize=function -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${NSA_SANITIZE})
  endif()
endfunction()
