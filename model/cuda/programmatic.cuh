// Kernels that begin while the one before them ends (Hopper's programmatic dependent launch). A
// kernel that is launched so calls WaitForEarlierKernels in every thread that reads or writes what
// earlier ones write or read, and never returns before; then order is handed on from launch to
// launch.
#ifndef TRITONRL_MODEL_CUDA_PROGRAMMATIC_CUH_
#define TRITONRL_MODEL_CUDA_PROGRAMMATIC_CUH_

#include <cuda_runtime.h>

namespace tritonrl {

// The next kernel of the stream may begin once all blocks have said so, if it was launched to.
__device__ inline void LetNextKernelBegin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until all that this kernel comes after has ended and what it wrote is seen; nothing to wait for
// if it was not launched to overlap.
__device__ inline void WaitForEarlierKernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Launches `kernel`, with `overlap` as one that may begin while the one before it ends.
template <typename... Parameters, typename... Given>
cudaError_t LaunchProgrammatic(bool overlap, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                               int shared_bytes, cudaStream_t stream, Given... given) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, Parameters(given)...);
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_PROGRAMMATIC_CUH_
