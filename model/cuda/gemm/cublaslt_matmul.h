// One matrix matmul as cuBLASLt is told of it.
#ifndef TRITONRL_MODEL_CUDA_GEMM_CUBLASLT_MATMUL_H_
#define TRITONRL_MODEL_CUDA_GEMM_CUBLASLT_MATMUL_H_

#include <ATen/core/Tensor.h>
#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <vector>

#include "model/cuda/gemm/gemm.h"

namespace tritonrl {

// Throws c10::Error, which names `what`, for another status than success.
void CheckCublas(cublasStatus_t status, const char* what);

// A matrix as cuBLASLt sees it, column by column: a row-major one is its own transpose there.
struct MatmulOperand {
  explicit MatmulOperand(const at::Tensor& x);
  bool transposed;
  int64_t rows, columns, stride;
  cudaDataType_t type;
};

// All that the choice of an algorithm depends on.
using MatmulKey = std::array<int64_t, 20>;

// Which GEMMs are to have equal keys: those of about the same sizes, or of the same.
enum class SizeMatch { kBucketed, kExact };

// out = a b (+ add), see CudaGemm; what cuBLASLt calls A is our b, as it computes the transpose of
// all. The tensors must outlive it.
class CublasLtMatmul {
 public:
  // fp8: null for operands of other types; add: null for none.
  CublasLtMatmul(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                 const at::Tensor* add, const at::Tensor& out);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  // Equal for GEMMs that one algorithm serves. with_addend: as if it had one, or had none.
  MatmulKey MakeKey(bool with_addend, SizeMatch sizes) const;
  bool adds() const { return beta_ != 0; }
  // Whether the result is written over the addend.
  bool in_place(const at::Tensor& out) const { return adds() && from_c_ == out.const_data_ptr(); }

  // Writes the result to `to`, which lies as `out`.
  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     const at::Tensor& workspace, void* to, cudaStream_t stream) const;

  // At most so many heuristics to make it with so many bytes of workspace, the one that cuBLASLt
  // expects to be fastest first; none if it knows none. no_split_k: only those in which each sum
  // over the inner dimension is made by one block, without a workspace.
  std::vector<cublasLtMatmulHeuristicResult_t> Heuristics(cublasLtHandle_t handle, int max_count,
                                                          uint64_t workspace,
                                                          bool no_split_k = false) const;

 private:
  void Set(const Fp8Scales& fp8);
  // Elements that each sum is of.
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
