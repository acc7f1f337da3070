// The context that every layer gets besides its inputs: the choice of kernels, threads, GEMM and
// attention handles, and temporary memory.

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

// Options of computation on a GPU.
struct GpuOptions {
  bool autotune_gemm = false;  // see CudaGemm
  // Training passes run the decoder layers' GEMMs in FP8 (fp8.h). A CPU and GPUs without FP8 round
  // alike but gain no speed.
  bool fp8_projections = false;
  // Format of output gradients: E4M3 has one more mantissa bit, E5M2 a larger range.
  Fp8Format fp8_gradients = Fp8Format::kE4M3;
  bool fp8_fast_gradients = false;  // gradient GEMMs sum as the forward's do, see Fp8Scales::fast
  CudnnAttention::Options attention;
};

// Whether attention on `device` runs one call per sequence (CudnnAttention::PerSequence); false on
// a CPU.
bool AttentionPerSequence(at::Device device, const GpuOptions& options);

// Serves one device; the first calls of gemm() and attention() may come from any thread.
class LayerContext {
 public:
  // cpu_threads: 0 selects all hardware threads. force_aten: never use this repository's kernels,
  // on any device.
  explicit LayerContext(int cpu_threads, bool force_aten = false, const GpuOptions& gpu = {})
      : force_aten_(force_aten), gpu_(gpu), threads_(std::make_unique<CpuThreads>(cpu_threads)) {}

  // Whether the CPU kernels support this tensor: fp32 on the CPU. Other tensors on the CPU use
  // ATen.
  bool UseCpuKernels(const at::Tensor& x) const {
    return !force_aten_ && x.is_cpu() && x.scalar_type() == at::kFloat;
  }
  // Whether the kernels of model/cuda support this matrix: on a GPU, contiguous, fp32 or bf16, rows
  // of a multiple of 8 elements, memory aligned to 16 bytes. Other tensors on a GPU use ATen.
  bool UseCuda(const at::Tensor& x) const;
  // GEMMs on x's GPU; the first call creates the object.
  CudaGemm& gemm(const at::Tensor& x) const;
  const GpuOptions& gpu() const { return gpu_; }
  CudnnAttention& attention(const at::Tensor& x) const;
  const CpuKernels& kernels() const { return kernels_; }
  CpuThreads& threads() const { return *threads_; }
  // Allocator of tensors on the CPU.
  BufferPool& pool() const { return *pool_; }

  // Returns an uninitialised tensor on the device of `like`, with its type unless `dtype` is given.
  at::Tensor Empty(at::IntArrayRef shape, const at::Tensor& like) const {
    return Empty(shape, like, like.scalar_type());
  }
  at::Tensor Empty(at::IntArrayRef shape, const at::Tensor& like, at::ScalarType dtype) const;

  // Calls body(begin, end) for blocks of `block` rows on all threads. The blocks do not depend on
  // the number of threads.
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

// Describes x [T, C] (or T rows of `cols` elements in its memory) to a kernel launch on the current
// stream of x's device.
CudaRows CudaRowsOf(const at::Tensor& x, int64_t cols);
inline CudaRows CudaRowsOf(const at::Tensor& x) { return CudaRowsOf(x, x.size(1)); }

// Sets *amax to a zero, [1] int32 on the device of `like`. A kernel then raises it to the fp32 bits
// of the largest |x| of its result. Returns the address of its data; null if `amax` is null.
uint32_t* NewAmax(const at::Tensor& like, at::Tensor* amax);

// Copies x [T, C]. Like the two functions below, it uses the context's threads, because ATen's own
// threads would spin beside them.
at::Tensor CopyOf(const LayerContext& context, const at::Tensor& x);  // [T, C]
// Returns x[rows] [R, C]; rows: [R] int64.
at::Tensor GatherRows(const LayerContext& context, const at::Tensor& x, const at::Tensor& rows);
// Returns y [total, C] with y[rows] = x and zeros elsewhere; `rows` is in ascending order.
at::Tensor ScatterRows(const LayerContext& context, const at::Tensor& x, const at::Tensor& rows,
                       int64_t total);

// Converts half types to fp32, the type in which norms and softmax are computed; returns other
// types unchanged.
inline at::Tensor ToComputeType(const at::Tensor& x) {
  const bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  return half ? x.to(at::kFloat) : x;
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_LAYER_CONTEXT_H_
