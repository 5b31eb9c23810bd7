# cmake -DRENDER=nsa_render_tables -DPAGE=fixture.md -DWORK=folder -P check_render.cmake: what the program makes of
# records that are written here, in a tree without git, and that a page which is not current is found.
set(machine "\"processor\": \"P\", \"device\": {\"kind\": \"cpu\", \"threads\": \"2\"}")
set(device "\"machine\": {\"source\": \"release-1\", \"date\": \"2026-01-02\", ${machine}}")
set(shape "\"op\": \"dense\", \"dtype\": \"bf16\", \"query_heads\": 8, \"kv_heads\": 2, \"qk_dim\": 64, \"v_dim\": 32, \"tokens\": 256, \"window\": 0")
set(results ${WORK}/bench/results/one)
file(REMOVE_RECURSE ${WORK})
file(WRITE ${results}/attention.json "{${device}, \"roof\": {\"tflops\": 790.0, \"terabytes_per_second\": 4.3}, \"peers\": {\"torch\": \"9.9\"}, \"results\": [
  {${shape}, \"implementation\": \"nsa default\", \"median_ms\": 0.25, \"tflops\": 1.5, \"percent_of_roof\": null},
  {${shape}, \"implementation\": \"nsa tuned\", \"median_ms\": 0.125, \"tflops\": 3.0, \"percent_of_roof\": 42.42},
  {${shape}, \"implementation\": \"torch flash\", \"median_ms\": 12.5},
  {${shape}, \"implementation\": \"torch cudnn\", \"note\": \"does not serve\"}]}")
file(WRITE ${results}/cpu.json "{${device}, \"table\": [{\"title\": \"A\", \"field\": \"a\"}, {\"title\": \"B\", \"field\": \"b\"}],
  \"results\": [{\"a\": \"x\", \"b\": 1234.5}, {\"a\": 7}]}")
configure_file(${PAGE} ${WORK}/page.md COPYONLY)

function(render expected)
  execute_process(COMMAND ${RENDER} ${ARGN} ${WORK} ${WORK}/page.md RESULT_VARIABLE code ERROR_VARIABLE text OUTPUT_QUIET)
  if(NOT code EQUAL expected)
    message(FATAL_ERROR "nsa_render_tables ${ARGN} left with ${code}, expected ${expected}: ${text}")
  endif()
endfunction()
render(1 --check)
render(0)
render(0 --check)
file(READ ${WORK}/page.md page)
foreach(wanted
    "P, 2 threads, roof 790 TFLOP/s and 4.30 TB/s, torch 9.9, source release-1, 2026-01-02\n"
    "| torch flash ms | torch cudnn ms |"
    "| dense | bf16 | 8/2 | 64/32 | 256 | - | 0.250 | 0.125 | 3.00 | 42.4 | 12.5 | - |"
    "| A | B |\n|---|---|\n| x | 1234 |\n| 7 | - |\n<!-- end -->\nAfter.")
  string(FIND "${page}" "${wanted}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "the rendered page lacks\n${wanted}\nand is\n${page}")
  endif()
endforeach()
# A figure is a file beside the page, which is made anew when it is missing or another one.
file(WRITE ${results}/run.json "{${device}, \"figure\": {\"title\": \"F\", \"x\": {\"title\": \"X\", \"field\": \"a\"}, \"y\": {\"title\": \"Y\"},
  \"series\": [{\"name\": \"S\", \"field\": \"b\"}]}, \"results\": [{\"a\": 1, \"b\": 2.5}, {\"a\": 2, \"b\": 1.5}]}")
file(APPEND ${WORK}/page.md "<!-- figure:one/run -->\n<!-- end -->\n")
render(0)
render(0 --check)
file(READ ${WORK}/figures/one-run.svg figure)
file(REMOVE ${WORK}/figures/one-run.svg)
render(1 --check)
file(WRITE ${WORK}/figures/one-run.svg "<svg/>")
render(1 --check)
render(0)
file(READ ${WORK}/figures/one-run.svg same)
if(NOT figure MATCHES "<title>1: 2.50</title>" OR NOT same STREQUAL figure)
  message(FATAL_ERROR "the figure is\n${figure}\nand then\n${same}")
endif()
file(REMOVE_RECURSE ${WORK}/figures)
file(WRITE ${WORK}/figures "no folder")
render(1)
file(REMOVE ${WORK}/figures)
file(WRITE ${WORK}/page.md "${page}")
# A typed table with a time, a record that no page shows but that nothing could be read from, a marker of nothing.
file(APPEND ${WORK}/page.md "\n| A |\n|---|\n| 3 ms |\n")
render(1 --check)
file(WRITE ${WORK}/page.md "${page}")
file(WRITE ${results}/other.json "{\"machine\": {\"source\": \"0123456789ab-dirty\"}, \"results\": []}")
render(1 --check)
file(REMOVE ${results}/other.json)
render(0 --check)
file(APPEND ${WORK}/page.md "<!-- table:nothing -->\n<!-- end -->\n")
render(1)
# What is no page.
foreach(wanted "bench is a folder: name the pages in it" "none.md cannot be read")
  string(REGEX REPLACE " .*" "" name "${wanted}")
  execute_process(COMMAND ${RENDER} ${WORK} ${WORK}/${name} RESULT_VARIABLE code ERROR_VARIABLE text)
  if(NOT code EQUAL 1 OR NOT text MATCHES "nsa_render_tables: [^\n]*${wanted}\n")
    message(FATAL_ERROR "nsa_render_tables on ${name} left with ${code}: ${text}")
  endif()
endforeach()
