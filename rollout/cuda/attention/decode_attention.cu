#include <c10/util/Exception.h>

#include <algorithm>

#include "model/cuda/common/driver.h"
#include "model/cuda/fused/dispatch.cuh"
#include "rollout/cuda/attention/decode_attention.h"
#include "rollout/cuda/attention/decode_kernel.cuh"

namespace tritonrl {
namespace {

using decode::Call;

// Bytes of a warp's ring. The deep ring has more bytes in flight; the shallow ring leaves room for
// two blocks where shared memory is small.
constexpr int kDeepRing = 24576, kShallowRing = 16384;
constexpr int kBlocksEach = 2;  // maximum number of blocks per multiprocessor

constexpr float kLog2E = 1.4426950408889634f;

struct Gpu {
  int major = 0, multiprocessors = 0, shared_bytes = 0, reserved_bytes = 0;
};

cudaError_t QueryGpu(Gpu* gpu) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  const auto ask = [&](cudaDeviceAttr what, int* value) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, what, device);
  };
  ask(cudaDevAttrComputeCapabilityMajor, &gpu->major);
  ask(cudaDevAttrMultiProcessorCount, &gpu->multiprocessors);
  ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &gpu->shared_bytes);
  ask(cudaDevAttrReservedSharedMemoryPerBlock, &gpu->reserved_bytes);
  return error;
}

bool UsesBoxes(const DecodeAttention& at, const Gpu& gpu) {
  return gpu.major >= 9 && !at.threads_copy;
}

CUtensorMap MapOf(const TensorMapDesc& boxes) {
  CUtensorMap map;
  const CUresult result = EncodeTensorMap(boxes, &map);
  TORCH_CHECK(result == CUDA_SUCCESS, "attention of one token: no tensor map of the cache (error ",
              static_cast<int>(result), ")");
  return map;
}

template <typename Cached, int kDim, int kRing>
cudaError_t Run(const DecodeAttention& at, const Gpu& gpu, const Call& call) {
  constexpr int kStages = kRing / (2 * decode::PageFormat<Cached, kDim>::kBytes);
  const auto kernel = UsesBoxes(at, gpu) ? decode::DecodeKernel<Cached, kDim, kStages, true>
                                         : decode::DecodeKernel<Cached, kDim, kStages, false>;
  const int bytes = decode::Memory<Cached, kDim, kStages>::kBytes;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const int fit = std::max(gpu.shared_bytes / (bytes + gpu.reserved_bytes), 1);
  const int64_t units = int64_t{at.max_tiles} * call.key_heads * call.groups;
  const int64_t blocks = std::min<int64_t>(units, std::min(fit, kBlocksEach) * gpu.multiprocessors);
  return LaunchWithPdl(at.overlap, kernel, dim3(static_cast<unsigned>(blocks)),
                       dim3(decode::kWarps * 32), bytes, StreamOf(at.stream), call);
}

template <typename Cached, int kDim>
cudaError_t Run(const DecodeAttention& at, const Gpu& gpu, Call call) {
  if (UsesBoxes(at, gpu)) {
    using Format = decode::PageFormat<Cached, kDim>;
    call.key_boxes = MapOf(Format::Boxes(at.keys, call.key_heads));
    call.value_boxes = MapOf(Format::Boxes(at.values, call.key_heads));
  }
  constexpr int kStages = kDeepRing / (2 * decode::PageFormat<Cached, kDim>::kBytes);
  const int deep = decode::Memory<Cached, kDim, kStages>::kBytes + gpu.reserved_bytes;
  return kBlocksEach * deep <= gpu.shared_bytes ? Run<Cached, kDim, kDeepRing>(at, gpu, call)
                                                : Run<Cached, kDim, kShallowRing>(at, gpu, call);
}

template <typename Cached>
cudaError_t RunDim(const DecodeAttention& at, const Gpu& gpu, const Call& call) {
  return at.shape.head_dim == 64 ? Run<Cached, 64>(at, gpu, call) : Run<Cached, 128>(at, gpu, call);
}

}  // namespace

void LaunchDecodeTiles(const DecodeAttention& at) {
  if (at.max_tiles == 0) return;
  const int each = at.shape.query_heads / at.shape.key_heads;
  const int groups = (each + kGroupColumns - 1) / kGroupColumns;
  const Call call = {.queries = static_cast<const __nv_bfloat16*>(at.queries),
                     .keys = at.keys,
                     .values = at.values,
                     .page_table = at.page_table,
                     .tiles = at.tiles,
                     .rows = at.rows,
                     .used_tiles = at.used_tiles,
                     .out = static_cast<__nv_bfloat16*>(at.out),
                     .parts = static_cast<__nv_bfloat16*>(at.parts),
                     .lses = at.lses,
                     .arrived = at.arrived,
                     .query_heads = at.shape.query_heads,
                     .key_heads = at.shape.key_heads,
                     .groups = groups,
                     .group = (each + groups - 1) / groups,
                     .scale_log2 = at.scale * kLog2E};
  Gpu gpu;
  cudaError_t error = QueryGpu(&gpu);
  if (error == cudaSuccess) {
    error = at.shape.type == CacheType::kE4M3 ? RunDim<__nv_fp8_e4m3>(at, gpu, call)
                                              : RunDim<__nv_bfloat16>(at, gpu, call);
  }
  TORCH_CHECK(error == cudaSuccess, "attention of one token: ", cudaGetErrorString(error));
}

}  // namespace tritonrl
