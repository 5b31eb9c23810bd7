# Runs a host in an empty FOLDER. The hosts of a window compile their kernel in the first run, and must find it in the
# second without a compiler.
unset(ENV{NSA_MISS})
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
file(CHMOD ${FOLDER} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
if(PROGRAM MATCHES "window")
  foreach(run IN ITEMS cold warm)
    execute_process(COMMAND ${PROGRAM} ${FOLDER}/kernels.db ${run} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
elseif(PROGRAM MATCHES "decode") # which compares what it decodes with one forward pass
  foreach(page_size IN ITEMS 0 128)
    execute_process(COMMAND ${PROGRAM} --cache ${FOLDER}/kernels.db --page-size ${page_size} COMMAND_ECHO STDOUT
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
else()
  execute_process(COMMAND ${PROGRAM} ${FOLDER} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endif()
