#include <c10/util/Exception.h>

#include "model/cuda/dispatch.cuh"
#include "rollout/cuda/update_words.h"

namespace tritonrl {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    UpdateWordsKernel(const int32_t* pairs, int count, int32_t* words) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i < count) words[pairs[2 * i]] = pairs[2 * i + 1];
}

}  // namespace

void LaunchUpdateWords(const int32_t* pairs, int count, int32_t* words, void* stream) {
  if (count == 0) return;
  UpdateWordsKernel<<<(count + kThreads - 1) / kThreads, kThreads, 0, StreamOf(stream)>>>(
      pairs, count, words);
  CheckLaunch("update of page tables");
}

}  // namespace tritonrl
