/* See fake_gpu.h. */
#include "fake_gpu.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* cuda.h: CU_DEVICE_ATTRIBUTE_... */
enum { kComputeMajor = 75, kComputeMinor = 76, kSharedBytes = 97 };

struct launch_config {
  unsigned grid[3], block[3], shared_bytes;
  void *stream, *attributes;
  unsigned attribute_count;
};

static atomic_long calls;
static long launches, legacy_uses;
static unsigned long free_memory = 1ul << 30, memory_at_once = 1ul << 30;
static atomic_int has_context, holds_context, refuses_context;
static unsigned last_grid[3];
static unsigned long last_slots[128];
static int kept_slots;
static long maps;
static int refuses_maps;
static struct fake_gpu_map last_map;
static int report_code, report_place, capturing, refuses_host_memory;
static int primary_context; /* its address stands for every handle */
static __thread void *current_context;

long fake_gpu_calls(void) { return calls; }
long fake_gpu_launches(void) { return launches; }
const unsigned *fake_gpu_last_grid(void) { return last_grid; }
void fake_gpu_keep_slots(int count) { kept_slots = count; }
const unsigned long *fake_gpu_last_slots(void) { return last_slots; }
long fake_gpu_maps(void) { return maps; }
void fake_gpu_refuse_maps(int on) { refuses_maps = on; }
const struct fake_gpu_map *fake_gpu_last_map(void) { return &last_map; }
long fake_gpu_legacy_uses(void) { return legacy_uses; }
void fake_gpu_report(int code, int place) {
  report_code = code;
  report_place = place;
}
void fake_gpu_capture(int on) { capturing = on; }
void fake_gpu_have_context(int on) { has_context = on; }
void fake_gpu_hold_context(int on) { holds_context = on; }
void fake_gpu_refuse_context(int on) { refuses_context = on; }
void fake_gpu_refuse_host_memory(int on) { refuses_host_memory = on; }

static int done(void) {
  ++calls;
  return 0;
}

static int init(unsigned flags) {
  (void)flags;
  return done();
}

static int get_error_name(int error, const char **text) {
  (void)error;
  *text = "fake";
  return done();
}

static int get_error_string(int error, const char **text) {
  (void)error;
  *text = "fake";
  return done();
}

static int device_get_count(int *count) {
  *count = 1;
  return done();
}

static int device_get(int *device, int ordinal) {
  *device = ordinal;
  return done();
}

static int device_get_name(char *name, int bytes, int device) {
  (void)device;
  strncpy(name, "Fake GPU", (size_t)bytes);
  return done();
}

static int device_total_mem(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)1 << 30;
  return done();
}

static int device_get_attribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == kComputeMajor ? 9 : attribute == kComputeMinor ? 0 : attribute == kSharedBytes ? 232448 : 1000;
  return done();
}

static int device_primary_ctx_get_state(int device, unsigned *flags, int *active) {
  (void)device;
  *flags = 0;
  *active = has_context;
  return done();
}

static int thread_exchange_capture_mode(int *mode) {
  *mode = 0;
  return done();
}

static int device_primary_ctx_retain(void **context, int device) {
  (void)device;
  while (holds_context)
    usleep(1000);
  if (refuses_context)
    return 46; /* CUDA_ERROR_DEVICE_UNAVAILABLE */
  *context = &primary_context;
  return done();
}

static int device_primary_ctx_release(int device) {
  (void)device;
  return done();
}

static int ctx_get_current(void **context) {
  *context = current_context;
  return done();
}

static int ctx_push_current(void *context) {
  current_context = context;
  return done();
}

static int ctx_pop_current(void **context) {
  *context = current_context;
  current_context = NULL;
  return done();
}

static int module_load_data(void **module, const void *image) {
  (void)image;
  *module = &primary_context;
  return done();
}

static int module_unload(void *module) {
  (void)module;
  return done();
}

static int module_get_function(void **function, void *module, const char *name) {
  (void)module;
  (void)name;
  *function = &primary_context;
  return done();
}

static int func_get_attribute(int *value, int attribute, void *function) {
  (void)attribute;
  (void)function;
  *value = 32;
  return done();
}

static int allowed_cluster = 0, active_clusters = 1;

int fake_gpu_allows_large_clusters(void) { return allowed_cluster; }
void fake_gpu_run_clusters(int count) { active_clusters = count; }

static int func_set_attribute(void *function, int attribute, int value) {
  (void)function;
  if (attribute == 14) /* CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED */
    allowed_cluster = value;
  return done();
}

static int occupancy_max_active_clusters(int *count, void *function, const struct launch_config *config) {
  (void)function;
  (void)config;
  *count = active_clusters;
  return done();
}

/* Page-locked memory is the system's: what malloc refuses (counted_calls.h) is no matter of a driver. The first page
 * says how many bytes there are. */
enum { kPageBytes = 4096 };

static int mem_host_alloc(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  ++calls;
  if (refuses_host_memory)
    return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
  size_t *pages =
      mmap(NULL, kPageBytes + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /* no file */ -1, 0);
  if (pages == MAP_FAILED)
    return 2;
  *pages = kPageBytes + bytes;
  *pointer = (char *)pages + kPageBytes;
  return 0;
}

static int mem_free_host(void *pointer) {
  size_t *pages = (size_t *)((char *)pointer - kPageBytes);
  munmap(pages, *pages);
  return done();
}

static int stream_create(void **stream, unsigned flags) {
  (void)flags;
  *stream = &primary_context;
  return done();
}

static int stream_destroy(void *stream) {
  (void)stream;
  return done();
}

void fake_gpu_have_memory(unsigned long free, unsigned long at_once) {
  free_memory = free;
  memory_at_once = at_once;
}

static int mem_get_info(size_t *free, size_t *total) {
  *free = free_memory;
  *total = (size_t)1 << 40;
  return done();
}

static int mem_alloc(unsigned long long *pointer, size_t bytes) {
  if (bytes > memory_at_once)
    return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
  *pointer = (uintptr_t)malloc(bytes);
  return done();
}

static int mem_free(unsigned long long pointer) {
  free((void *)(uintptr_t)pointer);
  return done();
}

static int memcpy_htod(unsigned long long to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return done();
}

static int memcpy_dtoh(void *to, unsigned long long from, size_t bytes, void *stream) {
  (void)stream;
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return done();
}

static int stream_synchronize(void *stream) {
  legacy_uses += stream == NULL;
  return done();
}

static int stream_is_capturing(void *stream, int *status) {
  (void)stream;
  *status = capturing;
  return done();
}

static int launch_kernel_ex(const struct launch_config *config, void *function, void **arguments, void **extra) {
  (void)function;
  (void)extra;
  ++launches;
  legacy_uses += config->stream == NULL;
  memcpy(last_grid, config->grid, sizeof last_grid);
  memcpy(last_slots, arguments[0], (size_t)kept_slots * sizeof *last_slots);
  int32_t *status = *(int32_t **)arguments[0];
  if (report_code) {
    status[0] = report_code;
    status[1] = report_place;
  }
  report_code = 0;
  return done();
}

static int tensor_map_encode_tiled(unsigned long *map, int type, unsigned rank, void *address,
                                   const unsigned long *sizes, const unsigned long *strides, const unsigned *box,
                                   const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  (void)steps;
  (void)interleave;
  (void)promotion;
  (void)fill;
  if (rank != 4 || (uintptr_t)map % 64 != 0 || refuses_maps)
    return 1; /* CUDA_ERROR_INVALID_VALUE */
  last_map.type = type;
  last_map.swizzle = swizzle;
  last_map.rank = rank;
  last_map.address = address;
  memcpy(last_map.sizes, sizes, sizeof last_map.sizes);
  memcpy(last_map.strides, strides, sizeof last_map.strides);
  memcpy(last_map.box, box, sizeof last_map.box);
  memset(map, 0, 128);
  map[0] = (unsigned long)address;
  map[1] = (unsigned long)++maps;
  return done();
}

static int refuse(void) { return 999; } /* CUDA_ERROR_UNKNOWN */

static const struct {
  const char *symbol;
  void *function;
} entries[] = {
    {"cuInit", (void *)init},
    {"cuGetErrorName", (void *)get_error_name},
    {"cuGetErrorString", (void *)get_error_string},
    {"cuDeviceGetCount", (void *)device_get_count},
    {"cuDeviceGet", (void *)device_get},
    {"cuDeviceGetName", (void *)device_get_name},
    {"cuDeviceTotalMem", (void *)device_total_mem},
    {"cuDeviceGetAttribute", (void *)device_get_attribute},
    {"cuDevicePrimaryCtxRetain", (void *)device_primary_ctx_retain},
    {"cuDevicePrimaryCtxRelease", (void *)device_primary_ctx_release},
    {"cuDevicePrimaryCtxGetState", (void *)device_primary_ctx_get_state},
    {"cuThreadExchangeStreamCaptureMode", (void *)thread_exchange_capture_mode},
    {"cuCtxGetCurrent", (void *)ctx_get_current},
    {"cuCtxPushCurrent", (void *)ctx_push_current},
    {"cuCtxPopCurrent", (void *)ctx_pop_current},
    {"cuModuleLoadData", (void *)module_load_data},
    {"cuModuleUnload", (void *)module_unload},
    {"cuModuleGetFunction", (void *)module_get_function},
    {"cuFuncGetAttribute", (void *)func_get_attribute},
    {"cuFuncSetAttribute", (void *)func_set_attribute},
    {"cuOccupancyMaxActiveClusters", (void *)occupancy_max_active_clusters},
    {"cuMemGetInfo", (void *)mem_get_info},
    {"cuMemAlloc", (void *)mem_alloc},
    {"cuMemFree", (void *)mem_free},
    {"cuMemcpyHtoDAsync", (void *)memcpy_htod},
    {"cuMemcpyDtoHAsync", (void *)memcpy_dtoh},
    {"cuMemHostAlloc", (void *)mem_host_alloc},
    {"cuMemFreeHost", (void *)mem_free_host},
    {"cuStreamCreate", (void *)stream_create},
    {"cuStreamDestroy", (void *)stream_destroy},
    {"cuStreamSynchronize", (void *)stream_synchronize},
    {"cuStreamIsCapturing", (void *)stream_is_capturing},
    {"cuLaunchKernelEx", (void *)launch_kernel_ex},
    {"cuTensorMapEncodeTiled", (void *)tensor_map_encode_tiled},
};

int cuDriverGetVersion(int *version) {
  *version = 12040;
  return 0;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *found) {
  (void)version;
  (void)flags;
  (void)found;
  *function = (void *)refuse;
  for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i)
    if (strcmp(symbol, entries[i].symbol) == 0)
      *function = entries[i].function;
  return 0;
}
