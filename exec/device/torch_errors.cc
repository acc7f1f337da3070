#include "exec/device/torch_errors.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <string>

#include "absl/strings/string_view.h"
#include "exec/device/limits.h"

namespace tritonrl::device {
namespace {

std::string FirstLine(absl::string_view text) {
  return std::string(text.substr(0, std::min(text.find('\n'), kMaxErrorText)));
}

}  // namespace

absl::Status CatchTorch(const std::function<void()>& f) {
  try {
    const c10::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    f();
    return absl::OkStatus();
  } catch (const c10::NotImplementedError& error) {
    return absl::UnimplementedError(FirstLine(error.what_without_backtrace()));
  } catch (const c10::OutOfMemoryError&) {
    return absl::ResourceExhaustedError("CUDA out of memory.");
  } catch (const c10::AcceleratorError& error) {
    return absl::AbortedError(FirstLine(error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    return absl::InvalidArgumentError(FirstLine(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("CUDA out of memory.");
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(FirstLine(error.what()));
  }
}

}  // namespace tritonrl::device
