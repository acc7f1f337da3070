// The megakernel: up to four dependent GEMMs of at most 32 rows (a decode layer) in one persistent
// launch, bound by reading the weights once.

#ifndef TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_H_
#define TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_H_

#include <cstdint>
#include <vector>

#include "model/cuda/fused/kernels.h"

namespace tritonrl {

// Most rows of x.
inline constexpr int64_t kMaxMegakernelRows = 32;

// out = x W^T (+ add), summed in fp32, by the current GPU's tensor cores. All pointers are the
// GPU's memory and multiples of 16 bytes; all tensors are bf16.
struct MegakernelGemm {
  int64_t inner = 0;             // K, a multiple of 512
  int64_t columns = 0;           // N, a multiple of 16 (32 with swiglu)
  const void* x = nullptr;       // [M, K]
  const void* weight = nullptr;  // [N, K]
  // Weight [K] of an RMSNorm of x, rounded as in LaunchRmsNorm; null: no norm. x is then the `out`
  // of the GEMM before, which has no swiglu.
  const void* norm_weight = nullptr;
  const void* add = nullptr;  // [M, N], may be `out`; null: none. Not with swiglu.
  // The first half of W's rows are gates, the second half ups: out [M, N / 2] = silu(x gates^T) *
  // (x ups^T), rounded as in LaunchSwiglu.
  bool swiglu = false;
  void* out = nullptr;  // may be the `add` of an earlier GEMM, not the x of one
};

struct MegakernelPlan {
  int64_t rows = 0;                   // M, at most kMaxMegakernelRows
  float eps = 0;                      // of the norms
  std::vector<MegakernelGemm> gemms;  // one to four; each may read the outputs of those before
  // MegakernelWorkspaceBytes() of the GPU's memory, zeros before the first launch; launches that
  // share it must not overlap.
  void* workspace = nullptr;
  // Programmatic dependent launch: weights are read while the stream's earlier kernels still run,
  // everything else after they have ended. Not if one of those kernels writes weights.
  bool overlap = false;
  void* stream = nullptr;  // a cudaStream_t
};

// Whether the current GPU runs the megakernel (Hopper with 227 KB of shared memory per block, all
// blocks resident at once, which a MIG partition may not allow), and whether it supports a GEMM of
// these sizes. Throws c10::Error if a CUDA call fails.
bool SupportsMegakernel();
bool SupportsMegakernelGemm(int64_t inner, int64_t columns, bool swiglu);
int64_t MegakernelWorkspaceBytes();

// A row's results have the same bits in each call and whatever M and the other rows are. Launches
// can be captured in a graph. Blocks wait for each other, so the launch is cooperative. Throws
// c10::Error for unsupported sizes and combinations, or if CUDA refuses the launch.
void LaunchMegakernel(const MegakernelPlan& at);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_H_
