// Exceptions of LibTorch become a Status where they enter.
#ifndef TRITONRL_MODEL_TORCH_STATUS_H_
#define TRITONRL_MODEL_TORCH_STATUS_H_

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

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TORCH_STATUS_H_
