# A toolchain file: Debian's cross compiler for 64-bit ARM, with the libraries of that architecture beside this machine's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(NSA_EMULATOR NAMES qemu-aarch64-static qemu-aarch64)
if(NSA_EMULATOR) # runs what makes the manual page
  set(CMAKE_CROSSCOMPILING_EMULATOR ${NSA_EMULATOR} -L /usr/aarch64-linux-gnu)
endif()
