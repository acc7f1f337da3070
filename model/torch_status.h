// Exceptions of LibTorch become a Status where they enter.
#ifndef TRITONRL_MODEL_TORCH_STATUS_H_
#define TRITONRL_MODEL_TORCH_STATUS_H_

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {

// Runs `work` (which returns absl::Status). `what` stands in front of a message, e.g. "step 12".
// Out of memory on a GPU becomes ResourceExhausted with the advice `out_of_memory_advice`.
template <typename Work>
absl::Status CatchTorch(const std::string& what, const std::string& out_of_memory_advice,
                        Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": the device is out of memory (",
                                                     error.what_without_backtrace(), "); ",
                                                     out_of_memory_advice));
  } catch (const c10::Error& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": out of memory; ", out_of_memory_advice));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  }
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TORCH_STATUS_H_
