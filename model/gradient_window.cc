#include "model/gradient_window.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "model/cuda/address_range.h"
#include "model/gradient_window_cuda.h"
#include "model/weights.h"

namespace tritonrl {
namespace {

constexpr int64_t kElement = 4;
constexpr int64_t kLayers = 3;  // one that is written, two that are being taken away

int64_t RoundUp(int64_t elements, int64_t unit) { return (elements + unit - 1) / unit * unit; }

int64_t Unit(at::Device device) {
  return (device.is_cuda() ? kMappedUnit : sysconf(_SC_PAGESIZE)) / kElement;
}

// Pages of a file without a name, mapped at several addresses.
class HostMapping {
 public:
  HostMapping(int64_t own, int64_t ring, int64_t size) : size_(own + RoundUp(size - own, ring)) {
    const int file = memfd_create("gradient_window", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0, "no memory for gradients: ", std::strerror(errno));
    const bool mapped = Map(file, own, ring);
    const int error = errno;
    close(file);  // the mappings keep it
    if (mapped) return;
    if (base_ != nullptr) munmap(base_, size_);
    TORCH_CHECK(false, "no memory for gradients: ", std::strerror(error));
  }
  ~HostMapping() { munmap(base_, size_); }
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;

  void* data() const { return base_; }

 private:
  bool Map(int file, int64_t own, int64_t ring) {
    if (ftruncate(file, own + ring) != 0) return false;
    void* const base =
        mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    base_ = static_cast<char*>(base);
    const auto put = [&](int64_t at, int64_t from, int64_t bytes) {
      return bytes == 0 || mmap(base_ + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                file, from) != MAP_FAILED;
    };
    bool ok = put(0, 0, own);
    for (int64_t at = own; ok && at < size_; at += ring) ok = put(at, own, ring);
    return ok;
  }

  const int64_t size_;
  char* base_ = nullptr;
};

}  // namespace

GradientWindow WindowFor(const ParameterLayout& layout, bool tied, int64_t bucket_elements,
                         at::Device device) {
  const int64_t unit = Unit(device);
  int64_t largest = 0, layer = 0;
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    const int64_t size = layout.parts[i].end - layout.parts[i].begin;
    if (i > 0 || !tied) largest = std::max(largest, size);
    if (i > 0 && i + 1 < layout.parts.size()) layer = std::max(layer, size);
  }
  const GradientWindow window = {
      .own = tied ? RoundUp(layout.parts[0].end, unit) : 0,
      .ring = RoundUp(std::max(largest, kLayers * layer) + bucket_elements, unit)};
  if (window.own + window.ring >= layout.flat_size) return {.own = layout.flat_size};
  return window;
}

at::Tensor MapWindow(const GradientWindow& window, int64_t flat_size, at::Device device) {
  const at::TensorOptions fp32 = at::TensorOptions(device).dtype(at::kFloat);
  if (!window.shares()) return at::zeros({flat_size}, fp32);
  const int64_t unit = Unit(device);
  TORCH_CHECK(window.own % unit == 0 && window.ring % unit == 0,
              "a window is made of whole units of memory");
  const int64_t own = window.own * kElement, ring = window.ring * kElement;
  if (device.is_cuda()) return MapCudaWindow(own, ring, flat_size, device);
  const auto memory = std::make_shared<HostMapping>(own, ring, flat_size * kElement);
  return at::from_blob(
      memory->data(), {flat_size}, [memory](void*) {}, fp32);
}

}  // namespace tritonrl
