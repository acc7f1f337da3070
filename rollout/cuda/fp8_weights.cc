#include "rollout/cuda/fp8_weights.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

#include "model/cuda/fused/kernels.h"

namespace tritonrl {
namespace {

// cuBLASLt needs sizes that are multiples of this number.
constexpr int64_t kUnit = 16;

int64_t RoundUp(int64_t rows) { return (rows + kUnit - 1) / kUnit * kUnit; }

// The first `rows` rows at x's address; they may extend into the memory after x.
at::Tensor RowsOf(const at::Tensor& x, int64_t rows) {
  return x.as_strided({rows, x.size(1)}, x.strides());
}

int64_t LargestInner(const ModelConfig& config) {
  return std::max({config.hidden_size, config.query_size(), config.intermediate_size});
}

int64_t QkvSize(const ModelConfig& config) { return config.query_size() + 2 * config.kv_size(); }

CudaRows Rows(int64_t rows, int64_t cols) {
  return {.rows = rows,
          .cols = cols,
          .type = CudaType::kBFloat16,
          .stream = c10::cuda::getCurrentCUDAStream().stream()};
}

}  // namespace

bool Fp8Weights::Supports(const ModelConfig& config) {
  return config.hidden_size % kUnit == 0 && config.query_size() % kUnit == 0 &&
         config.kv_size() % kUnit == 0 && config.intermediate_size % kUnit == 0;
}

int64_t Fp8Weights::Bytes(const ModelConfig& config, int64_t max_rows) {
  const int64_t outputs = QkvSize(config) + 2 * config.hidden_size + 2 * config.intermediate_size;
  const int64_t elements =
      config.hidden_size * (QkvSize(config) + config.query_size() + 3 * config.intermediate_size);
  return config.num_layers * (elements + 4 * outputs) + max_rows * (LargestInner(config) + 4);
}

Fp8Weights::Fp8Weights(const ModelConfig& config, const std::vector<DecoderLayerParameters>& layers,
                       int64_t max_rows) {
  const at::TensorOptions options = layers.front().o.options();
  for (const DecoderLayerParameters& layer : layers) {
    for (const at::Tensor& from : {layer.qkv, layer.o, layer.gate_up, layer.down}) {
      copies_[from.const_data_ptr()] = {from,
                                        at::empty(from.sizes(), options.dtype(at::kFloat8_e4m3fn)),
                                        at::empty({from.size(0)}, options.dtype(at::kFloat))};
    }
  }
  // Zeros, so that padding rows never hold NaN.
  numbers_ = at::zeros({max_rows * LargestInner(config)}, options.dtype(at::kByte))
                 .view(at::kFloat8_e4m3fn);
  scales_ = at::zeros({max_rows}, options.dtype(at::kFloat));
}

void Fp8Weights::QuantizeWeights() {
  for (const auto& [address, copy] : copies_) {
    LaunchQuantizeRows(Rows(copy.from.size(0), copy.from.size(1)), address, copy.numbers.data_ptr(),
                       copy.scales.data_ptr<float>());
  }
}

at::Tensor Fp8Weights::Numbers(int64_t rows, int64_t inner) const {
  return numbers_.narrow(0, 0, rows * inner).view({rows, inner});
}

void Fp8Weights::Quantize(const at::Tensor& x) {
  LaunchQuantizeRows(Rows(x.size(0), x.size(1)), x.const_data_ptr(), numbers_.data_ptr(),
                     scales_.data_ptr<float>());
}

void Fp8Weights::QuantizeNormed(const at::Tensor& x, const at::Tensor& norm, float eps) {
  LaunchNormQuantizeRows(Rows(x.size(0), x.size(1)), x.const_data_ptr(), norm.const_data_ptr(), eps,
                         numbers_.data_ptr(), scales_.data_ptr<float>());
}

void Fp8Weights::QuantizeSwiGlu(const at::Tensor& gate_up) {
  LaunchSwigluQuantizeRows(Rows(gate_up.size(0), gate_up.size(1) / 2), gate_up.const_data_ptr(),
                           numbers_.data_ptr(), scales_.data_ptr<float>());
}

void Fp8Weights::Multiply(const at::Tensor& weight, const at::Tensor* add, const at::Tensor& out,
                          CudaGemm* gemm) {
  const Matrix& copy = CopyOf(weight);
  const int64_t rows = RoundUp(out.size(0));
  const at::Tensor addend = add == nullptr ? at::Tensor() : RowsOf(*add, rows);
  const Fp8Scales scales = ScalesOf(copy);
  gemm->Multiply(Numbers(rows, weight.size(1)), copy.numbers.t(),
                 add == nullptr ? nullptr : &addend, RowsOf(out, rows), &scales);
}

void Fp8Weights::Autotune(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                          const at::Tensor* add, const at::Tensor& out, CudaGemm* gemm) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& weight : weights) copies.push_back(CopyOf(weight).numbers.t());
  const int64_t rows = RoundUp(x.size(0));
  const at::Tensor addend = add == nullptr ? at::Tensor() : RowsOf(*add, rows);
  const Fp8Scales scales = ScalesOf(CopyOf(weights.front()));
  gemm->Autotune(Numbers(rows, x.size(1)), copies, add == nullptr ? nullptr : &addend,
                 RowsOf(out, rows), &scales);
}

void Fp8Weights::PinAlgorithm(const at::Tensor& weight, const at::Tensor* add,
                              const at::Tensor& out, CudaGemm* gemm) {
  const Matrix& copy = CopyOf(weight);
  const Fp8Scales scales = ScalesOf(copy);
  gemm->PinAlgorithm(Numbers(out.size(0), weight.size(1)), copy.numbers.t(), add, out, &scales);
}

}  // namespace tritonrl
