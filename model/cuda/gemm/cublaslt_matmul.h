// One GEMM as cuBLASLt describes it: layouts, scales and the heuristics for its algorithm.

#ifndef TRITONRL_MODEL_CUDA_GEMM_CUBLASLT_MATMUL_H_
#define TRITONRL_MODEL_CUDA_GEMM_CUBLASLT_MATMUL_H_

#include <ATen/core/Tensor.h>
#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <vector>

#include "model/cuda/gemm/gemm.h"

namespace tritonrl {

// Throws c10::Error, which names `what`, unless `status` is success.
void CheckCublas(cublasStatus_t status, const char* what);

// A matrix as cuBLASLt sees it, column by column: a row-major one is its own transpose there.
struct MatmulOperand {
  explicit MatmulOperand(const at::Tensor& x);
  bool transposed;
  int64_t rows, columns, stride;
  cudaDataType_t type;
};

// Everything that the choice of an algorithm depends on.
using MatmulKey = std::array<int64_t, 20>;

// Whether GEMMs of similar sizes have equal keys, or only those of the same sizes.
enum class SizeMatch { kBucketed, kExact };

// out = a b (+ add), see CudaGemm. cuBLASLt is column-major and computes the transpose, so its A is
// our b. The tensors must outlive the object.
class CublasLtMatmul {
 public:
  // fp8: null for operands of other types; add: null for none.
  CublasLtMatmul(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                 const at::Tensor* add, const at::Tensor& out);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  // Equal for GEMMs that share an algorithm. with_addend: the key with or without an addend.
  MatmulKey MakeKey(bool with_addend, SizeMatch sizes) const;
  bool adds() const { return beta_ != 0; }
  // Whether the result is written over the addend.
  bool in_place(const at::Tensor& out) const { return adds() && from_c_ == out.const_data_ptr(); }

  // Writes the result to `to`, which has the layout of `out`.
  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     const at::Tensor& workspace, void* to, cudaStream_t stream) const;

  // At most `max_count` heuristics that use at most `workspace` bytes, the fastest by cuBLASLt's
  // estimate first; empty if there is none. no_split_k: only those in which one block computes each
  // sum over the inner dimension, without a workspace.
  std::vector<cublasLtMatmulHeuristicResult_t> Heuristics(cublasLtHandle_t handle, int max_count,
                                                          uint64_t workspace,
                                                          bool no_split_k = false) const;

 private:
  void Set(const Fp8Scales& fp8);
  // Length of each sum.
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
