#include <c10/util/Exception.h>

#include "model/cuda/common/driver.h"
#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/gemm/megakernel.cuh"
#include "model/cuda/gemm/megakernel.h"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;

constexpr int kMaxMegakernelBlocks = 1024;
// Floats of squares_out of one GEMM.
constexpr int64_t kSquaresPerGemm = kMaxMegakernelRows * kMaxMegakernelBlocks;

void Check(cudaError_t error) {
  TORCH_CHECK(error == cudaSuccess, "GEMM megakernel: ", cudaGetErrorString(error));
}

int DeviceAttribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  Check(cudaGetDevice(&device));
  Check(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

void CheckGemm(const MegakernelGemm& gemm, const MegakernelGemm* before) {
  TORCH_CHECK(SupportsMegakernelGemm(gemm.inner, gemm.columns, gemm.swiglu), "a GEMM over ",
              gemm.inner, " elements to ", gemm.columns,
              " columns: multiples of 512 and of 16 (32 with SwiGLU) are taken");
  TORCH_CHECK(!gemm.swiglu || gemm.add == nullptr, "a GEMM with SwiGLU takes no addend");
  TORCH_CHECK(gemm.norm_weight == nullptr ||
                  (before != nullptr && before->out == gemm.x && !before->swiglu),
              "a GEMM can only normalize the output of the GEMM before it");
}

CUtensorMap TensorMapOf(const MegakernelGemm& gemm) {
  CUtensorMap map;
  const CUresult result =
      EncodeTensorMap(WeightTensorMap(gemm.weight, gemm.columns, gemm.inner), &map);
  TORCH_CHECK(result == CUDA_SUCCESS, "GEMM megakernel: no tensor map of ", gemm.columns, " x ",
              gemm.inner, " weights (error ", static_cast<int>(result), ")");
  return map;
}

// Returns the number of blocks. It must be the same in every launch, because grid_arrivals counts
// blocks across launches.
int Blocks() {
  return DeviceAttribute(cudaDevAttrMultiProcessorCount) / kClusterBlocks * kClusterBlocks;
}

// The launch configuration, which is the same for every kGroups.
struct LaunchSettings {
  cudaLaunchAttribute attributes[3] = {};
  cudaLaunchConfig_t config = {};

  explicit LaunchSettings(int blocks) {
    // Cooperative, because two concurrent launches could otherwise each hold multiprocessors that
    // the other one needs.
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {kClusterBlocks, 1, 1};
    attributes[2].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[2].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kMegakernelThreads);
    config.dynamicSmemBytes = kMegakernelSharedBytes;
    config.attrs = attributes;
    config.numAttrs = 2;
  }
  LaunchSettings(const LaunchSettings&) = delete;
  LaunchSettings& operator=(const LaunchSettings&) = delete;
};

template <int kGroups>
void AllowSharedBytes() {
  Check(cudaFuncSetAttribute(Megakernel<kGroups>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kMegakernelSharedBytes));
}

// Whether all blocks of a launch are resident at once, which they must be as they wait for each
// other. They are not on a MIG partition, or if multiprocessors do not pair up to clusters.
template <int kGroups>
bool FitsOnGpu() {
  AllowSharedBytes<kGroups>();
  const int blocks = Blocks();
  LaunchSettings settings(blocks);
  int clusters = 0;
  Check(cudaOccupancyMaxActiveClusters(&clusters, Megakernel<kGroups>, &settings.config));
  return clusters * kClusterBlocks >= blocks;
}

template <int kGroups>
void Launch(const MegakernelPlan& at) {
  const int blocks = Blocks();
  MegakernelArguments arguments = {.rows = static_cast<int>(at.rows),
                                   .eps = at.eps,
                                   .count = static_cast<int>(at.gemms.size()),
                                   .grid_arrivals = static_cast<uint64_t*>(at.workspace)};
  // The squares follow the counter, which has its own cache line. They are double-buffered, because
  // a GEMM reads the squares of the previous GEMM while it writes its own.
  float* const squares = static_cast<float*>(at.workspace) + 32;
  for (size_t i = 0; i < at.gemms.size(); ++i) {
    const MegakernelGemm& gemm = at.gemms[i];
    CheckGemm(gemm, i == 0 ? nullptr : &at.gemms[i - 1]);
    const bool normed = i + 1 < at.gemms.size() && at.gemms[i + 1].norm_weight != nullptr;
    MegakernelGemmArguments& to = arguments.gemms[i];
    to = {.weights = TensorMapOf(gemm),
          .x = static_cast<const Element*>(gemm.x),
          .norm_weight = static_cast<const Element*>(gemm.norm_weight),
          .add = static_cast<const Element*>(gemm.add),
          .out = static_cast<Element*>(gemm.out),
          .squares_in = squares + (i + 1) % 2 * kSquaresPerGemm,
          .squares_out = normed ? squares + i % 2 * kSquaresPerGemm : nullptr,
          .inner = static_cast<int>(gemm.inner),
          .columns = static_cast<int>(gemm.swiglu ? gemm.columns / 2 : gemm.columns),
          .swiglu = gemm.swiglu};
    DivideUnits(blocks / kClusterBlocks, &to);
  }
  AllowSharedBytes<kGroups>();
  LaunchSettings settings(blocks);
  settings.config.stream = StreamOf(at.stream);
  if (at.overlap) settings.config.numAttrs = 3;
  Check(cudaLaunchKernelEx(&settings.config, Megakernel<kGroups>, arguments));
}

}  // namespace

bool SupportsMegakernel() {
  return DeviceAttribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         DeviceAttribute(cudaDevAttrMultiProcessorCount) <= kMaxMegakernelBlocks &&
         DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= kMegakernelSharedBytes &&
         FitsOnGpu<1>() && FitsOnGpu<2>() && FitsOnGpu<3>() && FitsOnGpu<4>();
}

bool SupportsMegakernelGemm(int64_t inner, int64_t columns, bool swiglu) {
  return inner > 0 && inner % kSpanElements == 0 && columns > 0 &&
         columns % (swiglu ? 32 : 16) == 0;
}

int64_t MegakernelWorkspaceBytes() {
  return static_cast<int64_t>(sizeof(float)) * (32 + 2 * kSquaresPerGemm);
}

void LaunchMegakernel(const MegakernelPlan& at) {
  TORCH_CHECK(at.rows <= kMaxMegakernelRows, "a GEMM megakernel of ", at.rows, " rows: at most ",
              kMaxMegakernelRows, " are taken");
  TORCH_CHECK(!at.gemms.empty() && at.gemms.size() <= kMaxMegakernelGemms, "a megakernel of ",
              at.gemms.size(), " GEMMs: 1 to ", kMaxMegakernelGemms, " are taken");
  if (at.rows == 0) return;
  if (at.rows <= 8) return Launch<1>(at);
  if (at.rows <= 16) return Launch<2>(at);
  if (at.rows <= 24) return Launch<3>(at);
  Launch<4>(at);
}

}  // namespace tritonrl
