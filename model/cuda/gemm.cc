#include "model/cuda/gemm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "model/cuda/quantize.h"

namespace tritonrl {
namespace {

constexpr int kProposals = 8;
constexpr int kTries = 3;
constexpr char kNoWay[] = "cuBLASLt knows no way to make this product";

// All that the choice of an algorithm depends on.
using Key = std::array<int64_t, 18>;

void Check(cublasStatus_t status, const char* what) {
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLASLt: ", what, " failed with ",
              cublasLtGetStatusString(status));
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
      TORCH_CHECK(x.scalar_type() == at::kBFloat16, "a product of ", x.scalar_type());
      return CUDA_R_16BF;
  }
}

// Bytes that the address is a multiple of, as cuBLASLt is told: weights begin at multiples of 128.
uint32_t Alignment(const void* address) {
  uint32_t bytes = 128;
  while (reinterpret_cast<uintptr_t>(address) % bytes != 0) bytes /= 2;
  return bytes;
}

// A matrix as cuBLASLt sees it, column by column: a row-major one is its own transpose there.
struct Operand {
  explicit Operand(const at::Tensor& x) : transposed(x.stride(1) != 1 && x.size(1) != 1) {
    TORCH_CHECK(x.dim() == 2 && (!transposed || x.stride(0) == 1),
                "a matrix needs a dimension without gaps");
    columns = transposed ? x.size(1) : x.size(0);
    rows = transposed ? x.size(0) : x.size(1);
    stride = std::max(transposed ? x.stride(1) : x.stride(0), rows);
    type = DataType(x);
  }
  bool transposed;
  int64_t rows, columns, stride;
  cudaDataType_t type;
};

class Layout {
 public:
  explicit Layout(const Operand& x) {
    Check(cublasLtMatrixLayoutCreate(&layout_, x.type, x.rows, x.columns, x.stride), "a layout");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Event {
 public:
  Event() { cudaEventCreate(&event_); }
  ~Event() { cudaEventDestroy(event_); }
  void Record(cudaStream_t stream) { cudaEventRecord(event_, stream); }
  float MillisecondsSince(const Event& start) const {
    float milliseconds = 0;
    cudaEventSynchronize(event_);
    cudaEventElapsedTime(&milliseconds, start.event_, event_);
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

struct Fp8Mode;

}  // namespace

struct CudaGemm::Impl {
  Impl(at::Device device, bool tuned) : device(device), tuned(tuned) {
    const c10::cuda::CUDAGuard guard(device);
    Check(cublasLtCreate(&handle), "the start");
    workspace = at::empty({kProductWorkspace}, at::TensorOptions(device).dtype(at::kByte));
    has_fp8 = CudaHasFp8(device);
  }
  ~Impl() { cublasLtDestroy(handle); }

  // False if cuBLASLt knows no way to make this product.
  bool Multiply(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8, const at::Tensor* add,
                const at::Tensor& out);

  const at::Device device;
  const bool tuned;
  bool has_fp8 = false;
  cublasLtHandle_t handle = nullptr;
  at::Tensor workspace;
  std::mutex mutex;
  std::map<Key, std::optional<cublasLtMatmulAlgo_t>> chosen;  // none: there is no way
};

namespace {

// Factors of fp8 operands, in the GPU's memory, and how their products are summed.
struct Fp8Mode {
  const void* a_scale;
  const void* b_scale;
  bool fast;
};

// One product: what cuBLASLt calls A is our b, as it computes the transpose of all.
struct Product {
  Product(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8, const at::Tensor* add,
          const at::Tensor& out)
      : first(b), second(a), result(out), summand(add == nullptr ? out : *add) {
    TORCH_CHECK(!result.transposed && !summand.transposed, "the result lies row by row");
    TORCH_CHECK(a.size(1) == b.size(0) && out.size(0) == a.size(0) && out.size(1) == b.size(1),
                "matrices do not fit");
    Check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
    const cublasOperation_t a_op = first.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t b_op = second.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &a_op, sizeof a_op);
    cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSB, &b_op, sizeof b_op);
    if (fp8 != nullptr) Set(*fp8);
    from_a = b.const_data_ptr();
    from_b = a.const_data_ptr();
    from_c = add == nullptr ? out.const_data_ptr() : add->const_data_ptr();
    beta = add == nullptr ? 0.0f : 1.0f;
    alignments = {Alignment(from_a), Alignment(from_b), Alignment(from_c),
                  Alignment(out.const_data_ptr())};
  }
  ~Product() { cublasLtMatmulDescDestroy(description); }
  Product(const Product&) = delete;

  void Set(const Fp8Mode& fp8) {
    TORCH_CHECK(first.transposed && !second.transposed,
                "fp8 operands lie with the summed dimension contiguous");
    sums = fp8.fast ? 1 : 0;
    cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &fp8.b_scale,
                                   sizeof fp8.b_scale);
    cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &fp8.a_scale,
                                   sizeof fp8.a_scale);
    cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &sums,
                                   sizeof sums);
  }

  Key MakeKey() const {
    return {result.rows,    result.columns, first.columns,
            first.rows,     first.stride,   second.stride,
            summand.stride, result.stride,  first.transposed * 2 + second.transposed,
            first.type,     result.type,    beta != 0 ? 1 : 0,
            alignments[0],  alignments[1],  alignments[2],
            alignments[3],  second.type,    sums};
  }

  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     const at::Tensor& workspace, void* to, cudaStream_t stream) const {
    const float alpha = 1.0f;
    const Layout a(first), b(second), c(summand), d(result);
    return cublasLtMatmul(handle, description, &alpha, from_a, a.get(), from_b, b.get(), &beta,
                          from_c, c.get(), to, d.get(), &algorithm, workspace.data_ptr(),
                          workspace.nbytes(), stream);
  }

  // None if cuBLASLt knows no way.
  std::vector<cublasLtMatmulHeuristicResult_t> Proposals(cublasLtHandle_t handle) const {
    cublasLtMatmulPreference_t preference = nullptr;
    Check(cublasLtMatmulPreferenceCreate(&preference), "a preference");
    const uint64_t room = kProductWorkspace;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &room, sizeof room);
    constexpr cublasLtMatmulPreferenceAttributes_t kAttributes[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (size_t i = 0; i < alignments.size(); ++i) {
      cublasLtMatmulPreferenceSetAttribute(preference, kAttributes[i], &alignments[i],
                                           sizeof alignments[i]);
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found(kProposals);
    int count = 0;
    const Layout a(first), b(second), c(summand), d(result);
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, description, a.get(), b.get(), c.get(), d.get(),
                                       preference, kProposals, found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    Check(status, "a proposal");
    found.resize(count);
    return found;
  }

  Operand first, second, result, summand;
  cublasLtMatmulDesc_t description = nullptr;
  const void *from_a, *from_b, *from_c;
  std::array<uint32_t, 4> alignments;
  float beta;
  int8_t sums = 0;
};

// The fastest of the proposals, written to a place of its own, as `out` may be the summand.
cublasLtMatmulAlgo_t Fastest(const Product& product,
                             const std::vector<cublasLtMatmulHeuristicResult_t>& proposals,
                             cublasLtHandle_t handle, const at::Tensor& workspace,
                             const at::Tensor& out, cudaStream_t stream) {
  const at::Tensor scratch = at::empty_strided(out.sizes(), out.strides(), out.options());
  int best = 0;
  float least = 0;
  for (size_t i = 0; i < proposals.size(); ++i) {
    Event start, end;
    bool ran = true;
    for (int n = 0; n <= kTries; ++n) {
      if (n == 1) start.Record(stream);
      ran = ran && product.Run(handle, proposals[i].algo, workspace, scratch.data_ptr(), stream) ==
                       CUBLAS_STATUS_SUCCESS;
    }
    end.Record(stream);
    const float time = end.MillisecondsSince(start);
    if (ran && (least == 0 || time < least)) {
      least = time;
      best = static_cast<int>(i);
    }
  }
  return proposals[best].algo;
}

}  // namespace

CudaGemm::CudaGemm(at::Device device, bool tuned) : impl_(std::make_unique<Impl>(device, tuned)) {}
CudaGemm::~CudaGemm() = default;

bool CudaGemm::Impl::Multiply(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8,
                              const at::Tensor* add, const at::Tensor& out) {
  if (out.numel() == 0) return true;
  const c10::cuda::CUDAGuard guard(device);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
  const Product product(a, b, fp8, add, out);
  const Key key = product.MakeKey();
  const std::lock_guard<std::mutex> lock(mutex);  // one workspace
  auto found = chosen.find(key);
  if (found == chosen.end()) {
    const auto proposals = product.Proposals(handle);
    std::optional<cublasLtMatmulAlgo_t> algorithm;
    if (!proposals.empty()) {
      algorithm =
          tuned ? Fastest(product, proposals, handle, workspace, out, stream) : proposals[0].algo;
    }
    found = chosen.emplace(key, algorithm).first;
  }
  if (!found->second.has_value()) return false;
  Check(product.Run(handle, *found->second, workspace, out.data_ptr(), stream), "a product");
  return true;
}

bool CudaGemm::has_fp8() const { return impl_->has_fp8; }

void CudaGemm::Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add,
                        at::Tensor out) {
  TORCH_CHECK(impl_->Multiply(a, b, nullptr, add, out), kNoWay);
}

void CudaGemm::MultiplyFp8(const at::Tensor& a, const at::Tensor& a_scale, const at::Tensor& b,
                           const at::Tensor& b_scale, bool fast, const at::Tensor* add,
                           at::Tensor out) {
  const Fp8Mode mode = {a_scale.const_data_ptr(), b_scale.const_data_ptr(), fast};
  if (impl_->Multiply(a, b, &mode, add, out)) return;
  // Its documents want all sizes to be multiples of 16, though kernels may take any number of rows
  // of `a`: the last rows by themselves then, filled up with zeros.
  const int64_t whole = a.size(0) / 16 * 16, rest = a.size(0) - whole;
  TORCH_CHECK(rest > 0, kNoWay);
  const auto multiply = [&](const at::Tensor& rows, const at::Tensor* summand,
                            const at::Tensor& to) {
    TORCH_CHECK(impl_->Multiply(rows, b, &mode, summand, to), kNoWay);
  };
  const at::Tensor first = out.narrow(0, 0, whole);
  const at::Tensor first_add = add == nullptr ? first : add->narrow(0, 0, whole);
  multiply(a.narrow(0, 0, whole), add == nullptr ? nullptr : &first_add, first);
  const at::Tensor last = at::zeros({16, a.size(1)}, a.options().dtype(at::kByte));
  last.narrow(0, 0, rest).copy_(a.narrow(0, whole, rest).view(at::kByte));
  const at::Tensor last_out = at::zeros({16, out.size(1)}, out.options());
  if (add != nullptr) last_out.narrow(0, 0, rest).copy_(add->narrow(0, whole, rest));
  multiply(last.view(a.scalar_type()), add == nullptr ? nullptr : &last_out, last_out);
  out.narrow(0, whole, rest).copy_(last_out.narrow(0, 0, rest));
}

}  // namespace tritonrl
