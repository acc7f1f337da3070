// Products of small matrices that a warp holds in its registers, and how they come there (PTX ISA
// 9.0; compute capability 8.0). Tests on a CPU have their own of all these (emulated_mma.h).
#ifndef TRITONRL_MODEL_CUDA_MMA_CUH_
#define TRITONRL_MODEL_CUDA_MMA_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tritonrl {

// The launch's shared memory.
__device__ inline uint8_t* LaunchedSharedMemory() {
  extern __shared__ __align__(1024) uint8_t launched_shared[];
  return launched_shared;
}

__device__ inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// x, which is then kept in a register: not computed anew wherever it is used.
__device__ inline uint32_t Kept(uint32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}

// 2^x; less than 2^-126 becomes 0.
__device__ inline float PowerOfTwo(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// d [16, 8] += a [16, 16] b [16, 8] of bf16, sums in fp32. With g = lane / 4 and t = lane % 4 a
// thread holds d[g][2t, 2t + 1], d[g + 8][2t, 2t + 1]; a[g][2t, 2t + 1], a[g + 8][2t, 2t + 1],
// a[g][2t + 8, 2t + 9], a[g + 8][2t + 8, 2t + 9]; b[2t, 2t + 1][g], b[2t + 8, 2t + 9][g].
__device__ inline void MultiplyAdd(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                   uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// The same of fp16.
__device__ inline void MultiplyAddHalves(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                         uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Four matrices of 8 rows of 16 bytes in shared memory; lane 8 m + r gives the address of row r of
// matrix m (SharedAddress). A thread gets of each matrix the four bytes [g][4t .. 4t + 3].
__device__ inline void LoadMatrices(uint32_t row, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
// The same transposed as matrices of two-byte elements: elements [2t][g] and [2t + 1][g].
__device__ inline void LoadTransposed(uint32_t row, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
// A matrix [8, 8] of two-byte elements: from [g][2t, 2t + 1] in each thread to [2t, 2t + 1][g].
__device__ inline uint32_t Transposed(uint32_t pair) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

// 16 bytes from global to shared memory, of which the last 16 - `bytes` become zeros instead; done
// once WaitForCopies says so.
__device__ inline void CopyAsync(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(SharedAddress(to)), "l"(from), "r"(bytes)
               : "memory");
}
// Ends a group of this thread's copies.
__device__ inline void EndCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until all but the last kPending groups are done.
template <int kPending>
__device__ inline void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}

// Adds behind all that the block has written before a __syncthreads, and gives what was there; what
// other blocks had written before they added is seen behind the next __syncthreads, past the L1
// cache (__ldcg).
__device__ inline int32_t AddOrdered(int32_t* to, int32_t by) {
  int32_t before;
  asm volatile("atom.add.acq_rel.gpu.global.s32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(to), "r"(by)
               : "memory");
  return before;
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_MMA_CUH_
