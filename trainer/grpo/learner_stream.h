// The GPU's stream on which a learner works beside an engine (learn_early). On a CPU nothing.
#ifndef TRITONRL_TRAINER_GRPO_LEARNER_STREAM_H_
#define TRITONRL_TRAINER_GRPO_LEARNER_STREAM_H_

#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {

class LearnerStream {
 public:
  explicit LearnerStream(c10::Device device) {
    if (!device.is_cuda()) return;
    stream_ = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  }

  // While it lives the calling thread launches there, behind all that the default stream had
  // before.
  class Use {
   public:
    explicit Use(const LearnerStream& learner) {
      if (!learner.stream_.has_value()) return;
      const c10::cuda::CUDAStream& stream = *learner.stream_;
      at::cuda::CUDAEvent before;
      before.record(c10::cuda::getDefaultCUDAStream(stream.device_index()));
      before.block(stream);
      guard_.emplace(stream);
    }

   private:
    std::optional<c10::cuda::CUDAStreamGuard> guard_;
  };

  // Until nothing is left there; other streams, the engine's above all, are not waited for.
  absl::Status Await() const {
    if (!stream_.has_value()) return absl::OkStatus();
    const cudaError_t error = cudaStreamSynchronize(stream_->stream());
    if (error == cudaSuccess) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the learner's work: ", cudaGetErrorString(error)));
  }

 private:
  std::optional<c10::cuda::CUDAStream> stream_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_LEARNER_STREAM_H_
