// Memory that is given back and taken again.

#include <c10/core/Device.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <iostream>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/rollout/kernel_timer.h"
#include "rollout/cuda/cuda_kv_cache.h"

namespace tritonrl {
namespace {

int64_t FreeBytes() {
  size_t free = 0, total = 0;
  TORCH_CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess, "the GPU does not say what is free");
  return static_cast<int64_t>(free);
}

double Milliseconds(const std::function<void()>& work) {
  const absl::Time start = absl::Now();
  work();
  return absl::ToDoubleMilliseconds(absl::Now() - start);
}

}  // namespace

void BenchMappedMemory() {
  std::cout << "Memory of a cache, ms to give back and to take again\n"
            << "     GiB     take  release     take  free meanwhile (GiB)\n";
  const at::Device device(at::kCUDA, c10::cuda::current_device());
  for (const int64_t gib : {1, 16, 64, 96}) {
    if ((gib + 4) << 30 > FreeBytes()) continue;
    std::unique_ptr<MappedMemory> memory;
    const double first =
        Milliseconds([&] { memory = std::make_unique<MappedMemory>(gib << 30, device); });
    TORCH_CHECK(cudaMemset(memory->data(), 1, gib << 30) == cudaSuccess &&
                    cudaDeviceSynchronize() == cudaSuccess,
                "writing to mapped memory failed");
    const int64_t held = FreeBytes();
    const double release = Milliseconds([&] { memory->Unmap(); });
    const int64_t more = FreeBytes() - held;
    const double take = Milliseconds([&] { memory->Map(); });
    absl::PrintF("%8d %8.1f %8.1f %8.1f %8.2f\n", gib, first, release, take,
                 static_cast<double>(more) / (int64_t{1} << 30));
  }
}

}  // namespace tritonrl
