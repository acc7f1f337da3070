// 8-bit copies of the layers' matrices, and products of them: half the bytes that a step of few
// sequences reads. Head and embedding have none.
//
// E4M3, with a power of two for each row of a matrix (an output) and for each row of what it is
// multiplied with, found anew each time: a row of a result depends on no other row.
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

class Fp8Weights {
 public:
  // Whether matrices of these sizes can be multiplied so: all are multiples of 16.
  static bool Supports(const ModelConfig& config);
  // Bytes that an object takes, beside the weights themselves.
  static int64_t Bytes(const ModelConfig& config, int64_t max_rows);

  // Room for copies of qkv, o, gate_up and down of all `layers`, whose memory must outlive it, and
  // for products of at most max_rows rows (a multiple of 16). Throws c10::Error without the memory.
  Fp8Weights(const ModelConfig& config, const std::vector<DecoderLayerParameters>& layers,
             int64_t max_rows);

  // Makes the copies from what the weights are now, on the current stream.
  void QuantizeWeights();

  // What is multiplied next, on the current stream: x [rows, K] bf16; norm(x); or SwiGLU of
  // gate_up [rows, 2 K].
  void Quantize(const at::Tensor& x);
  void QuantizeNormed(const at::Tensor& x, const at::Tensor& norm, float eps);
  void QuantizeSwiGlu(const at::Tensor& gate_up);
  // out = that times weight^T (+ add). out and add: the first rows of memory for at least so many
  // rounded up to a multiple of 16; out's rows behind them are written too.
  void Multiply(const at::Tensor& weight, const at::Tensor* add, const at::Tensor& out,
                CudaGemm* gemm);

  // CudaGemm's Autotune and PinAlgorithm for such products of x; add and out as above.
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
  // For products of `numbers_` with this copy.
  Fp8Scales ScalesOf(const Matrix& copy) const {
    return {.a = scales_.const_data_ptr<float>(),
            .b = copy.scales.const_data_ptr<float>(),
            .per_row = true};
  }
  // Memory for so many rows of numbers.
  at::Tensor Numbers(int64_t rows, int64_t inner) const;

  std::map<const void*, Matrix> copies_;  // by what they are copies of
  at::Tensor numbers_;                    // [max_rows * the largest K] e4m3
  at::Tensor scales_;                     // [max_rows] fp32
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_FP8_WEIGHTS_H_
