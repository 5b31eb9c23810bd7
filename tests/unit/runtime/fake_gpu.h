// A CUDA driver (libcuda.so.1) with one GPU that computes nothing: it counts its calls, keeps the last launch, and can
// be told to report through a kernel's status view or to be capturing; its memory is the host's. So the road to a
// launch is tested where there is no GPU. A program that links it gives it to libnsa.so too. Thread-safety: a thread
// may make the context while others count calls, hold or refuse it; else none.
#pragma once

// What choices for it are stored under.
#define NSA_FAKE_GPU_KEY "Fake GPU sms=1000 l2_bytes=1000 bandwidth_gbs=0"

#ifdef __cplusplus
extern "C" {
#endif

// Names in C's case. NOLINTBEGIN(readability-identifier-naming)
long fake_gpu_calls(void); // of the driver's functions
long fake_gpu_launches(void);
const unsigned *fake_gpu_last_grid(void);
// The arguments of the last launch, as far as they were asked to be kept.
void fake_gpu_keep_slots(int count);
const unsigned long *fake_gpu_last_slots(void);
// Tensor maps that were encoded, and what the last one was made of. Its first word is the address.
struct fake_gpu_map {
  int type, swizzle;
  unsigned rank;
  void *address;
  unsigned long sizes[4], strides[3];
  unsigned box[4];
};
long fake_gpu_maps(void);
void fake_gpu_refuse_maps(int on); // as of sizes that the driver does not take
const struct fake_gpu_map *fake_gpu_last_map(void);
// Launches on the legacy stream, and waits for it.
long fake_gpu_legacy_uses(void);
// The next launch writes code and place into its first argument, a status view.
void fake_gpu_report(int code, int place);
void fake_gpu_capture(int on);
// Whether the process has a context already; whether making one waits until it no longer is to, and fails.
void fake_gpu_have_context(int on);
void fake_gpu_hold_context(int on);
void fake_gpu_refuse_context(int on);
void fake_gpu_refuse_host_memory(int on); // as a machine that can pin no more
// Whether a kernel may have clusters of more than 8 blocks; how many such clusters the device can run.
int fake_gpu_allows_large_clusters(void);
void fake_gpu_run_clusters(int count);
// So many bytes of the device are free, and so many are to be had at once.
void fake_gpu_have_memory(unsigned long free, unsigned long at_once);
// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif
