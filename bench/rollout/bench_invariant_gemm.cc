// Products whose way does not depend on their rows, and products of 8-bit weights, beside tuned
// ones of bf16, in the shapes of Qwen3-8B.

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/rollout/kernel_timer.h"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/gemm/gemm.h"

namespace tritonrl {
namespace {

const std::vector<int64_t> kRows = {16, 64, 256, 512, 2048, 8192};
constexpr int kCopies = 4;  // so that no part of a matrix is in the cache from the call before

at::Tensor Numbers(at::IntArrayRef shape) {
  return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
}

struct Fp8Copy {
  at::Tensor numbers, scales;

  explicit Fp8Copy(const at::Tensor& x)
      : numbers(at::empty(x.sizes(), x.options().dtype(at::kFloat8_e4m3fn))),
        scales(at::empty({x.size(0)}, x.options().dtype(at::kFloat))) {
    Make(x);
  }
  void Make(const at::Tensor& x) const {
    LaunchQuantizeRows({.rows = x.size(0),
                        .cols = x.size(1),
                        .type = CudaType::kBFloat16,
                        .stream = c10::cuda::getCurrentCUDAStream().stream()},
                       x.const_data_ptr(), numbers.data_ptr(), scales.data_ptr<float>());
  }
};

void BenchShape(const char* name, int64_t inner, int64_t columns, bool adds) {
  const at::Device device(at::kCUDA, c10::cuda::current_device());
  std::vector<at::Tensor> weights, transposed, copies;
  std::vector<Fp8Copy> fp8;
  for (int i = 0; i < kCopies; ++i) {
    weights.push_back(Numbers({columns, inner}));
    transposed.push_back(weights.back().t());
    fp8.emplace_back(weights.back());
    copies.push_back(fp8.back().numbers.t());
  }
  const at::Tensor all = Numbers({kRows.back(), inner});
  const at::Tensor all_add = Numbers({kRows.back(), columns});
  const at::Tensor all_out = at::empty({kRows.back(), columns}, all.options());
  CudaGemm tuned(device, /*autotune=*/true), fixed(device, true), of_fp8(device, true);
  fixed.PinAlgorithm(all, transposed[0], adds ? &all_add : nullptr, all_out);
  for (const int64_t rows : kRows) {
    const at::Tensor x = all.narrow(0, 0, rows), out = all_out.narrow(0, 0, rows);
    const at::Tensor summand = all_add.narrow(0, 0, rows);
    const at::Tensor* add = adds ? &summand : nullptr;
    const Fp8Copy x8(x);
    const auto scales_of = [&](const Fp8Copy& copy) {
      return Fp8Scales{.a = x8.scales.const_data_ptr<float>(),
                       .b = copy.scales.const_data_ptr<float>(),
                       .per_row = true};
    };
    const Fp8Scales scales = scales_of(fp8[0]);
    tuned.Autotune(x, transposed, add, out);
    of_fp8.Autotune(x8.numbers, copies, add, out, &scales);
    const double bf16 =
        MicrosecondsOf(kCopies, [&](int i) { tuned.Multiply(x, transposed[i], add, out); });
    const double one_way =
        MicrosecondsOf(kCopies, [&](int i) { fixed.Multiply(x, transposed[i], add, out); });
    const double rounding = MicrosecondsOf(kCopies, [&](int) { x8.Make(x); });
    const double eight = MicrosecondsOf(kCopies, [&](int i) {
      const Fp8Scales own_scales = scales_of(fp8[i]);
      of_fp8.Multiply(x8.numbers, copies[i], add, out, &own_scales);
    });
    absl::PrintF("%-8s %6d %9.1f %9.1f %9.1f %9.1f\n", name, rows, bf16, one_way, eight, rounding);
  }
}

}  // namespace

void BenchExactAndFp8Products() {
  std::cout
      << "Products, us: bf16 tuned, in the one way of batch-invariant steps, of 8-bit numbers,\n"
      << "and the rounding of what these are multiplied with\n"
      << "           rows      bf16     fixed       fp8  rounding\n";
  BenchShape("qkv", 4096, 6144, false);
  BenchShape("o", 4096, 4096, true);
  BenchShape("gate_up", 4096, 24576, false);
  BenchShape("down", 12288, 4096, true);
}

}  // namespace tritonrl
