#include <c10/util/Exception.h>

#include "model/cuda/chain_kernel.cuh"
#include "model/cuda/dispatch.cuh"
#include "model/cuda/product_chain.h"
#include "model/cuda/tensor_map.h"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;

constexpr int kMostBlocks = 1024;
constexpr int64_t kSquares = kMostChainRows * kMostBlocks;  // floats of one link

void Check(cudaError_t error) {
  TORCH_CHECK(error == cudaSuccess, "a chain of products: ", cudaGetErrorString(error));
}

int DeviceAttribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  Check(cudaGetDevice(&device));
  Check(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

void CheckLink(const ProductLink& link, const ProductLink* before) {
  TORCH_CHECK(TakesProductLink(link.inner, link.columns, link.swiglu), "a product over ",
              link.inner, " elements to ", link.columns,
              " columns: multiples of 512 and of 16 (32 with SwiGLU) are taken");
  TORCH_CHECK(!link.swiglu || link.add == nullptr, "a product with SwiGLU has no summand");
  TORCH_CHECK(link.norm_weight == nullptr ||
                  (before != nullptr && before->out == link.x && !before->swiglu),
              "what a link norms is what the link before has written");
}

CUtensorMap MapOf(const ProductLink& link) {
  CUtensorMap map;
  const CUresult result = EncodeBoxes(StageBoxes(link.weight, link.columns, link.inner), &map);
  TORCH_CHECK(result == CUDA_SUCCESS, "a chain of products: no tensor map of ", link.columns, " x ",
              link.inner, " weights (error ", static_cast<int>(result), ")");
  return map;
}

// In every launch as many: they count each other, from launch to launch, in one place.
int Blocks() {
  return DeviceAttribute(cudaDevAttrMultiProcessorCount) / kChainBlocks * kChainBlocks;
}

// How kernels of all numbers of groups are launched.
struct LaunchSettings {
  cudaLaunchAttribute attributes[3] = {};
  cudaLaunchConfig_t config = {};

  explicit LaunchSettings(int blocks) {
    // Of two chains at the same time on one GPU, each could hold what the other's blocks wait for.
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {kChainBlocks, 1, 1};
    attributes[2].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[2].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kChainThreads);
    config.dynamicSmemBytes = kChainSharedBytes;
    config.attrs = attributes;
    config.numAttrs = 2;
  }
  LaunchSettings(const LaunchSettings&) = delete;
  LaunchSettings& operator=(const LaunchSettings&) = delete;
};

template <int kGroups>
void AllowSharedBytes() {
  Check(cudaFuncSetAttribute(ChainKernel<kGroups>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kChainSharedBytes));
}

// Whether all blocks of a launch are on the GPU together, as they wait for each other; not on one
// that is shared out, or whose multiprocessors do not pair up.
template <int kGroups>
bool FitsTogether() {
  AllowSharedBytes<kGroups>();
  const int blocks = Blocks();
  LaunchSettings settings(blocks);
  int clusters = 0;
  Check(cudaOccupancyMaxActiveClusters(&clusters, ChainKernel<kGroups>, &settings.config));
  return clusters * kChainBlocks >= blocks;
}

template <int kGroups>
void Launch(const ProductChain& at) {
  const int blocks = Blocks();
  ChainArguments arguments = {.rows = static_cast<int>(at.rows),
                              .eps = at.eps,
                              .count = static_cast<int>(at.links.size()),
                              .arrivals = static_cast<uint64_t*>(at.workspace)};
  // Behind the counter, which has a line of its own; squares of a link are read by the next one
  // alone, while it may write its own.
  float* const squares = static_cast<float*>(at.workspace) + 32;
  for (size_t i = 0; i < at.links.size(); ++i) {
    const ProductLink& link = at.links[i];
    CheckLink(link, i == 0 ? nullptr : &at.links[i - 1]);
    const bool normed = i + 1 < at.links.size() && at.links[i + 1].norm_weight != nullptr;
    LinkArguments& to = arguments.links[i];
    to = {.weights = MapOf(link),
          .x = static_cast<const Element*>(link.x),
          .norm_weight = static_cast<const Element*>(link.norm_weight),
          .add = static_cast<const Element*>(link.add),
          .out = static_cast<Element*>(link.out),
          .squares_in = squares + (i + 1) % 2 * kSquares,
          .squares_out = normed ? squares + i % 2 * kSquares : nullptr,
          .inner = static_cast<int>(link.inner),
          .columns = static_cast<int>(link.swiglu ? link.columns / 2 : link.columns),
          .swiglu = link.swiglu};
    DivideUnits(blocks / kChainBlocks, &to);
  }
  AllowSharedBytes<kGroups>();
  LaunchSettings settings(blocks);
  settings.config.stream = StreamOf(at.stream);
  if (at.overlap) settings.config.numAttrs = 3;
  Check(cudaLaunchKernelEx(&settings.config, ChainKernel<kGroups>, arguments));
}

}  // namespace

bool TakesProductChains() {
  return DeviceAttribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         DeviceAttribute(cudaDevAttrMultiProcessorCount) <= kMostBlocks &&
         DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= kChainSharedBytes &&
         FitsTogether<1>() && FitsTogether<2>() && FitsTogether<3>() && FitsTogether<4>();
}

bool TakesProductLink(int64_t inner, int64_t columns, bool swiglu) {
  return inner > 0 && inner % kChainSpan == 0 && columns > 0 && columns % (swiglu ? 32 : 16) == 0;
}

int64_t ProductChainBytes() { return static_cast<int64_t>(sizeof(float)) * (32 + 2 * kSquares); }

void LaunchProductChain(const ProductChain& at) {
  TORCH_CHECK(at.rows <= kMostChainRows, "a chain of products of ", at.rows, " rows: at most ",
              kMostChainRows, " are taken");
  TORCH_CHECK(!at.links.empty() && at.links.size() <= kMostLinks, "a chain of ", at.links.size(),
              " products: 1 to ", kMostLinks, " are taken");
  if (at.rows == 0) return;
  if (at.rows <= 8) return Launch<1>(at);
  if (at.rows <= 16) return Launch<2>(at);
  if (at.rows <= 24) return Launch<3>(at);
  Launch<4>(at);
}

}  // namespace tritonrl
