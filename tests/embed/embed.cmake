# The steps of the embed tests; CASE says which. WORK keeps the install tree and the hosts' builds between them.
set(tree ${WORK}/tree)
# Nothing of this shell or of the build tree may help: the programs find what the package gives them.
foreach(variable LD_LIBRARY_PATH NSA_COMPILER NSA_CACHE_DIR NSA_DEVICE NSA_MISS NSA_TEMPLATE_DIR NSA_FORCE_VARIANT)
  unset(ENV{${variable}})
endforeach()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Each program twice, in processes of their own, on a cache that is empty at first.
function(run_cold_and_warm directory)
  foreach(program window_c window_cpp)
    set(cache ${directory}/cache_${program})
    file(REMOVE_RECURSE ${cache})
    run(${directory}/${program} ${cache}/kernels.db cold)
    run(${directory}/${program} ${cache}/kernels.db warm)
  endforeach()
endfunction()

if(CASE STREQUAL "nsa_embed_install")
  file(REMOVE_RECURSE ${WORK})
  # The store refuses folders that others may write; what this makes under a umask of 002 is such.
  file(MAKE_DIRECTORY ${WORK})
  file(CHMOD ${WORK} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${tree})
  foreach(file include/nsa/nsa.h include/nsa/nsa.hpp ${LIBDIR}/libnsa.so ${LIBDIR}/libnsa.so.0
          ${LIBDIR}/libnsa_compiler.so ${LIBDIR}/cmake/nsa/nsaConfig.cmake ${LIBDIR}/pkgconfig/nsa.pc
          share/nsa/packs/nvidia-h200.nsapack share/nsa/packs/nvidia-h200.public)
    if(NOT EXISTS ${tree}/${file})
      message(FATAL_ERROR "the install tree lacks ${file}")
    endif()
  endforeach()
  foreach(file run-gpu-tests libexec)
    if(EXISTS ${tree}/${file})
      message(FATAL_ERROR "the install tree has ${file}, which only the bundle should")
    endif()
  endforeach()
  # What is installed satisfies the strict policy with the key that comes with it.
  run(${tree}/bin/nsa cache verify --key ${tree}/share/nsa/packs/nvidia-h200.public
    ${tree}/share/nsa/packs/nvidia-h200.nsapack)
  execute_process(COMMAND ldd ${tree}/${LIBDIR}/libnsa.so OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "${libraries}")
  string(REGEX MATCHALL "[^ \t\n]+\\.so[^ \n]*" names "${libraries}")
  foreach(name IN LISTS names)
    get_filename_component(name ${name} NAME)
    if(NOT name MATCHES "^(linux-vdso|libc|libm|libgcc_s|ld-linux-x86-64)\\.so")
      message(FATAL_ERROR "libnsa.so needs ${name}")
    endif()
  endforeach()

elseif(CASE STREQUAL "nsa_embed_run_paths")
  # The bundle's programs, which tools/bundle puts into the same tree as the others.
  set(bundle ${WORK}/bundle)
  file(REMOVE_RECURSE ${bundle})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${bundle} --component bundle)
  file(COPY ${tree}/bin ${tree}/${LIBDIR} DESTINATION ${bundle})
  run(${CMAKE_COMMAND} -D READELF=${READELF} "-D FOLDERS=${bundle}/bin;${bundle}/${LIBDIR};${bundle}/libexec"
    -D PROGRAM=${bundle}/bin/nsa -P ${CMAKE_CURRENT_LIST_DIR}/check_run_paths.cmake)
  run(${bundle}/bin/nsa --version)
  run(${bundle}/libexec/nsa/nsa_bench_attention --help)
  file(REMOVE_RECURSE ${bundle})

elseif(CASE STREQUAL "nsa_embed_package")
  set(build ${WORK}/package)
  run(${CMAKE_COMMAND} -S ${HOST} -B ${build} -D CMAKE_PREFIX_PATH=${tree} -D CMAKE_C_COMPILER=${CC}
    -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_FLAGS=-Werror -D CMAKE_CXX_FLAGS=-Werror)
  run(${CMAKE_COMMAND} --build ${build})
  run_cold_and_warm(${build})

elseif(CASE STREQUAL "nsa_embed_pkgconfig")
  set(build ${WORK}/pkgconfig)
  file(MAKE_DIRECTORY ${build})
  set(ENV{PKG_CONFIG_PATH} ${tree}/${LIBDIR}/pkgconfig)
  execute_process(COMMAND pkg-config --cflags --libs nsa OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(rpath -Wl,-rpath,${tree}/${LIBDIR})
  run(${CC} -std=c11 -Wall -Wextra -Werror ${HOST}/window.c -o ${build}/window_c ${flags} ${rpath} -lm)
  run(${CXX} -std=c++17 -Wall -Wextra -Werror ${HOST}/window.cpp -o ${build}/window_cpp ${flags} ${rpath})
  run_cold_and_warm(${build})

elseif(CASE STREQUAL "nsa_embed_moved")
  # The tree in another place, without its compiler, serves what an earlier process stored; a miss says what is missing.
  set(moved ${WORK}/moved)
  file(REMOVE_RECURSE ${moved})
  file(COPY ${tree}/${LIBDIR} DESTINATION ${moved})
  file(REMOVE ${moved}/${LIBDIR}/libnsa_compiler.so)
  set(ENV{LD_PRELOAD} ${moved}/${LIBDIR}/libnsa.so.0)
  set(program ${WORK}/package/window_c)
  run(${program} ${WORK}/package/cache_window_c/kernels.db warm)
  execute_process(COMMAND ${program} ${moved}/empty/kernels.db cold RESULT_VARIABLE code ERROR_VARIABLE text)
  if(code EQUAL 0 OR NOT text MATCHES "${moved}/${LIBDIR}/libnsa_compiler.so.*NSA_COMPILER")
    message(FATAL_ERROR "expected a clear error about the missing compiler library, got ${code}: ${text}")
  endif()

elseif(CASE STREQUAL "nsa_embed_loaded")
  # By a relative path, from a folder that the host leaves: what lies under the same names in the other folder is not ours.
  set(work ${WORK}/loaded)
  set(library lib/libnsa.so.0)
  file(REMOVE_RECURSE ${work})
  file(COPY ${tree}/${LIBDIR}/ DESTINATION ${work}/installed/lib)
  file(MAKE_DIRECTORY ${work}/installed/share/nsa/packs ${work}/linked/lib ${work}/elsewhere ${work}/caches)
  file(CREATE_LINK ${work}/installed/${library} ${work}/linked/${library} SYMBOLIC)
  foreach(name installed linked)
    file(WRITE ${work}/elsewhere/${name}/lib/libnsa_compiler.so "not the compiler")
    file(MAKE_DIRECTORY ${work}/elsewhere/${name}/share/nsa/packs)
  endforeach()
  run(${CC} -std=c11 -Wall -Wextra -Werror -I${tree}/include ${HOST}/loaded.c -o ${work}/loaded -ldl)
  function(expect_loaded name cache how pattern)
    execute_process(COMMAND ${work}/loaded ${name}/${library} elsewhere ${cache} ${how} WORKING_DIRECTORY ${work}
      RESULT_VARIABLE code ERROR_VARIABLE text COMMAND_ECHO STDOUT)
    if(pattern STREQUAL "" AND NOT code EQUAL 0 OR NOT pattern STREQUAL "" AND (code EQUAL 0 OR NOT text MATCHES "${pattern}"))
      message(FATAL_ERROR "expected '${pattern}', got ${code}: ${text}")
    endif()
  endfunction()
  expect_loaded(installed ${work}/caches/kernels.db compiled "")
  expect_loaded(installed :memory: stored "no stored kernel")
  run(${tree}/bin/nsa cache export --cache ${work}/caches/kernels.db ${work}/installed/share/nsa/packs/made.nsapack)
  expect_loaded(installed :memory: stored "")
  # Through a link, beside which there is nothing.
  expect_loaded(linked ${work}/caches/linked.db compiled "")
  expect_loaded(linked :memory: stored "")
  # What is beside the link comes first.
  file(WRITE ${work}/linked/lib/libnsa_compiler.so "not the compiler")
  file(MAKE_DIRECTORY ${work}/linked/share/nsa/packs)
  expect_loaded(linked ${work}/caches/beside.db compiled "${work}/linked/lib/libnsa_compiler.so")
  expect_loaded(linked :memory: stored "no stored kernel")

elseif(CASE MATCHES "^nsa_embed_hello")
  # As their first lines say, from the installed sources, each with a cache of its own.
  set(sources ${tree}/share/nsa/examples/hello)
  set(build ${WORK}/${CASE})
  file(REMOVE_RECURSE ${build})
  file(MAKE_DIRECTORY ${build})
  set(flags -I${tree}/include -L${tree}/${LIBDIR} -lnsa -Wl,-rpath,${tree}/${LIBDIR} -Wall -Wextra -Wshadow -Wconversion -Werror)
  function(expect_hello name)
    set(ENV{NSA_CACHE_DIR} ${build}/cache_${name})
    execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
    if(NOT text MATCHES "out (-?[0-9.]+) is its value (-?[0-9.]+)\n" OR NOT CMAKE_MATCH_1 STREQUAL CMAKE_MATCH_2)
      message(FATAL_ERROR "${name} printed ${text}")
    endif()
    if(NOT EXISTS ${build}/cache_${name}/kernels.db)
      message(FATAL_ERROR "${name} has stored no kernel")
    endif()
  endfunction()
  if(CASE STREQUAL "nsa_embed_hello")
    run(${CC} ${sources}/hello.c ${flags} -o ${build}/hello_c)
    run(${CXX} -std=c++17 ${sources}/hello.cpp ${flags} -o ${build}/hello_cpp)
    expect_hello(c ${build}/hello_c)
    expect_hello(cpp ${build}/hello_cpp)
  else()
    # The first interpreter on the path may be one without numpy.
    foreach(python python3 /usr/bin/python3)
      execute_process(COMMAND ${python} -c "import numpy" RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
      if(code EQUAL 0)
        expect_hello(python ${python} ${sources}/hello.py ${tree}/${LIBDIR}/libnsa.so.0)
        return()
      endif()
    endforeach()
    message(STATUS "no python3 with numpy")
  endif()

elseif(CASE STREQUAL "nsa_embed_decode")
  # Both ways a host may build it; the package's program is the one that runs.
  run(${CMAKE_COMMAND} -S ${EXAMPLES}/decode -B ${WORK}/decode -D CMAKE_PREFIX_PATH=${tree} -D CMAKE_CXX_COMPILER=${CXX}
    -D "CMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
  run(${CMAKE_COMMAND} --build ${WORK}/decode)
  set(ENV{PKG_CONFIG_PATH} ${tree}/${LIBDIR}/pkgconfig)
  execute_process(COMMAND pkg-config --cflags --libs nsa OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  file(GLOB sources ${EXAMPLES}/decode/*.cpp)
  run(${CXX} -std=c++17 -Wall -Wextra -Werror ${sources} -o ${WORK}/decode/by_pkgconfig ${flags} -ldl)

elseif(CASE MATCHES "^nsa_embed_decode_(contiguous|paged)$")
  set(program ${WORK}/decode/nsa_example_decode)
  set(cache ${WORK}/decode/cache_${CMAKE_MATCH_1})
  set(page_contiguous 0)
  set(page_paged 128) # two selection blocks
  file(REMOVE_RECURSE ${cache})
  execute_process(COMMAND ${program} --cache ${cache}/kernels.db --page-size ${page_${CMAKE_MATCH_1}}
    OUTPUT_VARIABLE text COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "${text}")
  # Compressed blocks, tokens of seven whole blocks and the own one, the window: 69 + 448 + 37 + 64 at 1125 tokens,
  # 52 + 448 + 27 + 64 at 859, of each key/value head.
  if(NOT text MATCHES "step 64  length 1125 reads 618 618  length 859 reads 591 591  checksum")
    message(FATAL_ERROR "the last step has other lengths or reads")
  endif()

elseif(CASE STREQUAL "nsa_embed_decode_refused")
  # What the library refuses comes with field, value and rule; what the example itself does, with a usage.
  set(program ${WORK}/decode/nsa_example_decode)
  function(expect_refusal pattern)
    execute_process(COMMAND ${program} --cache :memory: ${ARGN} RESULT_VARIABLE code ERROR_VARIABLE text OUTPUT_VARIABLE text)
    if(NOT code EQUAL 2 OR NOT text MATCHES "${pattern}")
      message(FATAL_ERROR "expected ${pattern} and code 2 of ${ARGN}, got ${code}: ${text}")
    endif()
  endfunction()
  expect_refusal("field: page_size\n  value: 96\n  rule:  must be .*multiple of sel_block" --page-size 96)
  expect_refusal("field: device\n  value: tpu\n" --device tpu)
  expect_refusal("--prompt must be long enough" --prompt 100)
  expect_refusal("usage: " --page-size many)
  expect_refusal("usage: " --steps)

elseif(CASE STREQUAL "nsa_embed_fetched")
  # Configured with the compiler library and all, which is not built here: it takes long.
  run(${CMAKE_COMMAND} -S ${PROJECT} -B ${WORK}-fetched -G ${GENERATOR} -D FETCHCONTENT_SOURCE_DIR_NSA=${SOURCE}
    -D PROGRAM=${HOST}/window.c -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX} -Wno-dev)

elseif(CASE STREQUAL "nsa_embed_subdirectory")
  # The runtime alone, built in the host's tree with the host's options. Kernels come from this build's compiler library.
  set(build ${WORK}-subdirectory) # kept, so that the next time is short
  file(REMOVE_RECURSE ${build}/prefix ${build}/cache)
  file(MAKE_DIRECTORY ${build})
  file(CHMOD ${build} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${LAUNCHER}")
  run(${CMAKE_COMMAND} -S ${PROJECT} -B ${build} -G ${GENERATOR} -D NSA_SOURCE=${SOURCE} -D NSA_BUILD_COMPILER=OFF
    -D PROGRAM=${HOST}/window.c -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX}
    -D CMAKE_UNITY_BUILD=ON -D CMAKE_INSTALL_PREFIX=${build}/prefix -D CMAKE_EXPORT_COMPILE_COMMANDS=ON)
  run(${CMAKE_COMMAND} --build ${build})
  # Nothing of our warnings or visibility is in the host's own command.
  file(READ ${build}/compile_commands.json commands)
  string(REGEX MATCH "\"command\": \"[^\n]* CMakeFiles/host.dir/[^\n]*" found "${commands}")
  if(NOT found OR found MATCHES "-Wall|-Wextra|-fvisibility|-ffunction-sections")
    message(FATAL_ERROR "the host is compiled by: ${found}")
  endif()
  set(ENV{NSA_COMPILER} ${BUILD}/${LIBDIR}/libnsa_compiler.so)
  run(${build}/host ${build}/cache/kernels.db cold)
  run(${build}/host ${build}/cache/kernels.db warm)
  run(${CMAKE_COMMAND} --install ${build})
  file(GLOB_RECURSE installed RELATIVE ${build}/prefix ${build}/prefix/*)
  if(NOT installed STREQUAL "bin/host")
    message(FATAL_ERROR "the host's prefix has: ${installed}")
  endif()

else()
  message(FATAL_ERROR "no case ${CASE}")
endif()
