# Writes what hosts compile from nsa.h into a text: values of constants, offset and size of each field of a struct, and
# the types of functions. Offsets come from a C program that is generated from the header. Compares the text with
# BASELINE, or replaces BASELINE with UPDATE=ON.
file(MAKE_DIRECTORY ${WORK})
execute_process(COMMAND ${CC} -std=c11 -E -P ${HEADER} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(FIND "${text}" "typedef enum nsa_status" begin) # behind the system's headers
string(SUBSTRING "${text}" ${begin} -1 text)
string(REGEX REPLACE "__attribute__\\(\\(visibility\\(\"default\"\\)\\)\\) " "" text "${text}")
string(REGEX REPLACE "[ \n\t]+" " " text "${text}")

# Reads one declaration after the other.
set(probe "")
set(rest "${text}")
set(declarations "")
while(rest MATCHES "^ *((typedef (enum|struct) [a-z_]+|enum) {([^}]*)}|[^;{]*)([^;{]*);")
  string(LENGTH "${CMAKE_MATCH_0}" length)
  set(head "${CMAKE_MATCH_2}")
  set(body "${CMAKE_MATCH_4}")
  set(declaration "${CMAKE_MATCH_1}")
  string(SUBSTRING "${rest}" ${length} -1 rest)
  if(head MATCHES "enum")
    string(REGEX MATCHALL "NSA_[A-Z0-9_]+" constants "${body}")
    foreach(constant IN LISTS constants)
      string(APPEND probe "CONSTANT(${constant})\n")
    endforeach()
  elseif(head MATCHES "struct (.*)")
    set(type ${CMAKE_MATCH_1})
    string(APPEND probe "STRUCT(${type})\n")
    foreach(field IN LISTS body)
      if(field MATCHES "^ *((const )?[a-z_0-9]+) *(.*)")
        set(kind "${CMAKE_MATCH_1}")
        string(REPLACE "," ";" names "${CMAKE_MATCH_3}")
        foreach(name IN LISTS names)
          string(REGEX REPLACE "[ *]|\\[.*" "" member "${name}")
          string(REPLACE " " "" name "${name}")
          string(APPEND probe "FIELD(${type}, ${member}, \"${kind} ${name}\")\n")
        endforeach()
      endif()
    endforeach()
  else()
    string(STRIP "${declaration}" declaration)
    string(APPEND declarations "${declaration}\n")
  endif()
endwhile()
if(NOT rest MATCHES "^ *$" OR probe STREQUAL "" OR declarations STREQUAL "")
  message(FATAL_ERROR "not read: ${rest}")
endif()

file(WRITE ${WORK}/probe.c "#include <nsa/nsa.h>
#include <stdio.h>
#define CONSTANT(name) printf(\"%s = %d\\n\", #name, (int)name);
#define STRUCT(type) printf(\"%s: %zu bytes\\n\", #type, sizeof(type));
#define FIELD(type, member, text) \\
  printf(\"  %3zu %4zu  %s\\n\", offsetof(type, member), sizeof(((type *)0)->member), text);
int main(void) {
CONSTANT(NSA_ABI_VERSION)
${probe}}
")
cmake_path(GET HEADER PARENT_PATH folder)
execute_process(COMMAND ${CC} -std=c11 -I${folder}/.. ${WORK}/probe.c -o ${WORK}/probe COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/probe OUTPUT_VARIABLE layouts COMMAND_ERROR_IS_FATAL ANY)
set(result "${layouts}${declarations}")
if(UPDATE)
  file(WRITE ${BASELINE} "${result}")
  return()
endif()
file(READ ${BASELINE} expected)
if(NOT result STREQUAL expected)
  file(WRITE ${WORK}/abi.txt "${result}")
  execute_process(COMMAND diff -u ${BASELINE} ${WORK}/abi.txt)
  message(FATAL_ERROR "nsa.h differs from its baseline. If hosts that are compiled keep working, or docs/embedding.md "
    "lists what breaks: cmake --build build --target nsa_abi_baseline")
endif()
