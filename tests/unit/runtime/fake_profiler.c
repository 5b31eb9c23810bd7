/* A profiler's injection library, as NVTX 3 knows one: keeps the names of ranges and how deep they are. Built against
 * NVIDIA's own headers where they are at hand, so that the numbers of our side are held to theirs. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef NSA_NVTX_HEADERS
#include <nvtx3/nvToolsExt.h>
#define PUSH NVTX_CBID_CORE_RangePushA
#define POP NVTX_CBID_CORE_RangePop
#define CORE NVTX_CB_MODULE_CORE
#define CALLBACKS NVTX_ETID_CALLBACKS
#else
typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable;
typedef struct {
  size_t struct_size;
  int (*GetModuleFunctionTable)(int, NvtxFunctionTable *, unsigned *);
} NvtxExportTableCallbacks;
typedef const void *(*NvtxGetExportTableFunc_t)(uint32_t);
enum { PUSH = 9, POP = 11, CORE = 1, CALLBACKS = 1 };
#endif

static char names[4096];
static int depth;

static int push(const char *name) {
  strncat(names, name, sizeof names - strlen(names) - 2);
  strcat(names, ";");
  return depth++;
}
static int pop(void) { return --depth; }

const char *fake_profiler_names(void);
int fake_profiler_depth(void);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table);

const char *fake_profiler_names(void) { return names; }
int fake_profiler_depth(void) { return depth; }
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table) {
  const NvtxExportTableCallbacks *callbacks = table(CALLBACKS);
  NvtxFunctionTable functions = NULL;
  unsigned size = 0;
  if (!callbacks || callbacks->struct_size < sizeof *callbacks ||
      !callbacks->GetModuleFunctionTable(CORE, &functions, &size) || size <= POP)
    return 0;
  *functions[PUSH] = (NvtxFunctionPointer)push;
  *functions[POP] = (NvtxFunctionPointer)pop;
  return 1;
}
