#include "model/cuda/gemm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "model/cuda/gemm_product.h"
#include "model/cuda/quantize.h"

namespace tritonrl {
namespace {

constexpr int kProposals = 8;
constexpr int kTries = 3;
constexpr int kTuneProposals = 16;
constexpr int kFixProposals = 64;
constexpr char kNoWay[] = "cuBLASLt knows no way to make this product";

using Algorithm = std::optional<cublasLtMatmulAlgo_t>;  // none: there is no way

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

}  // namespace

struct CudaGemm::Impl {
  Impl(at::Device device, bool tuned) : device(device), tuned(tuned) {
    const c10::cuda::CUDAGuard guard(device);
    CheckCublas(cublasLtCreate(&handle), "the start");
    workspace = at::empty({kProductWorkspace}, at::TensorOptions(device).dtype(at::kByte));
    no_workspace = workspace.narrow(0, 0, 0);
    has_fp8 = CudaHasFp8(device);
  }
  ~Impl() { cublasLtDestroy(handle); }

  Algorithm Choose(const GemmProduct& product, const at::Tensor& out, cudaStream_t stream);
  // In the way that Fix has chosen.
  void MultiplyFixed(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8,
                     const at::Tensor* add, const at::Tensor& out, cudaStream_t stream) const;
  // False if cuBLASLt knows no way to make this product.
  bool Multiply(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8, const at::Tensor* add,
                const at::Tensor& out);

  const at::Device device;
  const bool tuned;
  bool has_fp8 = false;
  cublasLtHandle_t handle = nullptr;
  at::Tensor workspace;
  std::mutex mutex;
  std::map<ProductKey, Algorithm> chosen;
  // Of products that were tuned, or that what was chosen for others of about their size does not
  // make.
  std::map<ProductKey, Algorithm> own_choice;
  // Of pieces; if there are any, no other products are made.
  std::map<ProductKey, cublasLtMatmulAlgo_t> fixed;
  at::Tensor no_workspace;
};

namespace {

std::optional<Fp8Mode> ModeOf(const Fp8RowScales* scales) {
  if (scales == nullptr) return std::nullopt;
  return Fp8Mode{scales->a.const_data_ptr(), scales->b.const_data_ptr(), /*fast=*/false,
                 /*each=*/true};
}

// kFixedRows rows of a product, from row `first` on.
struct FixedPiece {
  FixedPiece(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8, const at::Tensor* add,
             const at::Tensor& out, int64_t first)
      : a(RowsOf(a, first)), out(RowsOf(out, first)) {
    if (add != nullptr) summand = RowsOf(*add, first);
    if (fp8 != nullptr) {
      mode = *fp8;
      mode.a_scale = static_cast<const float*>(fp8->a_scale) + (fp8->each ? first : 0);
    }
    product = std::make_unique<GemmProduct>(this->a, b, fp8 == nullptr ? nullptr : &mode,
                                            add == nullptr ? nullptr : &summand, this->out);
  }

  at::Tensor a, summand, out;
  Fp8Mode mode = {};
  std::unique_ptr<GemmProduct> product;

 private:
  static at::Tensor RowsOf(const at::Tensor& x, int64_t first) {
    return x.as_strided({CudaGemm::kFixedRows, x.size(1)}, x.strides(),
                        x.storage_offset() + first * x.stride(0));
  }
};

Algorithm FirstProposal(const GemmProduct& product, cublasLtHandle_t handle) {
  const auto proposals = product.Proposals(handle, kProposals, kProductWorkspace);
  return proposals.empty() ? Algorithm() : proposals[0].algo;
}

// The fastest of the proposals, each of which writes to `out`; what it held is lost.
Algorithm Fastest(const GemmProduct& product, cublasLtHandle_t handle, const at::Tensor& workspace,
                  const at::Tensor& out, cudaStream_t stream) {
  const auto proposals = product.Proposals(handle, kProposals, kProductWorkspace);
  Algorithm best;
  float least = 0;
  for (const auto& proposal : proposals) {
    Event start, end;
    bool ran = true;
    for (int n = 0; n <= kTries; ++n) {
      if (n == 1) start.Record(stream);
      ran = ran && product.Run(handle, proposal.algo, workspace, out.data_ptr(), stream) ==
                       CUBLAS_STATUS_SUCCESS;
    }
    end.Record(stream);
    const float time = end.MillisecondsSince(start);
    if (ran && (!best.has_value() || time < least)) {
      least = time;
      best = proposal.algo;
    }
  }
  return best;
}

}  // namespace

CudaGemm::CudaGemm(at::Device device, bool tuned) : impl_(std::make_unique<Impl>(device, tuned)) {}
CudaGemm::~CudaGemm() = default;

bool CudaGemm::Impl::Multiply(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8,
                              const at::Tensor* add, const at::Tensor& out) {
  if (out.numel() == 0) return true;
  const c10::cuda::CUDAGuard guard(device);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
  const std::lock_guard<std::mutex> lock(mutex);  // one workspace
  if (!fixed.empty()) {
    MultiplyFixed(a, b, fp8, add, out, stream);
    return true;
  }
  const GemmProduct product(a, b, fp8, add, out);
  const Algorithm algorithm = Choose(product, out, stream);
  if (!algorithm.has_value()) return false;
  cublasStatus_t status = product.Run(handle, *algorithm, workspace, out.data_ptr(), stream);
  if (status != CUBLAS_STATUS_SUCCESS) {
    // It was chosen for another size, or without a summand.
    const ProductKey exact = product.MakeKey(product.adds(), KeySizes::kExact);
    const Algorithm own = FirstProposal(product, handle);
    own_choice[exact] = own;
    if (!own.has_value()) return false;
    status = product.Run(handle, *own, workspace, out.data_ptr(), stream);
  }
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  CheckCublas(status, "a product");
  return true;
}

Algorithm CudaGemm::Impl::Choose(const GemmProduct& product, const at::Tensor& out,
                                 cudaStream_t stream) {
  if (!own_choice.empty()) {
    const auto own = own_choice.find(product.MakeKey(product.adds(), KeySizes::kExact));
    if (own != own_choice.end()) return own->second;
  }
  const bool in_place = product.in_place(out);
  if (tuned && in_place) {
    // Trying would need a copy of the result, which can be gigabytes. The same without a summand
    // has mostly been tried by then.
    const auto without = chosen.find(product.MakeKey(/*with_summand=*/false, KeySizes::kAbout));
    if (without != chosen.end()) return without->second;
  }
  // What is tried is kept for all products of about the size. What is not must not depend on which
  // came first.
  const ProductKey key =
      product.MakeKey(product.adds(), tuned ? KeySizes::kAbout : KeySizes::kExact);
  const auto found = chosen.find(key);
  if (found != chosen.end()) return found->second;
  const Algorithm algorithm = tuned && !in_place ? Fastest(product, handle, workspace, out, stream)
                                                 : FirstProposal(product, handle);
  chosen.emplace(key, algorithm);
  return algorithm;
}

void CudaGemm::Impl::MultiplyFixed(const at::Tensor& a, const at::Tensor& b, const Fp8Mode* fp8,
                                   const at::Tensor* add, const at::Tensor& out,
                                   cudaStream_t stream) const {
  for (int64_t first = 0; first < out.size(0); first += kFixedRows) {
    const FixedPiece piece(a, b, fp8, add, out, first);
    const auto way = fixed.find(piece.product->MakeKey(piece.product->adds(), KeySizes::kExact));
    TORCH_CHECK(way != fixed.end(), "a product of a shape whose way has not been fixed");
    CheckCublas(piece.product->Run(handle, way->second, no_workspace, piece.out.data_ptr(), stream),
                "a product of a fixed way");
  }
}

void CudaGemm::Fix(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add, at::Tensor out,
                   const Fp8RowScales* scales) {
  const c10::cuda::CUDAGuard guard(impl_->device);
  const std::optional<Fp8Mode> mode = ModeOf(scales);
  const FixedPiece piece(a, b, mode.has_value() ? &*mode : nullptr, add, out, 0);
  const ProductKey key = piece.product->MakeKey(piece.product->adds(), KeySizes::kExact);
  if (impl_->fixed.count(key) > 0) return;
  const auto ways = piece.product->Proposals(impl_->handle, kFixProposals, 0, /*one_piece=*/true);
  TORCH_CHECK(!ways.empty(), "cuBLASLt knows no way to make products [", b.size(0), ", ", b.size(1),
              "] of ", kFixedRows, " rows without dividing sums");
  impl_->fixed.emplace(key, ways.front().algo);
}

void CudaGemm::Tune(const at::Tensor& a, const std::vector<at::Tensor>& bs, const at::Tensor* add,
                    at::Tensor out, const Fp8RowScales* scales) {
  const c10::cuda::CUDAGuard guard(impl_->device);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(impl_->device.index()).stream();
  const std::lock_guard<std::mutex> lock(impl_->mutex);  // one workspace
  const std::optional<Fp8Mode> mode = ModeOf(scales);
  const Fp8Mode* const fp8 = mode.has_value() ? &*mode : nullptr;
  const GemmProduct first(a, bs.front(), fp8, add, out);
  Algorithm best;
  float least = 0;
  for (const auto& proposal : first.Proposals(impl_->handle, kTuneProposals, kProductWorkspace)) {
    Event start, end;
    bool ran = true;
    for (int round = 0; round <= 1; ++round) {  // the first loads kernels
      if (round == 1) start.Record(stream);
      for (const at::Tensor& b : bs) {
        ran = ran && GemmProduct(a, b, fp8, add, out)
                             .Run(impl_->handle, proposal.algo, impl_->workspace, out.data_ptr(),
                                  stream) == CUBLAS_STATUS_SUCCESS;
      }
    }
    end.Record(stream);
    const float time = end.MillisecondsSince(start);
    if (ran && (!best.has_value() || time < least)) {
      least = time;
      best = proposal.algo;
    }
  }
  if (best.has_value()) impl_->own_choice[first.MakeKey(first.adds(), KeySizes::kExact)] = best;
}

bool CudaGemm::has_fp8() const { return impl_->has_fp8; }

void CudaGemm::Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add,
                        at::Tensor out) {
  TORCH_CHECK(impl_->Multiply(a, b, nullptr, add, out), kNoWay);
}

void CudaGemm::MultiplyFp8Rows(const at::Tensor& a, const at::Tensor& b, const Fp8RowScales& scales,
                               const at::Tensor* add, at::Tensor out) {
  const std::optional<Fp8Mode> mode = ModeOf(&scales);
  TORCH_CHECK(impl_->Multiply(a, b, &*mode, add, out), kNoWay);
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
