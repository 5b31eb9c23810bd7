# cmake -DBENCH=nsa_bench_speed -DTEMPLATES=templates -DRECORD=speed.json -DWORK=folder -P check_speed.cmake: with a
# template whose window loop begins at key 0, which gives the right result several times as slowly, the bench fails and
# names the kernel.
file(REMOVE_RECURSE ${WORK})
file(COPY ${TEMPLATES}/ DESTINATION ${WORK}/templates)
file(READ ${TEMPLATES}/tile/attention.tile text)
string(REPLACE "first_key = max(low(oldest), 0)" "first_key = 0" slow "${text}")
if(slow STREQUAL text)
  message(FATAL_ERROR "tile/attention.tile does not choose the first key as it did: mend this script")
endif()
file(WRITE ${WORK}/templates/tile/attention.tile "${slow}")
set(ENV{NSA_TEMPLATE_DIR} ${WORK}/templates)
execute_process(COMMAND ${BENCH} --results ${WORK}/results --ops window --against ${RECORD}
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
message("${output}${error}")
if(NOT code EQUAL 1 OR NOT error MATCHES
    "window on x86-64-v[34] is [0-9.]+ times as fast as the plain loop, which is less than half of the [0-9.]+ times recorded")
  message(FATAL_ERROR "ended with ${code}; expected 1 and the slow kernel's name")
endif()
