# LLVM and MLIR 22 as static libraries.
# Debian links its tools against the LLVM dylib and names that dylib in every exported target; a library
# that mixes it with the static components registers every option twice and aborts at start. So the
# dylib is taken out of all interfaces and the static components put in its place (docs/architecture.md).

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

llvm_map_components_to_libnames(nsa_llvm_components
  core support passes analysis transformutils irreader bitwriter remarks target mc object x86codegen x86desc x86info x86asmparser)
add_library(nsa_llvm INTERFACE)
target_link_libraries(nsa_llvm INTERFACE ${nsa_llvm_components})

get_property(nsa_mlir_targets GLOBAL PROPERTY MLIR_ALL_LIBS)
foreach(target IN LISTS nsa_mlir_targets)
  if(TARGET ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    if(links)
      if("LLVM" IN_LIST links)
        list(APPEND links nsa_llvm)
      endif()
      list(REMOVE_ITEM links LLVM MLIR)
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
    endif()
  endif()
endforeach()

# LLVMSupport names shared z3, zlib and zstd; z3 is not needed, the others have archives.
find_library(NSA_ZLIB_STATIC libz.a REQUIRED)
get_target_property(links LLVMSupport INTERFACE_LINK_LIBRARIES)
list(FILTER links EXCLUDE REGEX "z3|ZLIB|zstd")
list(APPEND links ${NSA_ZLIB_STATIC} ${NSA_ZSTD_STATIC})
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")

# nsa_mlir_common_headers(name [LIBS target ...] [OPTIONS option ...] [HEADERS <a> ...])
function(nsa_mlir_common_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;OPTIONS;HEADERS")
  nsa_common_headers(${name}
    INCLUDES ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS}
    LIBS nlohmann_json::nlohmann_json ${arg_LIBS}
    OPTIONS -fno-exceptions ${arg_OPTIONS}
    HEADERS ${nsa_standard_header_names}
      <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/SCF/IR/SCF.h> <mlir/IR/Matchers.h>
      <mlir/Pass/PassManager.h> ${arg_HEADERS})
endfunction()
nsa_mlir_common_headers(nsa_mlir_headers)

# nsa_llvm_target(target [HEADERS name] [UNOPTIMIZED])
# A target whose code includes LLVM or MLIR headers: no exceptions (as the archives), RTTI stays on.
function(nsa_llvm_target target)
  if("HEADERS" IN_LIST ARGN)
    nsa_target(${target} ${ARGN})
  else()
    nsa_target(${target} HEADERS nsa_mlir_headers ${ARGN})
  endif()
  target_include_directories(${target} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR})
  target_compile_options(${target} PRIVATE -fno-exceptions)
endfunction()
