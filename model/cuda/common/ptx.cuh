// PTX instructions for which CUDA C++ has no function (PTX ISA 9.0): tensor cores, asynchronous
// copies, TMA with its barriers, programmatic dependent launch and thread block clusters. mma and
// cp.async need compute capability 8.0, TMA and clusters 9.0. model/cuda/testing emulates these
// functions for tests on a CPU (emulated_mma.h, emulated_tma.h).

#ifndef TRITONRL_MODEL_CUDA_COMMON_PTX_CUH_
#define TRITONRL_MODEL_CUDA_COMMON_PTX_CUH_

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace tritonrl {

// Returns the dynamic shared memory of the block.
__device__ inline uint8_t* DynamicSharedMemory() {
  extern __shared__ __align__(1024) uint8_t dynamic_shared[];
  return dynamic_shared;
}

__device__ inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// Returns x and prevents the compiler from recomputing x at each use.
__device__ inline uint32_t KeepInRegister(uint32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Returns 2^x (approximate); results below 2^-126 become 0.
__device__ inline float PowerOfTwo(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// d [16, 8] fp32 += a [16, 16] b [16, 8], both bf16. With g = lane / 4 and t = lane % 4, a thread
// holds these elements, in the order of the parameters:
//   d: [g][2t, 2t + 1], [g + 8][2t, 2t + 1]
//   a: [g][2t, 2t + 1], [g + 8][2t, 2t + 1], [g][2t + 8, 2t + 9], [g + 8][2t + 8, 2t + 9]
//   b: [2t, 2t + 1][g], [2t + 8, 2t + 9][g]
__device__ inline void MmaBf16(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                               uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// MmaBf16 for fp16 operands.
__device__ inline void MmaFp16(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                               uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Loads four matrices of 8 rows of 16 bytes from shared memory. Lane 8 m + r passes the address
// (SharedAddress) of row r of matrix m. A thread receives bytes 4t to 4t + 3 of row g of each
// matrix, with g and t as in MmaBf16.
__device__ inline void LoadMatrices(uint32_t row, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
// LoadMatrices, but transposed as matrices of two-byte elements: a thread receives elements [2t][g]
// and [2t + 1][g] of each matrix.
__device__ inline void LoadTransposed(uint32_t row, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
// Transposes a matrix [8, 8] of two-byte elements across the warp: a thread passes elements
// [g][2t, 2t + 1] and receives elements [2t, 2t + 1][g].
__device__ inline uint32_t Transposed(uint32_t pair) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

// Starts to copy `bytes` (at most 16) bytes from global to shared memory; zeros fill the rest of
// the 16 bytes. The copy is complete after WaitForCopies.
__device__ inline void CopyAsync(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(SharedAddress(to)), "l"(from), "r"(bytes)
               : "memory");
}
// Closes the current group of this thread's copies.
__device__ inline void EndCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all but this thread's last kPending groups are complete.
template <int kPending>
__device__ inline void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}

// Atomic add with acquire and release order; returns the old value. The add publishes the block's
// writes before its last __syncthreads. After its next __syncthreads the block sees the writes that
// other blocks published by earlier adds, provided that it bypasses the L1 cache (__ldcg).
__device__ inline int32_t AddOrdered(int32_t* to, int32_t by) {
  int32_t before;
  asm volatile("atom.add.acq_rel.gpu.global.s32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(to), "r"(by)
               : "memory");
  return before;
}

// Allows the stream's next kernel, if launched with `overlap` (LaunchWithPdl), to begin once all
// blocks have called this function.
__device__ inline void TriggerDependentLaunch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the stream's earlier kernels have ended and their writes are visible. In a kernel
// launched with `overlap`, every thread that shares memory with earlier kernels calls this function
// before it reads or writes that memory. A thread never returns before the call; otherwise the
// order would not carry over to later launches.
__device__ inline void GridDependencySync() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Launches `kernel`; with `overlap` it may begin before the stream's previous kernel has ended
// (Hopper's programmatic dependent launch).
template <typename... Parameters, typename... Given>
cudaError_t LaunchWithPdl(bool overlap, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                          int shared_bytes, cudaStream_t stream, Given... given) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, Parameters(given)...);
}

// An mbarrier in shared memory. A phase ends when `count` threads (InitBarrier) and all expected
// bytes have arrived.
using SharedBarrier = uint64_t;

__device__ inline void InitBarrier(SharedBarrier* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(SharedAddress(barrier)), "r"(count)
               : "memory");
}
// Makes this thread's initialized barriers visible to asynchronous copies and to the cluster.
__device__ inline void PublishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void Arrive(SharedBarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :
               : "r"(SharedAddress(barrier))
               : "memory");
}
// Arrives and adds `bytes` to the number of copied bytes for which the phase waits.
__device__ inline void ArriveAndExpect(SharedBarrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(SharedAddress(barrier)), "r"(bytes)
               : "memory");
}
// Waits until the phase with this parity has ended; the parities of successive phases are 0, 1, 0,
// 1, ...
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

// Returns an L2 cache policy for memory that is read once: its lines are evicted first.
__device__ inline uint64_t EvictFirstPolicy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Starts the TMA copy of the tensor map's box at element (x, y, z) to shared memory. The copied
// bytes count towards the bytes that `barrier` expects.
__device__ inline void TmaCopy(void* to, const CUtensorMap* map, int x, int y, int z,
                               SharedBarrier* barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;"
      :
      : "r"(SharedAddress(to)), "l"(map), "r"(x), "r"(y), "r"(z), "r"(SharedAddress(barrier)),
        "l"(policy)
      : "memory");
}

// Barrier of a cluster: every thread calls ClusterArrive, then ClusterWait, once each. After
// ClusterWait a thread sees all writes that threads of the cluster made before their ClusterArrive.
__device__ inline void ClusterArrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void ClusterWait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Returns the address in the shared memory of block `rank` of the cluster that corresponds to
// `mine` in this block's shared memory.
__device__ inline uint32_t MapClusterAddress(const void* mine, int rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(SharedAddress(mine)), "r"(rank));
  return address;
}
// Starts to write 16 bytes to block `rank`'s counterpart of `mine`. These bytes count towards the
// bytes that block `rank`'s counterpart of `barrier` expects (ArriveAndExpect). The store needs no
// fence, which would also wait for all other memory operations in flight.
__device__ inline void StoreAsyncCluster(float* mine, int rank, const float4& value,
                                         SharedBarrier* barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
      :
      : "r"(MapClusterAddress(mine, rank)), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w),
        "r"(MapClusterAddress(barrier, rank))
      : "memory");
}

// Lower or raise the number of registers per thread from the launch's number. All four warps of a
// warpgroup make the call. IncreaseMaxRegisters waits until other warpgroups have released enough
// registers.
template <int kCount>
__device__ void DecreaseMaxRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kCount));
}
template <int kCount>
__device__ void IncreaseMaxRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kCount));
}

// Barrier of `threads` threads (whole warps) of the block; uses named barrier 1.
__device__ inline void NamedBarrierSync(int threads) {
  asm volatile("bar.sync 1, %0;" : : "r"(threads) : "memory");
}

// Atomically adds 1 with release order; returns the old value.
__device__ inline uint64_t AtomicAddRelease(uint64_t* to) {
  uint64_t before;
  asm volatile("atom.add.release.gpu.global.u64 %0, [%1], 1;" : "=l"(before) : "l"(to) : "memory");
  return before;
}
// Loads with acquire order: the block then sees all writes made before the adds (AtomicAddRelease)
// that are included in the returned value.
__device__ inline uint64_t LoadAcquire(const uint64_t* from) {
  uint64_t now;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(from) : "memory");
  return now;
}

// Load 4 or 8 bytes that other blocks of this launch may have written. The loads bypass the L1
// cache, and the compiler does not move them before earlier operations.
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

#endif  // TRITONRL_MODEL_CUDA_COMMON_PTX_CUH_
