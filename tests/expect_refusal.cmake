cmake_minimum_required(VERSION 3.25)

# cmake -D "SAYS=pattern" -P expect_refusal.cmake -- command ...: fails unless the command fails and says what the pattern
# says. ctest alone looks at the exit code or at the text, never at both.
set(command "")
set(begun FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(begun)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(begun TRUE)
  endif()
endforeach()
execute_process(COMMAND ${command} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
string(REGEX REPLACE "[ \n]+" " " text "${text}") # CMake breaks the lines of a message anywhere
if(code EQUAL 0)
  message(FATAL_ERROR "the command should have failed, and ended with 0: ${text}")
endif()
if(NOT text MATCHES "${SAYS}")
  message(FATAL_ERROR "the command failed with ${code} and did not say \"${SAYS}\": ${text}")
endif()
