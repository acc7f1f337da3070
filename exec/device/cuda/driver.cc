#include "exec/device/cuda/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace tritonrl::device {
namespace {

absl::StatusOr<const Driver*> Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError("this machine has no NVIDIA driver (libcuda.so.1)");
  }
  static Driver driver;
#define TRITONRL_TEXT_OF(name) #name
#define TRITONRL_LOAD(name)                                                                      \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, TRITONRL_TEXT_OF(name))); \
  if (driver.name == nullptr) {                                                                  \
    return absl::UnavailableError("the NVIDIA driver is too old: no " TRITONRL_TEXT_OF(name));   \
  }
  TRITONRL_DRIVER_FUNCTIONS(TRITONRL_LOAD)
#undef TRITONRL_LOAD
#undef TRITONRL_TEXT_OF
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("no GPU: ", driver.ErrorText(result)));
  }
  return &driver;
}

}  // namespace

absl::StatusOr<const Driver*> Driver::Get() {
  static const absl::StatusOr<const Driver*> driver = Load();
  return driver;
}

std::string Driver::ErrorText(CUresult error) const {
  const char* text = nullptr;
  if (cuGetErrorString(error, &text) != CUDA_SUCCESS || text == nullptr) {
    return absl::StrCat("CUDA error ", static_cast<int>(error));
  }
  return text;
}

absl::Status Driver::ToStatus(CUresult result, absl::string_view action) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat("cannot ", action, ": ", ErrorText(result));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

}  // namespace tritonrl::device
