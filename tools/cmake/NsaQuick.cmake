# The label `quick`: what `tools/test -L quick` runs while one works, in less than half a minute on two cores. Its tests are
# chosen by the time of a processor that they were measured to take, which stands beside each.
# So it stays quick: the configuration fails when the times together exceed the limit below, and a test fails when it takes
# several times as long as it says.
set(nsa_quick_limit 46000) # milliseconds of a processor: 23 s of two, beside some seconds to find nothing to build

# nsa_quick_test(test milliseconds): an existing test of this folder that belongs to it.
function(nsa_quick_test test milliseconds)
  if(NSA_SANITIZE)
    return()
  endif()
  set_property(TEST ${test} APPEND PROPERTY LABELS quick)
  math(EXPR seconds "${milliseconds} / 1000")
  math(EXPR timeout "20 + 5 * ${seconds}") # busy machines are several times as slow
  set_tests_properties(${test} PROPERTIES COST ${seconds} TIMEOUT ${timeout})
  get_property(sum GLOBAL PROPERTY nsa_quick_milliseconds)
  math(EXPR sum "0${sum} + ${milliseconds}")
  set_property(GLOBAL PROPERTY nsa_quick_milliseconds ${sum})
  if(sum GREATER nsa_quick_limit)
    message(FATAL_ERROR "With ${test} the tests of the label quick take ${sum} ms of a processor, the limit is "
      "${nsa_quick_limit} (tools/cmake/NsaQuick.cmake). Take the label from a test that is less worth its time.")
  endif()
endfunction()

# nsa_quick_part(part OF test FILTER filter MILLISECONDS n): of a GoogleTest executable that takes longer, those tests that
# the filter names become a test of their own, and `test` runs the others. The sanitizers' presets have a filter for all
# executables, so there it stays whole.
function(nsa_quick_part part)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OF;FILTER;MILLISECONDS" "")
  if(NSA_SANITIZE)
    return()
  endif()
  get_test_property(${arg_OF} ENVIRONMENT environment)
  if(NOT environment)
    set(environment "")
  endif()
  get_test_property(${arg_OF} LABELS labels)
  add_test(NAME ${part} COMMAND ${arg_OF})
  set_tests_properties(${part} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment};GTEST_FILTER=${arg_FILTER}")
  set_tests_properties(${arg_OF} PROPERTIES ENVIRONMENT "${environment};GTEST_FILTER=-${arg_FILTER}")
  nsa_quick_test(${part} ${arg_MILLISECONDS})
endfunction()
