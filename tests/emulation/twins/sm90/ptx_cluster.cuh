// Twin of what decode_step uses of templates/device/sm90/ptx_cluster.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE void cluster_wait() { emulator::waitCluster(); }
NSA_DEVICE uint32 cluster_address(uint32 address, uint32 rank) { return emulator::clusterAddress(address, rank); }

} // namespace nsa
