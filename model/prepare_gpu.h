// What a program does once before it puts anything on a GPU.
#ifndef TRITONRL_MODEL_PREPARE_GPU_H_
#define TRITONRL_MODEL_PREPARE_GPU_H_

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"

namespace tritonrl {

// Makes the GPU the calling thread's, so that calls which name none do not begin to use the first
// one (a context there takes half a GiB); nothing to do for a CPU.
// trains: torch's allocator gets its memory page by page, so that what it holds between tensors can
// be used again in any other size. With blocks of fixed sizes a step of 8B that was planned to fill
// an H200 failed for 3.4 GiB of holes. Who sets PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF has
// it as set there. Memory for checkpoints is pinned by eight threads: 32 GB take 11 s, not 18.
// Programs that only generate or evaluate take their memory once, and leave it off: NCCL in CUDA
// graphs maps the buffers that it is given, and one of many pages was not tried. Error: Internal if
// the GPU cannot be used.
absl::Status PrepareGpu(at::Device device, bool trains);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_PREPARE_GPU_H_
