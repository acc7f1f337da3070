// What every layer needs besides its inputs: where to run and where temporary memory comes from.

#ifndef TRITONRL_MODEL_LAYERS_LAYER_CONTEXT_H_
#define TRITONRL_MODEL_LAYERS_LAYER_CONTEXT_H_

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "model/cpu/buffer_pool.h"
#include "model/cpu/kernels.h"
#include "model/cpu/threads.h"
#include "model/cuda/attention/cudnn_attention.h"
#include "model/cuda/common/fp8_format.h"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/gemm/gemm.h"

namespace tritonrl {

// How a GPU computes.
struct GpuOptions {
  bool autotune_gemm = false;  // see CudaGemm
  // Training passes run the decoder layers' GEMMs in FP8 (fp8.h). On a CPU and on GPUs without FP8
  // the rounding is the same and there is no speed-up.
  bool fp8_projections = false;
  // Format of output gradients: E4M3 has one more mantissa bit, E5M2 a larger range.
  Fp8Format fp8_gradients = Fp8Format::kE4M3;
  bool fp8_fast_gradients = false;  // their sums as fast as the forward's, see Fp8Scales
  CudnnAttention::Options attention;
};

// CudnnAttention::PerSequence; false on a CPU.
bool AttentionPerSequence(at::Device device, const GpuOptions& options);

class LayerContext {
 public:
  // cpu_threads: 0 means all hardware threads. force_aten: never use the kernels of this
  // repository, on any device.
  explicit LayerContext(int cpu_threads, bool force_aten = false, const GpuOptions& gpu = {})
      : force_aten_(force_aten), gpu_(gpu), threads_(std::make_unique<CpuThreads>(cpu_threads)) {}

  // Whether the CPU kernels take this tensor: fp32 on the CPU. Everything else goes through ATen.
  bool UseCpuKernels(const at::Tensor& x) const {
    return !force_aten_ && x.is_cpu() && x.scalar_type() == at::kFloat;
  }
  // Whether the kernels of model/cuda take this matrix: on a GPU, contiguous, fp32 or bf16, rows of
  // a multiple of 8 elements that begin at multiples of 16 bytes. Everything else goes through
  // ATen.
  bool UseCuda(const at::Tensor& x) const;
  // GEMMs on x's GPU, created at the first call.
  CudaGemm& gemm(const at::Tensor& x) const;
  const GpuOptions& gpu() const { return gpu_; }
  CudnnAttention& attention(const at::Tensor& x) const;
  const CpuKernels& kernels() const { return kernels_; }
  CpuThreads& threads() const { return *threads_; }
  // Memory of tensors on the CPU.
  BufferPool& pool() const { return *pool_; }

  // An uninitialised tensor with the device and type of `like` (or another type).
  at::Tensor Empty(at::IntArrayRef shape, const at::Tensor& like) const {
    return Empty(shape, like, like.scalar_type());
  }
  at::Tensor Empty(at::IntArrayRef shape, const at::Tensor& like, at::ScalarType dtype) const;

  // Calls body(begin, end) for blocks of `block` rows, spread over the threads. The blocks do not
  // depend on the number of threads.
  template <typename Body>
  void ForRowBlocks(int64_t rows, int64_t block, const Body& body) const {
    threads_->ParallelFor((rows + block - 1) / block,
                          [&](int64_t i) { body(i * block, std::min(rows, (i + 1) * block)); });
  }

 private:
  bool force_aten_;
  GpuOptions gpu_;
  const CpuKernels& kernels_ = BestCpuKernels();
  std::unique_ptr<CpuThreads> threads_;
  mutable std::once_flag gemm_once_;
  mutable std::unique_ptr<CudaGemm> gemm_;
  mutable std::once_flag attention_once_;
  mutable std::unique_ptr<CudnnAttention> attention_;
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

// x [T, C] (or its first T rows of `cols` elements) for a kernel launch on the current stream of
// x's device.
CudaRows CudaRowsOf(const at::Tensor& x, int64_t cols);
inline CudaRows CudaRowsOf(const at::Tensor& x) { return CudaRowsOf(x, x.size(1)); }

// *amax becomes a zero on the device of `like`, [1] int32, for a kernel that raises it to the bits
// of the largest |x| (in fp32) of its result. Returns its memory; null if `amax` is null.
uint32_t* NewAmax(const at::Tensor& like, at::Tensor* amax);

// Row copies on the context's threads: ATen's own threads would spin beside them.
at::Tensor CopyOf(const LayerContext& context, const at::Tensor& x);  // [T, C]
// rows: [R] int64. Returns x[rows] [R, C].
at::Tensor GatherRows(const LayerContext& context, const at::Tensor& x, const at::Tensor& rows);
// Returns y [total, C] with y[rows] = x, zero elsewhere; rows rise.
at::Tensor ScatterRows(const LayerContext& context, const at::Tensor& x, const at::Tensor& rows,
                       int64_t total);

// fp32 for half types, unchanged otherwise: the type in which norms and softmax are computed.
inline at::Tensor ToComputeType(const at::Tensor& x) {
  const bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  return half ? x.to(at::kFloat) : x;
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_LAYER_CONTEXT_H_
