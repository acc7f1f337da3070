#include "model/cuda/gemm/gemm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "model/cuda/gemm/cublaslt_matmul.h"

namespace tritonrl {
namespace {

constexpr int kMaxHeuristics = 8;
constexpr int kTimedRuns = 3;
constexpr int kMaxAutotuneHeuristics = 16;
constexpr int kMaxPinHeuristics = 64;
constexpr char kNoAlgorithm[] = "cuBLASLt has no algorithm for this matmul";

using Algorithm = std::optional<cublasLtMatmulAlgo_t>;  // nullopt: cuBLASLt has no algorithm

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

bool CudaHasFp8(at::Device device) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index());
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index());
  return major * 10 + minor >= 89;
}

struct CudaGemm::Impl {
  Impl(at::Device device, bool autotune) : device(device), autotune(autotune) {
    const c10::cuda::CUDAGuard guard(device);
    CheckCublas(cublasLtCreate(&handle), "the start");
    workspace = at::empty({kGemmWorkspaceBytes}, at::TensorOptions(device).dtype(at::kByte));
    no_workspace = workspace.narrow(0, 0, 0);
    has_fp8 = CudaHasFp8(device);
  }
  ~Impl() { cublasLtDestroy(handle); }

  Algorithm Choose(const CublasLtMatmul& matmul, const at::Tensor& out, cudaStream_t stream);
  // Runs a GEMM in tiles with the algorithms that PinAlgorithm chose.
  void MultiplyPinned(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                      const at::Tensor* add, const at::Tensor& out, cudaStream_t stream) const;
  // Returns false if cuBLASLt has no algorithm for this GEMM.
  bool Multiply(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                const at::Tensor* add, const at::Tensor& out);

  const at::Device device;
  const bool autotune;
  bool has_fp8 = false;
  cublasLtHandle_t handle = nullptr;
  at::Tensor workspace;
  std::mutex mutex;
  std::map<MatmulKey, Algorithm> algorithms;
  // Algorithms of GEMMs that Autotune timed, or that the algorithm of their size bucket does not
  // support.
  std::map<MatmulKey, Algorithm> exact_size_algorithms;
  // Algorithms of tiles. Unless empty, Multiply throws for all other shapes.
  std::map<MatmulKey, cublasLtMatmulAlgo_t> pinned;
  at::Tensor no_workspace;
};

namespace {

// A GEMM of kPinnedRows rows of a, add and out, from row `first` on.
struct PinnedTile {
  PinnedTile(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8, const at::Tensor* add,
             const at::Tensor& out, int64_t first)
      : a(RowsOf(a, first)), out(RowsOf(out, first)) {
    if (add != nullptr) addend = RowsOf(*add, first);
    if (fp8 != nullptr) {
      scales = *fp8;
      if (fp8->per_row) scales.a += first;
    }
    matmul = std::make_unique<CublasLtMatmul>(this->a, b, fp8 == nullptr ? nullptr : &scales,
                                              add == nullptr ? nullptr : &addend, this->out);
  }

  at::Tensor a, addend, out;
  Fp8Scales scales;
  std::unique_ptr<CublasLtMatmul> matmul;

 private:
  static at::Tensor RowsOf(const at::Tensor& x, int64_t first) {
    return x.as_strided({CudaGemm::kPinnedRows, x.size(1)}, x.strides(),
                        x.storage_offset() + first * x.stride(0));
  }
};

Algorithm FirstHeuristic(const CublasLtMatmul& matmul, cublasLtHandle_t handle) {
  const auto heuristics = matmul.Heuristics(handle, kMaxHeuristics, kGemmWorkspaceBytes);
  return heuristics.empty() ? Algorithm() : heuristics[0].algo;
}

// Times the heuristics and returns the fastest; overwrites `out`.
Algorithm FastestAlgorithm(const CublasLtMatmul& matmul, cublasLtHandle_t handle,
                           const at::Tensor& workspace, const at::Tensor& out,
                           cudaStream_t stream) {
  const auto heuristics = matmul.Heuristics(handle, kMaxHeuristics, kGemmWorkspaceBytes);
  Algorithm best;
  float best_time = 0;
  for (const auto& heuristic : heuristics) {
    Event start, end;
    bool ran = true;
    for (int n = 0; n <= kTimedRuns; ++n) {
      if (n == 1) start.Record(stream);
      ran = ran && matmul.Run(handle, heuristic.algo, workspace, out.data_ptr(), stream) ==
                       CUBLAS_STATUS_SUCCESS;
    }
    end.Record(stream);
    const float time = end.MillisecondsSince(start);
    if (ran && (!best.has_value() || time < best_time)) {
      best_time = time;
      best = heuristic.algo;
    }
  }
  return best;
}

}  // namespace

CudaGemm::CudaGemm(at::Device device, bool autotune)
    : impl_(std::make_unique<Impl>(device, autotune)) {}
CudaGemm::~CudaGemm() = default;

bool CudaGemm::Impl::Multiply(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                              const at::Tensor* add, const at::Tensor& out) {
  if (out.numel() == 0) return true;
  const c10::cuda::CUDAGuard guard(device);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
  const std::lock_guard<std::mutex> lock(mutex);  // all GEMMs share one workspace
  if (!pinned.empty()) {
    MultiplyPinned(a, b, fp8, add, out, stream);
    return true;
  }
  const CublasLtMatmul matmul(a, b, fp8, add, out);
  const Algorithm algorithm = Choose(matmul, out, stream);
  if (!algorithm.has_value()) return false;
  cublasStatus_t status = matmul.Run(handle, *algorithm, workspace, out.data_ptr(), stream);
  if (status != CUBLAS_STATUS_SUCCESS) {
    // The algorithm was chosen for another size of the bucket, or for a GEMM without an addend.
    const MatmulKey exact = matmul.MakeKey(matmul.adds(), SizeMatch::kExact);
    const Algorithm own = FirstHeuristic(matmul, handle);
    exact_size_algorithms[exact] = own;
    if (!own.has_value()) return false;
    status = matmul.Run(handle, *own, workspace, out.data_ptr(), stream);
  }
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  CheckCublas(status, "a matmul");
  return true;
}

Algorithm CudaGemm::Impl::Choose(const CublasLtMatmul& matmul, const at::Tensor& out,
                                 cudaStream_t stream) {
  if (!exact_size_algorithms.empty()) {
    const auto own = exact_size_algorithms.find(matmul.MakeKey(matmul.adds(), SizeMatch::kExact));
    if (own != exact_size_algorithms.end()) return own->second;
  }
  const bool in_place = matmul.in_place(out);
  if (autotune && in_place) {
    // Timing would need a copy of the result, which can be gigabytes. In most cases the same GEMM
    // without an addend has already been timed.
    const auto without =
        algorithms.find(matmul.MakeKey(/*with_addend=*/false, SizeMatch::kBucketed));
    if (without != algorithms.end()) return without->second;
  }
  // A timed choice is used for all GEMMs of similar sizes. An untimed choice must not depend on
  // which of these sizes is used first, so its key is exact.
  const MatmulKey key =
      matmul.MakeKey(matmul.adds(), autotune ? SizeMatch::kBucketed : SizeMatch::kExact);
  const auto found = algorithms.find(key);
  if (found != algorithms.end()) return found->second;
  const Algorithm algorithm = autotune && !in_place
                                  ? FastestAlgorithm(matmul, handle, workspace, out, stream)
                                  : FirstHeuristic(matmul, handle);
  algorithms.emplace(key, algorithm);
  return algorithm;
}

void CudaGemm::Impl::MultiplyPinned(const at::Tensor& a, const at::Tensor& b, const Fp8Scales* fp8,
                                    const at::Tensor* add, const at::Tensor& out,
                                    cudaStream_t stream) const {
  for (int64_t first = 0; first < out.size(0); first += kPinnedRows) {
    const PinnedTile tile(a, b, fp8, add, out, first);
    const auto algorithm =
        pinned.find(tile.matmul->MakeKey(tile.matmul->adds(), SizeMatch::kExact));
    TORCH_CHECK(algorithm != pinned.end(),
                "a matmul of a shape whose algorithm has not been pinned (CudaGemm::PinAlgorithm)");
    CheckCublas(
        tile.matmul->Run(handle, algorithm->second, no_workspace, tile.out.data_ptr(), stream),
        "a matmul with a pinned algorithm");
  }
}

void CudaGemm::PinAlgorithm(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add,
                            at::Tensor out, const Fp8Scales* scales) {
  const c10::cuda::CUDAGuard guard(impl_->device);
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  const PinnedTile tile(a, b, scales, add, out, 0);
  const MatmulKey key = tile.matmul->MakeKey(tile.matmul->adds(), SizeMatch::kExact);
  if (impl_->pinned.count(key) > 0) return;
  const auto heuristics =
      tile.matmul->Heuristics(impl_->handle, kMaxPinHeuristics, 0, /*no_split_k=*/true);
  TORCH_CHECK(!heuristics.empty(), "cuBLASLt has no algorithm for matmuls [", b.size(0), ", ",
              b.size(1), "] of ", kPinnedRows, " rows without split-K");
  impl_->pinned.emplace(key, heuristics.front().algo);
}

void CudaGemm::Autotune(const at::Tensor& a, const std::vector<at::Tensor>& bs,
                        const at::Tensor* add, at::Tensor out, const Fp8Scales* scales) {
  const c10::cuda::CUDAGuard guard(impl_->device);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(impl_->device.index()).stream();
  const std::lock_guard<std::mutex> lock(impl_->mutex);  // all GEMMs share one workspace
  const CublasLtMatmul first(a, bs.front(), scales, add, out);
  Algorithm best;
  float best_time = 0;
  for (const auto& heuristic :
       first.Heuristics(impl_->handle, kMaxAutotuneHeuristics, kGemmWorkspaceBytes)) {
    Event start, end;
    bool ran = true;
    for (int round = 0; round <= 1; ++round) {  // round 0 loads the kernels and is not timed
      if (round == 1) start.Record(stream);
      for (const at::Tensor& b : bs) {
        ran = ran && CublasLtMatmul(a, b, scales, add, out)
                             .Run(impl_->handle, heuristic.algo, impl_->workspace, out.data_ptr(),
                                  stream) == CUBLAS_STATUS_SUCCESS;
      }
    }
    end.Record(stream);
    const float time = end.MillisecondsSince(start);
    if (ran && (!best.has_value() || time < best_time)) {
      best_time = time;
      best = heuristic.algo;
    }
  }
  if (best.has_value())
    impl_->exact_size_algorithms[first.MakeKey(first.adds(), SizeMatch::kExact)] = best;
}

bool CudaGemm::has_fp8() const { return impl_->has_fp8; }

void CudaGemm::Multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* add,
                        at::Tensor out, const Fp8Scales* scales) {
  if (impl_->Multiply(a, b, scales, add, out)) return;
  // cuBLASLt's documentation requires multiples of 16 for all sizes of FP8 GEMMs, although some
  // kernels support any number of rows of `a`. If there is no such kernel, the last rows run
  // separately, padded with zeros.
  const int64_t whole = a.size(0) / 16 * 16, rest = a.size(0) - whole;
  TORCH_CHECK(scales != nullptr && !scales->per_row && rest > 0, kNoAlgorithm);
  const auto multiply = [&](const at::Tensor& rows, const at::Tensor* addend,
                            const at::Tensor& to) {
    TORCH_CHECK(impl_->Multiply(rows, b, scales, addend, to), kNoAlgorithm);
  };
  const at::Tensor first = out.narrow(0, 0, whole);
  const at::Tensor first_addend = add == nullptr ? first : add->narrow(0, 0, whole);
  multiply(a.narrow(0, 0, whole), add == nullptr ? nullptr : &first_addend, first);
  const at::Tensor last = at::zeros({16, a.size(1)}, a.options().dtype(at::kByte));
  last.narrow(0, 0, rest).copy_(a.narrow(0, whole, rest).view(at::kByte));
  const at::Tensor last_out = at::zeros({16, out.size(1)}, out.options());
  if (add != nullptr) last_out.narrow(0, 0, rest).copy_(add->narrow(0, whole, rest));
  multiply(last.view(a.scalar_type()), add == nullptr ? nullptr : &last_out, last_out);
  out.narrow(0, whole, rest).copy_(last_out.narrow(0, 0, rest));
}

}  // namespace tritonrl
