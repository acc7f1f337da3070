// A second stream for work that runs beside that of the current one.
#ifndef TRITONRL_ROLLOUT_CUDA_SIDE_STREAM_H_
#define TRITONRL_ROLLOUT_CUDA_SIDE_STREAM_H_

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

namespace tritonrl {

class SideStream {
 public:
  explicit SideStream(c10::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}

  // What is launched here from now on comes behind what is in the current stream.
  void Fork() {
    forked_.record(c10::cuda::getCurrentCUDAStream(stream_.device_index()));
    forked_.block(stream_);
  }
  // What is launched in the current stream from now on comes behind what is here.
  void Join() {
    joined_.record(stream_);
    joined_.block(c10::cuda::getCurrentCUDAStream(stream_.device_index()));
  }
  // Until nothing is left here. Gives what CUDA says.
  cudaError_t Synchronize() const { return cudaStreamSynchronize(stream_.stream()); }
  void* stream() const { return stream_.stream(); }  // a cudaStream_t

 private:
  const c10::cuda::CUDAStream stream_;
  at::cuda::CUDAEvent forked_, joined_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_SIDE_STREAM_H_
