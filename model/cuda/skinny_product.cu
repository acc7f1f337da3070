#include <c10/util/Exception.h>

#include <algorithm>

#include "model/cuda/dispatch.cuh"
#include "model/cuda/skinny_kernel.cuh"
#include "model/cuda/skinny_product.h"

namespace tritonrl {
namespace {

constexpr int kMostTiles = 3;

int64_t Divided(int64_t n, int64_t by) { return (n + by - 1) / by; }

void Check(cudaError_t error) {
  TORCH_CHECK(error == cudaSuccess, "a product of few rows: ", cudaGetErrorString(error));
}

int DeviceAttribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  Check(cudaGetDevice(&device));
  Check(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

struct Variant {
  void (*kernel)(SkinnyArguments);
  int shared_bytes;
};

template <int kTiles, int kGroups>
Variant VariantFor(bool norm) {
  return {norm ? SkinnyKernel<kTiles, kGroups, true> : SkinnyKernel<kTiles, kGroups, false>,
          SkinnySharedBytes<kTiles, kGroups>()};
}

Variant VariantFor(int tiles, int64_t rows, bool norm) {
  if (rows <= 8) {
    return tiles == 1   ? VariantFor<1, 1>(norm)
           : tiles == 2 ? VariantFor<2, 1>(norm)
                        : VariantFor<3, 1>(norm);
  }
  return tiles == 1   ? VariantFor<1, 2>(norm)
         : tiles == 2 ? VariantFor<2, 2>(norm)
                      : VariantFor<3, 2>(norm);
}

void CheckSizes(const SkinnyProduct& at) {
  TORCH_CHECK(at.rows <= kMostSkinnyRows, "a product of few rows of ", at.rows, ": at most ",
              kMostSkinnyRows, " are taken");
  TORCH_CHECK(at.inner > 0 && at.inner % 8 == 0, "a product of few rows over ", at.inner,
              " elements: a multiple of 8 is taken");
  const bool wide = at.out_type == CudaType::kFloat;
  TORCH_CHECK(!at.swiglu || (at.columns % 2 == 0 && at.add == nullptr && !wide),
              "a product with SwiGLU has an even number of columns, no summand and is bf16");
  TORCH_CHECK(at.add == nullptr || !wide, "a product of few rows with a summand is bf16");
  TORCH_CHECK(at.blocks_each == 1 || at.blocks_each == 2, "blocks_each of ", at.blocks_each,
              ": 1 or 2");
}

SkinnyArguments ArgumentsOf(const SkinnyProduct& at, const SkinnyTiling& tiling) {
  using Element = __nv_bfloat16;
  return {.rows = static_cast<int>(at.rows),
          .inner = at.inner,
          .columns = at.swiglu ? at.columns / 2 : at.columns,
          .x = static_cast<const Element*>(at.x),
          .weight = static_cast<const Element*>(at.weight),
          .norm_weight = static_cast<const Element*>(at.norm_weight),
          .eps = at.eps,
          .add = static_cast<const Element*>(at.add),
          .out = at.out,
          .wide = at.out_type == CudaType::kFloat,
          .swiglu = at.swiglu,
          .passes = static_cast<int>(tiling.passes),
          .spans = static_cast<int>(Divided(at.inner, kSkinnySpan * kSkinnyWarps))};
}

}  // namespace

bool TakesSkinnyProducts() {
  return DeviceAttribute(cudaDevAttrComputeCapabilityMajor) >= 8 &&
         DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >=
             std::max(SkinnySharedBytes<kMostTiles, 1>(), SkinnySharedBytes<kMostTiles, 2>());
}

SkinnyTiling TileSkinnyProduct(int64_t columns, bool swiglu, int rooms) {
  if (swiglu) return {2, Divided(columns / 2, 16)};
  SkinnyTiling best;
  int64_t least = 0;
  for (int tiles = 1; tiles <= kMostTiles; ++tiles) {
    const int64_t passes = Divided(Divided(columns, 16), tiles);
    const int64_t busiest = Divided(passes, rooms) * tiles;
    if (tiles > 1 && busiest > least) continue;
    least = busiest;
    best = {tiles, passes};
  }
  return best;
}

void LaunchSkinnyProduct(const SkinnyProduct& at) {
  CheckSizes(at);
  if (at.rows == 0 || at.columns == 0) return;
  const int rooms = DeviceAttribute(cudaDevAttrMultiProcessorCount) * at.blocks_each;
  const SkinnyTiling tiling = TileSkinnyProduct(at.columns, at.swiglu, rooms);
  const Variant variant = VariantFor(tiling.tiles, at.rows, at.norm_weight != nullptr);
  Check(cudaFuncSetAttribute(variant.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             variant.shared_bytes));
  // Else the GPU may leave room for one block, and the next product's would wait for its end.
  Check(cudaFuncSetAttribute(variant.kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared));
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(std::min<int64_t>(tiling.passes, rooms)));
  config.blockDim = dim3(kSkinnyThreads);
  config.dynamicSmemBytes = variant.shared_bytes;
  config.stream = StreamOf(at.stream);
  config.attrs = &overlap;
  config.numAttrs = at.overlap && DeviceAttribute(cudaDevAttrComputeCapabilityMajor) >= 9 ? 1 : 0;
  Check(cudaLaunchKernelEx(&config, variant.kernel, ArgumentsOf(at, tiling)));
}

}  // namespace tritonrl
