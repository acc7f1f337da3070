// GEMMs on a GPU by cuBLASLt, with fp32 accumulation: operands may be transposed or FP8, and the
// addend may differ from the output.

#ifndef TRITONRL_MODEL_CUDA_GEMM_GEMM_H_
#define TRITONRL_MODEL_CUDA_GEMM_GEMM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tritonrl {

// Whether the GPU multiplies FP8 values: compute capability 8.9 or later.
bool CudaHasFp8(at::Device device);

// The scales of a GEMM's FP8 operands a and b (fp32 in GPU memory), and its mode of accumulation.
struct Fp8Scales {
  const float* a = nullptr;
  const float* b = nullptr;
  bool per_row = false;  // true: a [M] and b [N], a scale per row and per column; false: [1] each
  // true: accumulates within the tensor cores, which keep fewer bits than fp32. false: adds partial
  // sums in fp32 at intervals. Must be false with per_row.
  bool fast = false;
};

// Size of cuBLASLt's workspace, which each CudaGemm allocates once.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t{64} << 20;

class CudaGemm {
 public:
  // device: of all operands. autotune: the first GEMM of each shape (similar sizes count as one
  // shape) times cuBLASLt's heuristics, and all GEMMs of the shape use the fastest, which can
  // differ between processes. Without autotune GEMMs use the first heuristic, and the same shapes
  // give the same bits in every process.
  CudaGemm(at::Device device, bool autotune);
  ~CudaGemm();

  // out [M, N] = a [M, K] b [K, N] (+ add [M, N]), accumulated in fp32, on the current stream.
  // Each matrix has one stride of 1. a and b have the same type, fp32 or bf16; out and add have the
  // same type, that of a or fp32. `add` may be `out`. fp32 operands are not rounded to tf32.
  // With `scales` a and b hold FP8 values (not both E5M2). K must be contiguous in both, as
  // Hopper's kernels require, and K, N and the strides are multiples of 16. Scales per row need
  // compute capability 9.0 and M a multiple of 16; each row of the result then depends only on the
  // same row of a and add.
  // Throws c10::Error if cuBLASLt does not support the GEMM.
  void Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add, at::Tensor out,
                const Fp8Scales* scales = nullptr);

  // Chooses the algorithm for GEMMs of exactly these sizes (out = a b + add): the fastest of
  // cuBLASLt's heuristics, each timed on all of `bs` in turn. Meant for few rows of a, where
  // reading b takes most of the time and a single b would stay in the GPU's cache. Overwrites
  // `out`, which must not be `add`. Must not be called during graph capture.
  // scales: as in Multiply, the same for all `bs`.
  void Autotune(const at::Tensor& a, const std::vector<at::Tensor>& bs, const at::Tensor* add,
                at::Tensor out, const Fp8Scales* scales = nullptr);

  // Fixes one algorithm for all GEMMs with b's shape (out = a b + add) and any number of rows of a.
  // Each tile of kPinnedRows rows runs the first of cuBLASLt's heuristics without split-K. (No
  // algorithm of cuBLASLt supports every number of rows.) The bits of a result row then do not
  // depend on the other rows, and, as nothing is timed, they are the same in every process with the
  // same cuBLASLt and GPU model.
  // The memory of a, add, out and scales must extend to a multiple of kPinnedRows rows, here and in
  // each later Multiply, which reads the extra rows of a, add and scales and writes those of out.
  // After the first call Multiply throws for shapes that are not pinned. Throws c10::Error if there
  // is no such heuristic. Launches nothing.
  static constexpr int64_t kPinnedRows = 256;
  void PinAlgorithm(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add, at::Tensor out,
                    const Fp8Scales* scales = nullptr);

  bool has_fp8() const;  // CudaHasFp8(device)

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_GEMM_H_
