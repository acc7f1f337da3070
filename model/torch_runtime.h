// LibTorch's exceptions as Status, and a program's settings before it uses a GPU.

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

// The first line of what an exception of LibTorch says; what follows is advice to programmers, or a
// stack.
inline std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Runs `work` (which returns absl::Status or nothing). `what` stands in front of a message, e.g.
// "step 12". Out of memory, on a GPU or the host, becomes ResourceExhausted with the advice
// `out_of_memory_advice`, all else Internal.
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

// Makes the GPU the calling thread's, so that calls which name none do not begin to use the first
// one (a context there takes half a GiB); nothing to do for a CPU.
// trains: torch's allocator gets its memory page by page, so that what it holds between tensors can
// be used again in any other size. With blocks of fixed sizes a step of 8B that was planned to fill
// an H200 failed for 3.4 GiB of holes. Who sets PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF has
// it as set there. Memory for checkpoints is pinned by eight threads: 32 GB take 11 s, not 18.
// Programs that only generate or evaluate take their memory once, and leave it off: NCCL in CUDA
// graphs maps the buffers that it is given, and one of many pages was not tried. Error: Internal if
// the GPU cannot be used.
absl::Status InitializeGpu(at::Device device, bool trains);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TORCH_RUNTIME_H_
