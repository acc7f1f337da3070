// An AdamW update on a GPU in one pass over a rank's optimizer state.
#ifndef TRITONRL_TRAINER_OPTIMIZER_ADAMW_KERNEL_H_
#define TRITONRL_TRAINER_OPTIMIZER_ADAMW_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tritonrl {

// Elements that share one mark of `decayed`.
constexpr int64_t kDecayBlock = 64;

// The scalars of one update (see AdamW::Step).
struct AdamWScalars {
  float gradient_scale = 1;  // factor of gradient clipping
  float beta1 = 0, beta2 = 0;
  float step = 0;                // learning rate / (1 - beta1^t)
  float inverse_correction = 1;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
  float decay = 0;  // learning rate * weight decay
};

// Device buffers of `elements` elements, a multiple of kDecayBlock, aligned to 16 bytes. `decayed`
// [elements / kDecayBlock] is 1 where weights decay; null: none decay. `rounded` receives the new
// master weights in bf16 or fp32 (rounded_is_bf16); null: not written.
struct AdamWBuffers {
  int64_t elements = 0;
  const float* gradient = nullptr;
  const uint8_t* decayed = nullptr;
  float* master = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  void* rounded = nullptr;
  bool rounded_is_bf16 = true;
};

// Reads and writes 28 bytes per element, and 2 or 4 more for `rounded`.
void LaunchAdamW(const AdamWScalars& scalars, const AdamWBuffers& buffers, cudaStream_t stream);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OPTIMIZER_ADAMW_KERNEL_H_
