// Conversion of LibTorch's exceptions to Status, and a program's settings before it uses a GPU.

#ifndef TRITONRL_MODEL_TORCH_RUNTIME_H_
#define TRITONRL_MODEL_TORCH_RUNTIME_H_

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {

// Returns the first line of a LibTorch exception's message. The later lines are advice to
// programmers or a stack trace.
inline std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Runs `work`, which returns absl::Status or nothing, and converts exceptions to a Status. `what`
// is a prefix of the message, e.g. "step 12". Out of memory, on a GPU or the host, becomes
// ResourceExhausted with the advice `out_of_memory_advice`; every other exception becomes Internal.
template <typename Work>
absl::Status CatchTorch(const std::string& what, const std::string& out_of_memory_advice,
                        Work&& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      std::forward<Work>(work)();
      return absl::OkStatus();
    } else {
      return std::forward<Work>(work)();
    }
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ": the device is out of memory (", FirstLine(error), "); ", out_of_memory_advice));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": out of memory; ", out_of_memory_advice));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", FirstLine(error)));
  }
}

// Makes `device` the calling thread's GPU, so that calls without a device do not create a context
// on the first GPU (half a GiB). Does nothing for a CPU.
//
// `trains`: torch's allocator maps memory page by page, so that free memory between tensors can
// serve any size. With blocks of fixed sizes, a step of 8B that was planned to fill an H200 failed
// for 3.4 GiB of fragmentation. Eight threads pin memory for checkpoints: 32 GB take 11 s instead
// of 18 s. PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF, if set, takes precedence over both
// settings. Programs that only generate or evaluate allocate their memory once and leave `trains`
// false: NCCL in CUDA graphs maps the buffers that it gets, and buffers of many pages are untested
// there.
//
// Returns Internal if the GPU cannot be used.
absl::Status InitializeGpu(at::Device device, bool trains);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TORCH_RUNTIME_H_
