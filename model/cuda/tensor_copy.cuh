// Copies to shared memory by the tensor memory accelerator, and the barriers that count their bytes
// (PTX ISA 9.0; compute capability 9.0). Tests on a CPU have their own of all these
// (emulated_tensor_copy.h).
#ifndef TRITONRL_MODEL_CUDA_TENSOR_COPY_CUH_
#define TRITONRL_MODEL_CUDA_TENSOR_COPY_CUH_

#include <cuda.h>

#include <cstdint>

#include "model/cuda/mma.cuh"

namespace tritonrl {

// A barrier in shared memory whose phases end when `count` have arrived and all bytes are there.
using SharedBarrier = uint64_t;

__device__ inline void InitBarrier(SharedBarrier* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(SharedAddress(barrier)), "r"(count)
               : "memory");
}
// What InitBarrier wrote is seen by copies too.
__device__ inline void PublishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void Arrive(SharedBarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :
               : "r"(SharedAddress(barrier))
               : "memory");
}
// Arrives, and the phase ends no sooner than so many bytes have been copied.
__device__ inline void ArriveAndExpect(SharedBarrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(SharedAddress(barrier)), "r"(bytes)
               : "memory");
}
// Until the phase of this parity (0 for the first, 1, 0, ...) has ended.
__device__ inline void WaitForPhase(SharedBarrier* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra ended;\n"
      "bra again;\n"
      "ended:\n"
      "}"
      :
      : "r"(SharedAddress(barrier)), "r"(parity)
      : "memory");
}

// A cache policy for memory that is read once: the first that the L2 cache gives up.
__device__ inline uint64_t EvictFirstPolicy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Begins the copy of a tensor map's box at these coordinates to shared memory.
__device__ inline void CopyBox(void* to, const CUtensorMap* map, int x, int y, int z,
                               SharedBarrier* barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;"
      :
      : "r"(SharedAddress(to)), "l"(map), "r"(x), "r"(y), "r"(z), "r"(SharedAddress(barrier)),
        "l"(policy)
      : "memory");
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_TENSOR_COPY_CUH_
