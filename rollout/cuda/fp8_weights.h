// FP8 copies of the decoder layers' weights, and GEMMs with them. They halve the weight bytes that
// a step of few sequences reads. Head and embedding are not quantized.

#ifndef TRITONRL_ROLLOUT_CUDA_FP8_WEIGHTS_H_
#define TRITONRL_ROLLOUT_CUDA_FP8_WEIGHTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "model/cuda/gemm/gemm.h"
#include "model/layers/decoder_layer.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// Weights and inputs in E4M3. Each row of a weight matrix (an output) and each row of the input has
// a scale, which is a power of two; inputs are quantized for each GEMM. A row of a result depends
// on no other row.
class Fp8Weights {
 public:
  // Whether cuBLASLt supports these sizes: all are multiples of 16.
  static bool Supports(const ModelConfig& config);
  // Bytes of GPU memory of an object, without the bf16 weights.
  static int64_t Bytes(const ModelConfig& config, int64_t max_rows);

  // Allocates copies of qkv, o, gate_up and down of all `layers`, which must outlive the object,
  // and inputs of at most max_rows rows (a multiple of 16). Throws c10::Error if memory is short.
  Fp8Weights(const ModelConfig& config, const std::vector<DecoderLayerParameters>& layers,
             int64_t max_rows);

  // Quantizes the current weights, on the current stream.
  void QuantizeWeights();

  // Quantize the input of the next Multiply, on the current stream: x [rows, K] bf16; norm(x); or
  // SwiGLU of gate_up [rows, 2 K].
  void Quantize(const at::Tensor& x);
  void QuantizeNormed(const at::Tensor& x, const at::Tensor& norm, float eps);
  void QuantizeSwiGlu(const at::Tensor& gate_up);
  // out = input weight^T (+ add). The memory of out and add must extend to the next multiple of 16
  // rows; those padding rows of out are written too.
  void Multiply(const at::Tensor& weight, const at::Tensor* add, const at::Tensor& out,
                CudaGemm* gemm);

  // CudaGemm's Autotune and PinAlgorithm for these GEMMs; add and out as above.
  void Autotune(const at::Tensor& x, const std::vector<at::Tensor>& weights, const at::Tensor* add,
                const at::Tensor& out, CudaGemm* gemm);
  void PinAlgorithm(const at::Tensor& weight, const at::Tensor* add, const at::Tensor& out,
                    CudaGemm* gemm);

 private:
  struct Matrix {
    at::Tensor from;     // [N, K] bf16
    at::Tensor numbers;  // [N, K] e4m3
    at::Tensor scales;   // [N] fp32
  };

  const Matrix& CopyOf(const at::Tensor& weight) const {
    return copies_.at(weight.const_data_ptr());
  }
  // The scales for a GEMM of `numbers_` with this copy.
  Fp8Scales ScalesOf(const Matrix& copy) const {
    return {.a = scales_.const_data_ptr<float>(),
            .b = copy.scales.const_data_ptr<float>(),
            .per_row = true};
  }
  // The quantized input as [rows, inner].
  at::Tensor Numbers(int64_t rows, int64_t inner) const;

  std::map<const void*, Matrix> copies_;  // by the address of the bf16 matrix
  at::Tensor numbers_;                    // [max_rows * the largest K] e4m3
  at::Tensor scales_;                     // [max_rows] fp32
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_FP8_WEIGHTS_H_
