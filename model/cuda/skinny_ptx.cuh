// What skinny_kernel.cuh asks of the GPU beyond C++: instructions (PTX ISA 9.0) and memory. Its
// test on a CPU (skinny_kernel_test.cc) has its own of all these.
#ifndef TRITONRL_MODEL_CUDA_SKINNY_PTX_CUH_
#define TRITONRL_MODEL_CUDA_SKINNY_PTX_CUH_

#include <cstdint>

namespace tritonrl {

// The launch's shared memory.
__device__ inline uint4* LaunchedSharedMemory() {
  extern __shared__ uint4 skinny_shared[];
  return skinny_shared;
}

// A cache policy for memory that is read once: the first that the L2 cache gives up.
__device__ inline uint64_t EvictFirstPolicy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Begins the copy of 16 bytes to shared memory past the L1 cache; where `there` is false, of zeros,
// and `from` is not read.
__device__ inline void CopyAsync(uint4* to, const void* from, bool there, uint64_t policy) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;"
               :
               : "r"(shared), "l"(from), "r"(there ? 16 : 0), "l"(policy)
               : "memory");
}

// What the thread has begun to copy since the last call becomes a group.
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until of the thread's groups only the last kGroups may be under way; what the others copied
// this thread can read.
template <int kGroups>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kGroups) : "memory");
}

// d [16, 8] += a [16, 16] b [16, 8] of bf16, sums in fp32. With g = lane / 4 and t = lane % 4 a
// thread holds d[g][2t, 2t + 1], d[g + 8][2t, 2t + 1]; a[g][2t, 2t + 1], a[g + 8][2t, 2t + 1],
// a[g][2t + 8, 2t + 9], a[g + 8][2t + 8, 2t + 9]; b[2t, 2t + 1][g], b[2t + 8, 2t + 9][g].
__device__ inline void MultiplyAdd(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                   uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The next kernel of the stream may begin, if it was launched to overlap (Hopper).
__device__ inline void LetNextKernelBegin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until all that this kernel comes after has ended and what it wrote is seen; nothing to wait for
// if it was not launched to overlap.
__device__ inline void WaitForEarlierKernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_SKINNY_PTX_CUH_
