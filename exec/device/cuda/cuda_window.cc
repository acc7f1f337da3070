#include "exec/device/cuda/cuda_window.h"

#include <utility>

#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

class CudaWindow : public Window {
 public:
  CudaWindow(CudaContext* context, char* base, int64_t bytes, CUmemGenericAllocationHandle handle)
      : Window(base, bytes), context_(*context), handle_(handle) {}
  ~CudaWindow() override {
    if (context_.poisoned()) return;
    context_.driver().cuMemRelease(handle_);
    context_.driver().cuMemAddressFree(Address(), Size());
  }

  at::Device device() const override {
    return {at::kCUDA, static_cast<c10::DeviceIndex>(context_.index())};
  }

 protected:
  absl::Status Map() override {
    const Driver& driver = context_.driver();
    // A kernel that ran on would find it.
    RETURN_IF_ERROR(CatchTorch([&] { WaitFor(device()); }));
    RETURN_IF_ERROR(
        driver.ToStatus(driver.cuMemMap(Address(), Size(), 0, handle_, 0), "map a window"));
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = context_.index();
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const absl::Status opened =
        driver.ToStatus(driver.cuMemSetAccess(Address(), Size(), &access, 1), "open a window");
    if (!opened.ok()) driver.cuMemUnmap(Address(), Size());
    return opened;
  }

  void Unmap() override {
    CatchTorch([&] { WaitFor(device()); }).IgnoreError();
    if (!context_.poisoned()) context_.driver().cuMemUnmap(Address(), Size());
  }

 private:
  CUdeviceptr Address() const { return reinterpret_cast<CUdeviceptr>(base()); }
  size_t Size() const { return static_cast<size_t>(bytes()); }

  CudaContext& context_;
  const CUmemGenericAllocationHandle handle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Window>> OpenCudaWindow(CudaContext* context, int fd,
                                                       int64_t bytes) {
  if (bytes <= 0) return absl::InvalidArgumentError("a window of no size");
  const Driver& driver = context->driver();
  CUmemGenericAllocationHandle handle = 0;
  RETURN_IF_ERROR(driver.ToStatus(driver.cuMemImportFromShareableHandle(
                                      &handle, reinterpret_cast<void*>(static_cast<uintptr_t>(fd)),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                                  "import a window"));
  CUdeviceptr base = 0;
  const absl::Status reserved = driver.ToStatus(
      driver.cuMemAddressReserve(&base, static_cast<size_t>(bytes), 0, 0, 0), "place a window");
  if (!reserved.ok()) {
    driver.cuMemRelease(handle);
    return reserved;
  }
  return std::make_unique<CudaWindow>(context, reinterpret_cast<char*>(base), bytes, handle);
}

}  // namespace tritonrl::device
