# cmake -D SOURCE=<tree> -D RELEASE=<version> -D OUTPUT=<header> -P source_id.cmake: names the revision that is built, with
# -dirty when tracked files differ from it; a tree without git says which release it is. Unchanged, the header is not touched.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE id OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(id)
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND id "-dirty")
  endif()
else()
  set(id "release-${RELEASE}")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define NSA_SOURCE_ID \"@id@\"\n" @ONLY)
