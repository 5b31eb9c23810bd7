// Turns for so many clocks; lets its successor start at once and waits for its predecessor, where it was launched so.
#include "sm90/ptx_cluster.cuh"

using namespace nsa;

extern "C" __global__ void spin(int64 clocks) {
  launch_dependents();
  wait_for_predecessors();
  const int64 start = clock64();
  while (clock64() - start < clocks) {
  }
}
