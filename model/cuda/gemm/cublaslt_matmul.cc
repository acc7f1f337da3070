#include "model/cuda/gemm/cublaslt_matmul.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace tritonrl {
namespace {

// Returns `size`, rounded up by at most an eighth if it is 1,024 or more. The number of tokens
// differs from batch to batch, and the fastest algorithm for one number is also the fastest for
// similar numbers.
int64_t BucketedSize(int64_t size) {
  int64_t unit = 1;
  while (size / unit >= 16) unit *= 2;
  return size < 1024 ? size : (size + unit - 1) / unit * unit;
}

cudaDataType_t DataType(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return CUDA_R_32F;
    case at::kFloat8_e4m3fn:
      return CUDA_R_8F_E4M3;
    case at::kFloat8_e5m2:
      return CUDA_R_8F_E5M2;
    default:
      TORCH_CHECK(x.scalar_type() == at::kBFloat16, "a matmul of ", x.scalar_type());
      return CUDA_R_16BF;
  }
}

// Returns the alignment of the address in bytes, which cuBLASLt is told; at most 128, because
// weights begin at multiples of 128.
uint32_t Alignment(const void* address) {
  uint32_t bytes = 128;
  while (reinterpret_cast<uintptr_t>(address) % bytes != 0) bytes /= 2;
  return bytes;
}

// Whether, according to cuBLASLt, one block computes each sum alone.
bool UsesNoSplitK(const cublasLtMatmulAlgo_t& algorithm) {
  const auto value = [&algorithm](cublasLtMatmulAlgoConfigAttributes_t name) {
    int32_t value = 0;  // stays 0 if the algorithm does not have the attribute
    size_t written = 0;
    cublasLtMatmulAlgoConfigGetAttribute(&algorithm, name, &value, sizeof value, &written);
    return value;
  };
  const int32_t parts = value(CUBLASLT_ALGO_CONFIG_SPLITK_NUM);  // 0 and 1: no split-K
  return (parts == 0 || parts == 1) &&
         value(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) == CUBLASLT_REDUCTION_SCHEME_NONE;
}

class Layout {
 public:
  explicit Layout(const MatmulOperand& x) {
    CheckCublas(cublasLtMatrixLayoutCreate(&layout_, x.type, x.rows, x.columns, x.stride),
                "a layout");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

}  // namespace

void CheckCublas(cublasStatus_t status, const char* what) {
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLASLt: ", what, " failed with ",
              cublasLtGetStatusString(status));
}

MatmulOperand::MatmulOperand(const at::Tensor& x) : transposed(x.stride(1) != 1 && x.size(1) != 1) {
  TORCH_CHECK(x.dim() == 2 && (!transposed || x.stride(0) == 1),
              "a matrix needs a dimension without gaps");
  columns = transposed ? x.size(1) : x.size(0);
  rows = transposed ? x.size(0) : x.size(1);
  stride = std::max(transposed ? x.stride(1) : x.stride(0), rows);
  type = DataType(x);
}

CublasLtMatmul::CublasLtMatmul(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                               const at::Tensor* add, const at::Tensor& out)
    : first_(b), second_(a), result_(out), addend_(add == nullptr ? out : *add) {
  TORCH_CHECK(!result_.transposed && !addend_.transposed,
              "the result and the addend must be row-major");
  TORCH_CHECK(a.size(1) == b.size(0) && out.size(0) == a.size(0) && out.size(1) == b.size(1),
              "matrices do not fit");
  CheckCublas(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a matmul");
  const cublasOperation_t a_op = first_.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t b_op = second_.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSA, &a_op, sizeof a_op);
  cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSB, &b_op, sizeof b_op);
  if (fp8 != nullptr) Set(*fp8);
  from_a_ = b.const_data_ptr();
  from_b_ = a.const_data_ptr();
  from_c_ = add == nullptr ? out.const_data_ptr() : add->const_data_ptr();
  beta_ = add == nullptr ? 0.0f : 1.0f;
  alignments_ = {Alignment(from_a_), Alignment(from_b_), Alignment(from_c_),
                 Alignment(out.const_data_ptr())};
}

CublasLtMatmul::~CublasLtMatmul() { cublasLtMatmulDescDestroy(description_); }

void CublasLtMatmul::Set(const Fp8Scales& fp8) {
  TORCH_CHECK(first_.transposed && !second_.transposed,
              "the reduced dimension of FP8 operands must be contiguous");
  fast_accumulation_ = fp8.fast ? 1 : 0;
  per_row_ = fp8.per_row;
  const cublasLtMatmulMatrixScale_t scales = per_row_ ? CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
                                                      : CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  for (const auto mode : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE}) {
    CheckCublas(cublasLtMatmulDescSetAttribute(description_, mode, &scales, sizeof scales),
                "factors of rows");
  }
  cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &fp8.b,
                                 sizeof fp8.b);
  cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &fp8.a,
                                 sizeof fp8.a);
  cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast_accumulation_,
                                 sizeof fast_accumulation_);
}

MatmulKey CublasLtMatmul::MakeKey(bool with_addend, SizeMatch sizes) const {
  const auto size = [&](int64_t n) { return sizes == SizeMatch::kBucketed ? BucketedSize(n) : n; };
  // A row of `out` is a column of cuBLASLt's result.
  const int64_t columns = result_.columns;
  // A stride is a size, possibly padded. The key includes its largest power-of-two divisor (up to
  // 16), because kernels depend on the alignment of rows.
  const auto stride = [&](int64_t n) { return 32 * size(n) + std::min<int64_t>(16, n & -n); };
  return {size(result_.rows),
          size(columns),
          size(inner()),
          result_.rows % 16 == 0,
          columns % 16 == 0,
          inner() % 16 == 0,
          stride(first_.stride),
          stride(second_.stride),
          stride(addend_.stride),
          stride(result_.stride),
          first_.transposed * 2 + second_.transposed,
          first_.type,
          second_.type,
          result_.type,
          with_addend ? 1 : 0,
          alignments_[0],
          alignments_[1],
          alignments_[2],
          alignments_[3],
          fast_accumulation_ + 2 * per_row_};
}

cublasStatus_t CublasLtMatmul::Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                                   const at::Tensor& workspace, void* to,
                                   cudaStream_t stream) const {
  const float alpha = 1.0f;
  const Layout a(first_), b(second_), c(addend_), d(result_);
  return cublasLtMatmul(handle, description_, &alpha, from_a_, a.get(), from_b_, b.get(), &beta_,
                        from_c_, c.get(), to, d.get(), &algorithm, workspace.data_ptr(),
                        workspace.nbytes(), stream);
}

std::vector<cublasLtMatmulHeuristicResult_t> CublasLtMatmul::Heuristics(cublasLtHandle_t handle,
                                                                        int max_count,
                                                                        uint64_t workspace,
                                                                        bool no_split_k) const {
  cublasLtMatmulPreference_t preference = nullptr;
  CheckCublas(cublasLtMatmulPreferenceCreate(&preference), "a preference");
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &workspace, sizeof workspace);
  if (no_split_k) {
    const uint32_t no_reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         &no_reduction, sizeof no_reduction);
  }
  constexpr cublasLtMatmulPreferenceAttributes_t kAttributes[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (size_t i = 0; i < alignments_.size(); ++i) {
    cublasLtMatmulPreferenceSetAttribute(preference, kAttributes[i], &alignments_[i],
                                         sizeof alignments_[i]);
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found(max_count);
  int count = 0;
  const Layout a(first_), b(second_), c(addend_), d(result_);
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, description_, a.get(), b.get(), c.get(), d.get(),
                                     preference, max_count, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  CheckCublas(status, "a heuristic");
  found.resize(count);
  if (no_split_k) {
    std::erase_if(found, [](const auto& algorithm) {
      return algorithm.workspaceSize > 0 || !UsesNoSplitK(algorithm.algo);
    });
  }
  return found;
}

}  // namespace tritonrl
