// The cuBLASLt description of one GEMM: layouts, scales and the heuristics for its algorithm.

#ifndef TRITONRL_MODEL_CUDA_GEMM_CUBLASLT_MATMUL_H_
#define TRITONRL_MODEL_CUDA_GEMM_CUBLASLT_MATMUL_H_

#include <ATen/core/Tensor.h>
#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <vector>

#include "model/cuda/gemm/gemm.h"

namespace tritonrl {

// Throws c10::Error with `what` in its message unless `status` is success.
void CheckCublas(cublasStatus_t status, const char* what);

// The layout of a matrix for cuBLASLt, which is column-major and sees a row-major matrix as its
// transpose. `transposed`: the tensor is column-major.
struct MatmulOperand {
  explicit MatmulOperand(const at::Tensor& x);
  bool transposed;
  int64_t rows, columns, stride;
  cudaDataType_t type;
};

// All properties of a GEMM on which the choice of its algorithm depends.
using MatmulKey = std::array<int64_t, 20>;

// Whether GEMMs of similar sizes have equal keys, or only GEMMs of the same sizes.
enum class SizeMatch { kBucketed, kExact };

// The GEMM out = a b (+ add), see CudaGemm::Multiply. cuBLASLt is column-major and computes the
// transpose, so its operand A is `b` here. The tensors must outlive the object.
class CublasLtMatmul {
 public:
  // fp8: null unless a and b are FP8. add: null for no addend.
  CublasLtMatmul(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                 const at::Tensor* add, const at::Tensor& out);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  // Returns a key that is equal for GEMMs that share an algorithm. with_addend: whether the key is
  // that of the GEMM with an addend.
  MatmulKey MakeKey(bool with_addend, SizeMatch sizes) const;
  bool adds() const { return beta_ != 0; }
  // Whether the result overwrites the addend.
  bool in_place(const at::Tensor& out) const { return adds() && from_c_ == out.const_data_ptr(); }

  // Writes the result to `to`, which has the layout of `out`.
  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     const at::Tensor& workspace, void* to, cudaStream_t stream) const;

  // Returns at most `max_count` heuristics that use at most `workspace` bytes, in the order of
  // cuBLASLt's time estimate, fastest first; empty if there is none. no_split_k: only heuristics in
  // which one block computes each sum over K, without a workspace.
  std::vector<cublasLtMatmulHeuristicResult_t> Heuristics(cublasLtHandle_t handle, int max_count,
                                                          uint64_t workspace,
                                                          bool no_split_k = false) const;

 private:
  void Set(const Fp8Scales& fp8);
  // K, the length of each sum.
  int64_t inner() const { return second_.transposed ? second_.columns : second_.rows; }

  MatmulOperand first_, second_, result_, addend_;
  cublasLtMatmulDesc_t description_ = nullptr;
  const void *from_a_, *from_b_, *from_c_;
  std::array<uint32_t, 4> alignments_;
  float beta_;
  int8_t fast_accumulation_ = 0;  // see Fp8Scales
  bool per_row_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_CUBLASLT_MATMUL_H_
