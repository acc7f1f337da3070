// Single words that change in tables that stay on the GPU.
#ifndef TRITONRL_ROLLOUT_CUDA_UPDATE_WORDS_H_
#define TRITONRL_ROLLOUT_CUDA_UPDATE_WORDS_H_

#include <cstdint>

namespace tritonrl {

// words[pairs[2 i]] = pairs[2 i + 1], i below `count`; all in GPU memory, places distinct. On
// `stream` (a cudaStream_t); throws c10::Error if the launch is refused.
void LaunchUpdateWords(const int32_t* pairs, int count, int32_t* words, void* stream);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_UPDATE_WORDS_H_
