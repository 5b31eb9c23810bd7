# cmake -DTBLGEN=mlir-tblgen -DINCLUDES=dir:dir -DSOURCE=<repository> -DOUTPUT=page [-DCOMMITTED=page] -P TileReference.cmake
# Writes docs/tile_reference.md from the definitions; with COMMITTED, fails when that page is another one.

string(REPLACE ":" ";" directories ${SOURCE}:${INCLUDES})
set(include_flags "")
foreach(directory IN LISTS directories)
  list(APPEND include_flags -I ${directory})
endforeach()

function(generate result)
  execute_process(COMMAND ${TBLGEN} ${ARGN} ${include_flags} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  # The titles of the generated parts become subtitles of the page. Blanks at the end of a line, and a mark for site
  # generators, are removed.
  string(REGEX REPLACE "\n(#+ )" "\n#\\1" text "\n${text}")
  string(REGEX REPLACE "[ \t]+\n" "\n" text "${text}")
  string(REPLACE "\n[TOC]\n" "" text "${text}")
  string(STRIP "${text}" text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

generate(dialect -gen-dialect-doc -dialect=tile ${SOURCE}/compiler/dialect/TileScheduledOps.td)
generate(passes -gen-pass-doc ${SOURCE}/compiler/passes/Passes.td)
generate(cpu_passes -gen-pass-doc ${SOURCE}/compiler/cpu/Passes.td)
file(WRITE ${OUTPUT} "# What can a tile program say?

Generated from the .td files of compiler/dialect and the Passes.td of compiler/passes and compiler/cpu by the target `nsa_tile_reference`.
[Decision 0001](decisions/0001-tile-programs.md) gives the reasons, [writing_a_template](writing_a_template.md) the way in.

${dialect}

## Passes

${passes}

## Passes of the CPU backend

${cpu_passes}
")

if(COMMITTED)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUTPUT} ${COMMITTED} RESULT_VARIABLE differs)
  if(differs)
    message(FATAL_ERROR "${COMMITTED} is not what the definitions say: build the target nsa_tile_reference and commit the page")
  endif()
endif()
