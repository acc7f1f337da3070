// What chain_kernel.cuh asks of the GPU beyond C++: instructions of Hopper (PTX ISA 9.0). Its test
// on a CPU (chain_kernel_test.cc) has its own of all these.
#ifndef TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_PTX_CUH_
#define TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_PTX_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "model/cuda/common/ptx.cuh"

namespace tritonrl {

// Blocks of a cluster: what they know of each other's shared memory, which has the same layout in
// both. Arrive and Wait: by all threads once; what a thread did before it arrived is seen behind.
__device__ inline void ClusterArrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void ClusterWait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The address in block `rank` of the cluster of what lies at `mine` in this one.
__device__ inline uint32_t MapClusterAddress(const void* mine, int rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(SharedAddress(mine)), "r"(rank));
  return address;
}
// Begins to write there. Its barrier's phase ends no sooner than these 16 bytes are there (for
// ArriveAndExpect); who waits for the phase sees them. No fence, which would wait for all other
// memory that is on its way.
__device__ inline void StoreAsyncCluster(float* mine, int rank, const float4& value,
                                         SharedBarrier* barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
      :
      : "r"(MapClusterAddress(mine, rank)), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w),
        "r"(MapClusterAddress(barrier, rank))
      : "memory");
}

// Registers of each thread from here on, fewer and more than threads are launched with: by all four
// warps of a warpgroup. Taking waits until others have given enough.
template <int kCount>
__device__ void DecreaseMaxRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kCount));
}
template <int kCount>
__device__ void IncreaseMaxRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kCount));
}

// Until `threads` threads of the block, whole warps, have come here.
__device__ inline void NamedBarrierSync(int threads) {
  asm volatile("bar.sync 1, %0;" : : "r"(threads) : "memory");
}

// Adds one behind all that the block has written before, and gives what was there.
__device__ inline uint64_t AtomicAddRelease(uint64_t* to) {
  uint64_t before;
  asm volatile("atom.add.release.gpu.global.u64 %0, [%1], 1;" : "=l"(before) : "l"(to) : "memory");
  return before;
}
// Behind it the block sees all that was written before what is read was added.
__device__ inline uint64_t LoadAcquire(const uint64_t* from) {
  uint64_t now;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(from) : "memory");
  return now;
}

// Memory that other blocks of this launch may have written: past the L1 cache, and not before what
// comes before. 16 bytes, or one number.
__device__ inline float LoadCacheGlobal(const float* from) {
  float value;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline uint2 LoadCacheGlobal8(const void* from) {
  uint2 value;
  asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];"
               : "=r"(value.x), "=r"(value.y)
               : "l"(from)
               : "memory");
  return value;
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_PTX_CUH_
