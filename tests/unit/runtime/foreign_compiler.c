/* A compiler library of another version: it has the entry and serves no ABI that is asked for. */
#include "compiler/api/nsa_compiler.h"

#include <stddef.h>

__attribute__((visibility("default"))) const nsa_compiler_api *nsa_compiler_get_api(uint32_t abi_version) {
  (void)abi_version;
  return NULL;
}
