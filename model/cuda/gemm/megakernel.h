// GEMMs of few rows (generation steps of few sequences) one behind the other in one
// launch, bound by reading their weights once.
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
  // RMSNorm of x first, rounded as by LaunchRmsNorm: its weight [K]; null: x as it is. x is then
  // the `out` of the gemm before, without swiglu.
  const void* norm_weight = nullptr;
  const void* add = nullptr;  // [M, N], may be `out`; null: none. Not with swiglu.
  // W's first half are gates: out [M, N / 2] = silu(x gates^T) * (x ups^T), rounded as by
  // LaunchSwiglu.
  bool swiglu = false;
  void* out = nullptr;  // may be what an earlier gemm has as `add`, not what one has as x
};

struct MegakernelPlan {
  int64_t rows = 0;                   // M, at most kMaxMegakernelRows
  float eps = 0;                      // of the norms
  std::vector<MegakernelGemm> gemms;  // one to four; each reads what those before have written
  // MegakernelWorkspaceBytes() of the GPU's memory, zeros before the first launch; launches that
  // share it follow each other.
  void* workspace = nullptr;
  // The launch may begin to read weights while the stream's earlier kernels still run (Hopper's
  // programmatic dependent launch); all else it reads and writes when they have ended. Not where
  // one of them writes weights.
  bool overlap = false;
  void* stream = nullptr;  // a cudaStream_t
};

// Whether the current GPU can (Hopper, with 227 KB of shared memory for a block and room for all
// blocks together, which one that is shared out may lack) and a GEMM of these sizes may be a
// gemm. Throws c10::Error if the GPU does not answer.
bool SupportsMegakernel();
bool SupportsMegakernelGemm(int64_t inner, int64_t columns, bool swiglu);
int64_t MegakernelWorkspaceBytes();

// A row's results have the same bits whatever M and the other rows are; each call gives the same
// bits. Launches can be captured. Its blocks wait for each other: all are on the GPU together, or
// the launch waits until they can be. Throws c10::Error for sizes and mixes that are not taken, or
// if the launch is refused.
void LaunchMegakernel(const MegakernelPlan& at);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_H_
