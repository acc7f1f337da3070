// GEMMs on a GPU by cuBLASLt: any mix of transposed operands, fp32 accumulation, an addend that
// need not be the output, FP8 operands.

#ifndef TRITONRL_MODEL_CUDA_GEMM_GEMM_H_
#define TRITONRL_MODEL_CUDA_GEMM_GEMM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tritonrl {

// Whether the GPU multiplies FP8 values: compute capability 8.9 or later.
bool CudaHasFp8(at::Device device);

// The factors of a GEMM's FP8 operands a and b, fp32 in the GPU's memory, and how it sums.
struct Fp8Scales {
  const float* a = nullptr;
  const float* b = nullptr;
  bool per_row = false;  // [M] and [N], one for each row of a and column of b; else [1] each
  // Sums stay within the tensor cores, which keep fewer bits than fp32; else they are added up in
  // fp32 at intervals. Not with per_row.
  bool fast = false;
};

// cuBLASLt's workspace, allocated once per object.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t{64} << 20;

class CudaGemm {
 public:
  // `device` of all operands. autotune: the first GEMM of each shape (similar sizes count as one)
  // times cuBLASLt's heuristics and keeps the fastest, which can differ between processes. Without
  // it the first heuristic is used, and the same shapes give the same bits in every process.
  CudaGemm(at::Device device, bool autotune);
  ~CudaGemm();

  // out [M, N] = a [M, K] b [K, N] (+ add [M, N]), computed in fp32, on the current stream.
  // Each matrix has one stride of 1; a and b have one type (fp32 or bf16), out and add one (that
  // of a, or fp32). `add` may be `out`. fp32 operands are not rounded to tf32.
  // With `scales` a and b hold FP8 values (not both E5M2), each with the summed dimension
  // contiguous (what Hopper's kernels want), and K, N and strides are multiples of 16. Scales per
  // row need compute capability 9.0 and M a multiple of 16; each row of the result then depends on
  // no other one.
  // Throws c10::Error where cuBLASLt refuses.
  void Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add, at::Tensor out,
                const Fp8Scales* scales = nullptr);

  // Chooses the algorithm of GEMMs of exactly these sizes (out = a b + add): the fastest of
  // cuBLASLt's heuristics, timed on all of `bs` in turn. Meant for few rows of a, where reading b
  // takes most of the time and a single b would stay in the GPU's cache. Overwrites `out`, which
  // must not be `add`. Not during graph capture.
  // scales: as in Multiply, the same for all `bs`.
  void Autotune(const at::Tensor& a, const std::vector<at::Tensor>& bs, const at::Tensor* add,
                at::Tensor out, const Fp8Scales* scales = nullptr);

  // Fixes one algorithm for all GEMMs with b's shape (out = a b + add), whatever the rows of a:
  // each tile of kPinnedRows rows runs the first of cuBLASLt's heuristics that sums over K without
  // split-K. (cuBLASLt has no algorithm for every number of rows.) A row of the result then has the
  // same bits whatever rows are beside it and, as nothing is timed, in every process with the same
  // cuBLASLt and GPU model.
  // The memory of a, add, out and scales continues to a multiple of kPinnedRows rows, here and in
  // each Multiply from then on: a's, add's and the scales' further rows are read, out's are
  // written. After the first call GEMMs of shapes that are not pinned throw. Throws c10::Error if
  // there is no such heuristic. Launches nothing.
  static constexpr int64_t kPinnedRows = 256;
  void PinAlgorithm(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add, at::Tensor out,
                    const Fp8Scales* scales = nullptr);

  bool has_fp8() const;  // CudaHasFp8 of its device

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_GEMM_H_
