# Settings shared by all of our targets, and the libraries that are linked statically and hidden.

find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_library(NSA_SQLITE_STATIC libsqlite3.a REQUIRED)
find_path(NSA_SQLITE_INCLUDE sqlite3.h REQUIRED)
add_library(nsa_sqlite STATIC IMPORTED)
set_target_properties(nsa_sqlite PROPERTIES
  IMPORTED_LOCATION ${NSA_SQLITE_STATIC} INTERFACE_INCLUDE_DIRECTORIES ${NSA_SQLITE_INCLUDE}
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
find_library(NSA_ZSTD_STATIC libzstd.a REQUIRED)
find_library(NSA_SODIUM_STATIC libsodium.a REQUIRED)

# Warnings and sanitizers of a target of ours. UNINSTRUMENTED: the target is code of the tests, and the build of the
# address sanitizer does not watch it, because instrumented it took most of that build's time. The thread sanitizer has
# to see all threads. Sources ask for a sanitizer by NSA_ADDRESS_SANITIZER and NSA_THREAD_SANITIZER, which all targets of
# its build have.
function(nsa_flags target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "UNINSTRUMENTED" "" "")
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections
    -fPIC # in executables too, for which the rest of CMake says -fPIE: precompiled headers have one of the two
    $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>) # so ccache knows them again
  if(NSA_SANITIZE)
    if(NSA_SANITIZE MATCHES "address")
      target_compile_definitions(${target} PRIVATE NSA_ADDRESS_SANITIZER)
    else()
      target_compile_definitions(${target} PRIVATE NSA_THREAD_SANITIZER)
    endif()
    # Every finding ends the program. Kernels made at run time have no type before their entry, which `function` reads.
    if(NOT arg_UNINSTRUMENTED OR NSA_FUZZ OR NSA_SANITIZE STREQUAL "thread")
      target_compile_options(${target} PRIVATE
        -fsanitize=${NSA_SANITIZE} -fno-sanitize=function -fno-sanitize-recover=all)
    endif()
    target_compile_options(${target} PRIVATE -fno-omit-frame-pointer) # by which the runtime finds the callers
    target_link_options(${target} PRIVATE -fsanitize=${NSA_SANITIZE})
  endif()
  if(NSA_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# nsa_install(...): install(), but not into the prefix of a project that has taken this one in without asking for it.
function(nsa_install)
  if(NSA_INSTALL)
    install(${ARGV})
  endif()
endfunction()

# nsa_portable(target): what users get. The C++ library is inside, as older systems have an older one and bare systems
# none. The unwinder is not: the static one wants glibc 2.35, and every system has libgcc_s.so.1.
# A sanitizer's runtime replaces functions of the C++ library, which must be shared for that.
# NSA_SYSROOT has an older C library (tools/sysroot). Only the linker sees it: the archives that are linked were compiled with
# this system's headers, and ours are the same then.
# nsa_portable_test looks at all of them.
function(nsa_portable target)
  if(NOT NSA_SANITIZE)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:nsa_older_glibc>)
    target_link_options(${target} PRIVATE -static-libstdc++ LINKER:--gc-sections LINKER:--as-needed)
    if(NSA_SYSROOT)
      target_link_options(${target} PRIVATE --sysroot=${NSA_SYSROOT})
      # Older versions of glibc have threads and dlopen in libraries of their own.
      target_link_libraries(${target} PRIVATE pthread dl)
    endif()
    set_property(GLOBAL APPEND PROPERTY NSA_PORTABLE_TARGETS ${target})
  endif()
endfunction()

# nsa_install_program(target folder [arguments of install(TARGETS)]): a program that finds libnsa.so from its own place,
# in the build tree and wherever the installed tree is moved. Both trees have the same run path, so that CMake does not
# edit it: what it would edit later it fills with ':', and the loader reads an empty element as the working directory.
function(nsa_install_program target folder)
  file(RELATIVE_PATH built ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  file(RELATIVE_PATH installed /${folder} /${CMAKE_INSTALL_LIBDIR})
  set(places "$ORIGIN/${built}" "$ORIGIN/${installed}")
  list(REMOVE_DUPLICATES places)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${places}")
  nsa_portable(${target})
  nsa_install(TARGETS ${target} RUNTIME DESTINATION ${folder} ${ARGN})
endfunction()

# nsa_install_bundle_program(target ...): not for those who install the library; tools/bundle asks for the component.
function(nsa_install_bundle_program)
  foreach(target IN LISTS ARGN)
    nsa_install_program(${target} ${CMAKE_INSTALL_LIBEXECDIR}/nsa COMPONENT bundle EXCLUDE_FROM_ALL)
  endforeach()
endfunction()

# Code whose own time is nothing beside what it calls, with headers that take minutes to optimise (CLI11, GoogleTest).
set(nsa_unoptimized -O0)
if(NSA_FUZZ) # runs it a million times
  set(nsa_unoptimized "")
endif()

# nsa_common_headers(name [UNINSTRUMENTED] [INCLUDES folder ...] [LIBS target ...] [OPTIONS option ...]
#                    HEADERS <a> ...)
# Headers that most files of a kind include, parsed once. They replace no #include: the preset gcc compiles without them.
function(nsa_common_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "UNINSTRUMENTED" "" "LIBS;OPTIONS;INCLUDES;HEADERS")
  add_library(${name} OBJECT ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/common_headers.cpp)
  set(instrumentation "")
  if(arg_UNINSTRUMENTED)
    set(instrumentation UNINSTRUMENTED)
  endif()
  nsa_flags(${name} ${instrumentation})
  target_include_directories(${name} SYSTEM PRIVATE ${arg_INCLUDES})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()
set(nsa_standard_header_names
  <algorithm> <array> <atomic> <chrono> <cmath> <filesystem> <fstream> <functional> <map> <memory> <mutex> <numeric>
  <optional> <random> <set> <span> <sstream> <string> <string_view> <thread> <vector> <nlohmann/json.hpp>)
nsa_common_headers(nsa_standard_headers LIBS nlohmann_json::nlohmann_json HEADERS ${nsa_standard_header_names})

# The build of the address sanitizer optimises what works on elements alone: the rest would take twice as long to compile
# and little less to run. The tests that the thread sanitizer's build runs have few elements.
set(nsa_elements "")
if(NSA_SANITIZE MATCHES "address" AND CMAKE_CXX_FLAGS_RELWITHDEBINFO MATCHES "-O0")
  set(nsa_elements -O2)
endif()

# nsa_target(target [HEADERS name] [UNOPTIMIZED | ELEMENTS] [UNINSTRUMENTED]): a target of ours. Public headers of the
# repository are found from its root. What is precompiled by nsa_common_headers(name) must have been made with the same
# options.
# ELEMENTS: its loops run over the elements of tensors, the bytes of kernels or many times.
function(nsa_target target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "UNOPTIMIZED;ELEMENTS;UNINSTRUMENTED" "HEADERS" "")
  set(instrumentation "")
  if(arg_UNINSTRUMENTED)
    set(instrumentation UNINSTRUMENTED)
  endif()
  nsa_flags(${target} ${instrumentation})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  if(arg_UNOPTIMIZED)
    target_compile_options(${target} PRIVATE ${nsa_unoptimized})
  endif()
  if(arg_ELEMENTS AND nsa_elements)
    target_compile_options(${target} PRIVATE ${nsa_elements})
  elseif(arg_HEADERS AND NOT (arg_HEADERS STREQUAL "nsa_standard_headers" AND arg_UNINSTRUMENTED
      AND NSA_SANITIZE MATCHES "address" AND NOT NSA_FUZZ)) # these headers are instrumented
    target_precompile_headers(${target} REUSE_FROM ${arg_HEADERS})
  endif()
endfunction()
