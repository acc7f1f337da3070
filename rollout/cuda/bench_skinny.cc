// Products of few rows in the shapes of Qwen3-8B, and memory that is given back and taken again.

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "model/cuda/gemm.h"
#include "model/cuda/skinny_product.h"
#include "rollout/cuda/bench_timer.h"
#include "rollout/cuda/mapped_memory.h"

namespace tritonrl {
namespace {

constexpr int64_t kHidden = 4096, kMlp = 12288, kVocab = 151936;
// So much of other weights is read before the same again: five times what an L2 cache holds.
constexpr int64_t kRotated = int64_t{256} << 20;

at::Tensor Numbers(at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions(at::kCUDA).dtype(type)).normal_();
}

struct Shape {
  const char* name;
  int64_t inner, columns;
  bool onto, normed, gated;  // adds to the residual stream; norm in front, SwiGLU behind
};

class ProductBench {
 public:
  explicit ProductBench(const Shape& shape)
      : shape_(shape),
        bytes_(2 * shape.inner * shape.columns),
        copies_(static_cast<int>((kRotated + bytes_ - 1) / bytes_)),
        weights_(Numbers({copies_, shape.columns, shape.inner}, at::kBFloat16)),
        norm_(Numbers({shape.inner}, at::kBFloat16)) {}

  void Run(int64_t rows, CudaGemm* gemm) {
    x_ = Numbers({rows, shape_.inner}, at::kBFloat16);
    residual_ = Numbers({rows, shape_.columns}, at::kBFloat16);
    out_ = Numbers({rows, shape_.columns}, shape_.columns == kVocab ? at::kFloat : at::kBFloat16);
    std::string line =
        absl::StrFormat("%-8s %6d -> %6d %5d", shape_.name, shape_.inner, shape_.columns, rows);
    const double theirs = Cublas(gemm);
    for (const double time : {theirs, Ours(1, false, false), Ours(2, false, false),
                              Ours(1, true, false), Ours(2, true, false), Ours(1, true, true)}) {
      absl::StrAppendFormat(&line, " %8.1f %5.2f", time, bytes_ / time * 1e-6);
    }
    std::cout << line << "\n";
  }

 private:
  double Cublas(CudaGemm* gemm) {
    std::vector<at::Tensor> turned;
    for (int i = 0; i < copies_; ++i) turned.push_back(weights_[i].t());
    const at::Tensor* add = shape_.onto ? &residual_ : nullptr;
    gemm->Tune(x_, turned, add, out_);
    return MicrosecondsOf(copies_, [&](int i) { gemm->Multiply(x_, turned[i], add, out_); });
  }

  double Ours(int blocks_each, bool overlap, bool fused) {
    return MicrosecondsOf(copies_, [&](int i) {
      SkinnyProduct product = {
          .rows = x_.size(0),
          .inner = shape_.inner,
          .columns = shape_.columns,
          .x = x_.const_data_ptr(),
          .weight = weights_[i].const_data_ptr(),
          .out_type = out_.scalar_type() == at::kFloat ? CudaType::kFloat : CudaType::kBFloat16,
          .out = out_.data_ptr(),
          .overlap = overlap,
          .blocks_each = blocks_each,
          .stream = c10::cuda::getCurrentCUDAStream().stream()};
      if (shape_.onto) product.add = residual_.const_data_ptr();
      if (fused && shape_.normed) {
        product.norm_weight = norm_.const_data_ptr();
        product.eps = 1e-6f;
      }
      product.swiglu = fused && shape_.gated;
      LaunchSkinnyProduct(product);
    });
  }

  const Shape shape_;
  const int64_t bytes_;
  const int copies_;
  const at::Tensor weights_, norm_;
  at::Tensor x_, residual_, out_;
};

int64_t FreeBytes() {
  size_t free = 0, total = 0;
  TORCH_CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess, "the GPU does not say what is free");
  return static_cast<int64_t>(free);
}

double Milliseconds(const std::function<void()>& work) {
  const absl::Time start = absl::Now();
  work();
  return absl::ToDoubleMilliseconds(absl::Now() - start);
}

}  // namespace

void BenchSkinnyProducts() {
  if (!TakesSkinnyProducts()) {
    std::cout << "Products of few rows: this GPU has too little shared memory for ours\n";
    return;
  }
  std::cout
      << "Products of few rows, us and TB/s of weights: tuned cuBLASLt; ours with 1 and 2 blocks "
         "a\n"
         "multiprocessor; the same overlapped; overlapped with norm and SwiGLU (where there are)\n"
         "                          rows     cuBLASLt            1              2    overlap 1    "
         "  overlap 2        fused 1\n";
  CudaGemm gemm(at::Device(at::kCUDA, c10::cuda::current_device()), /*tuned=*/true);
  for (const Shape& shape : {Shape{"qkv", kHidden, 6144, false, true, false},
                             Shape{"o", kHidden, kHidden, true, false, false},
                             Shape{"gate_up", kHidden, 2 * kMlp, false, true, true},
                             Shape{"down", kMlp, kHidden, true, false, false},
                             Shape{"head", kHidden, kVocab, false, true, false}}) {
    ProductBench bench(shape);
    for (const int64_t rows : {1, 2, 4, 8, 16}) bench.Run(rows, &gemm);
  }
}

void BenchMappedMemory() {
  std::cout << "Memory of a cache, ms to give back and to take again\n"
            << "     GiB     take  release     take  free meanwhile (GiB)\n";
  const at::Device device(at::kCUDA, c10::cuda::current_device());
  for (const int64_t gib : {1, 16, 64, 96}) {
    if ((gib + 4) << 30 > FreeBytes()) continue;
    std::unique_ptr<MappedMemory> memory;
    const double first =
        Milliseconds([&] { memory = std::make_unique<MappedMemory>(gib << 30, device); });
    TORCH_CHECK(cudaMemset(memory->data(), 1, gib << 30) == cudaSuccess &&
                    cudaDeviceSynchronize() == cudaSuccess,
                "writing to mapped memory failed");
    const int64_t held = FreeBytes();
    const double release = Milliseconds([&] { memory->Release(); });
    const int64_t more = FreeBytes() - held;
    const double take = Milliseconds([&] { memory->Take(); });
    absl::PrintF("%8d %8.1f %8.1f %8.1f %8.2f\n", gib, first, release, take,
                 static_cast<double>(more) / (int64_t{1} << 30));
  }
}

}  // namespace tritonrl
