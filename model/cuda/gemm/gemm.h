// GEMMs on a GPU by cuBLASLt: any mix of transposed operands, sums into fp32, a matrix to
// add that is not the one written.
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

// Bytes that an object holds for cuBLASLt's temporary results.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t{64} << 20;

class CudaGemm {
 public:
  // `device` of all operands. autotune: the first matmul of each shape (sizes of about as much
  // count as one) tries what cuBLASLt proposes and keeps the fastest, which can be another one in
  // another process; else its first heuristic is taken, and the same shapes give the same bits in
  // every process.
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

  // Chooses the algorithm by which GEMMs of exactly these sizes are made from now on (out = a b +
  // add, the b of any of `bs`): the fastest of cuBLASLt's heuristics on all of `bs` in turn. For
  // few rows of a, where reading b is most of the time: trying on one b alone would find it in the
  // GPU's cache. `out` is overwritten, and must not be `add`. Not while a graph is captured.
  // scales: as in Multiply, the same for all `bs`.
  void Autotune(const at::Tensor& a, const std::vector<at::Tensor>& bs, const at::Tensor* add,
                at::Tensor out, const Fp8Scales* scales = nullptr);

  // Fixes the one algorithm by which GEMMs with b's shape (out = a b + add) are made from now on,
  // whatever the rows of a: in tiles of kPinnedRows rows, by the first of cuBLASLt's heuristics for
  // such a tile that makes each sum over K in one block. (No algorithm that it knows takes all
  // numbers of rows.) A row of the result then has the same bits with any rows beside it, and, as
  // nothing is timed, in every process with this cuBLASLt and kind of GPU. a, add and out, here and
  // in each matmul from then on, are the first rows of memory that goes on to a multiple of
  // kPinnedRows: a's, add's and the factors' other rows are read, out's are written. Products of
  // shapes that have not been pinned throw. Throws c10::Error if there is no such heuristic.
  // Launches nothing.
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
