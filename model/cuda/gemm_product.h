// One matrix product as cuBLASLt is told of it.
#ifndef TRITONRL_MODEL_CUDA_GEMM_PRODUCT_H_
#define TRITONRL_MODEL_CUDA_GEMM_PRODUCT_H_

#include <ATen/core/Tensor.h>
#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <vector>

namespace tritonrl {

// Throws c10::Error, which names `what`, for another status than success.
void CheckCublas(cublasStatus_t status, const char* what);

// A matrix as cuBLASLt sees it, column by column: a row-major one is its own transpose there.
struct Operand {
  explicit Operand(const at::Tensor& x);
  bool transposed;
  int64_t rows, columns, stride;
  cudaDataType_t type;
};

// Factors of fp8 operands, in the GPU's memory, and how their products are summed.
struct Fp8Mode {
  const void* a_scale;
  const void* b_scale;
  bool fast;
  bool each = false;  // a factor for each row of a and each column of b, not one for all
};

// All that the choice of an algorithm depends on.
using ProductKey = std::array<int64_t, 20>;

// Which products are to have equal keys: those of about the same sizes, or of the same.
enum class KeySizes { kAbout, kExact };

// out = a b (+ add), see CudaGemm; what cuBLASLt calls A is our b, as it computes the transpose of
// all. The tensors must outlive it.
class GemmProduct {
 public:
  // fp8: null for operands of other types; add: null for none.
  GemmProduct(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8, const at::Tensor* add,
              const at::Tensor& out);
  ~GemmProduct();
  GemmProduct(const GemmProduct&) = delete;
  GemmProduct& operator=(const GemmProduct&) = delete;

  // Equal for products that one algorithm serves. with_summand: as if it had one, or had none.
  ProductKey MakeKey(bool with_summand, KeySizes sizes) const;
  bool adds() const { return beta_ != 0; }
  // Whether the result is written over the summand.
  bool in_place(const at::Tensor& out) const { return adds() && from_c_ == out.const_data_ptr(); }

  // Writes the result to `to`, which lies as `out`.
  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     const at::Tensor& workspace, void* to, cudaStream_t stream) const;

  // At most so many ways to make it with so many bytes of workspace, the one that cuBLASLt expects
  // to be fastest first; none if it knows none. one_piece: only those in which each sum over the
  // inner dimension is made by one block, without a workspace.
  std::vector<cublasLtMatmulHeuristicResult_t> Proposals(cublasLtHandle_t handle, int most,
                                                         uint64_t workspace,
                                                         bool one_piece = false) const;

 private:
  void Set(const Fp8Mode& fp8);
  // Elements that each sum is of.
  int64_t inner() const { return second_.transposed ? second_.columns : second_.rows; }

  Operand first_, second_, result_, summand_;
  cublasLtMatmulDesc_t description_ = nullptr;
  const void *from_a_, *from_b_, *from_c_;
  std::array<uint32_t, 4> alignments_;
  float beta_;
  int8_t sums_ = 0;  // see Fp8Mode
  bool each_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_PRODUCT_H_
