// The megakernel: one persistent launch for up to four dependent GEMMs of at most 32 rows (the
// GEMMs of a decode layer). The time to read the weights once bounds its speed.

#ifndef TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_H_
#define TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_H_

#include <cstdint>
#include <vector>

#include "model/cuda/fused/kernels.h"

namespace tritonrl {

// Maximum number of rows of x.
inline constexpr int64_t kMaxMegakernelRows = 32;

// One GEMM out = x W^T (+ add) on the current GPU's tensor cores, accumulated in fp32. All pointers
// are 16-byte aligned GPU memory; all tensors are bf16.
struct MegakernelGemm {
  int64_t inner = 0;             // K, a multiple of 512
  int64_t columns = 0;           // N, a multiple of 16 (32 with swiglu)
  const void* x = nullptr;       // [M, K]
  const void* weight = nullptr;  // [N, K]
  // Weight [K] of an RMSNorm of x, rounded as in LaunchRmsNorm; null: no norm. With a norm, x must
  // be the `out` of the previous GEMM, which must not have swiglu.
  const void* norm_weight = nullptr;
  const void* add = nullptr;  // [M, N], may be `out`; null: no addend. Must be null with swiglu.
  // The first half of W's rows are gates, the second half ups: out [M, N / 2] = silu(x gates^T) *
  // (x ups^T), rounded as in LaunchSwiglu.
  bool swiglu = false;
  void* out = nullptr;  // [M, N]; may be the `add` of an earlier GEMM, but not its x
};

struct MegakernelPlan {
  int64_t rows = 0;                   // M, at most kMaxMegakernelRows
  float eps = 0;                      // of the norms
  std::vector<MegakernelGemm> gemms;  // one to four; each may read the outputs of earlier ones
  // MegakernelWorkspaceBytes() bytes of GPU memory, zeros before the first launch. Launches that
  // share a workspace must not overlap.
  void* workspace = nullptr;
  // Programmatic dependent launch: the kernel reads weights while the stream's earlier kernels
  // still run, and all other inputs after they have ended. Must be false if one of the earlier
  // kernels writes weights.
  bool overlap = false;
  void* stream = nullptr;  // a cudaStream_t
};

// Whether the current GPU can run the megakernel: it must be a Hopper GPU with 227 KB of shared
// memory per block on which all blocks are resident at once (a MIG partition may not allow that).
// Throws c10::Error if a CUDA call fails.
bool SupportsMegakernel();
// Whether the megakernel supports a GEMM of these sizes (see MegakernelGemm).
bool SupportsMegakernelGemm(int64_t inner, int64_t columns, bool swiglu);
int64_t MegakernelWorkspaceBytes();

// Runs the GEMMs in order. The bits of a result row are the same in each call and depend neither on
// M nor on the other rows. Launches can be captured in a graph. Blocks wait for each other, so the
// launch is cooperative. Throws c10::Error for unsupported sizes and combinations, or if the launch
// fails.
void LaunchMegakernel(const MegakernelPlan& at);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_H_
