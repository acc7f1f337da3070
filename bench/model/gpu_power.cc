#include "bench/model/gpu_power.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <chrono>

namespace tritonrl {
namespace {

constexpr int kMultiprocessors = 1;  // NVML_CLOCK_SM
constexpr int kBusIdBytes = 32;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

GpuPower::GpuPower(int device) {
  char bus_id[kBusIdBytes];
  if (cudaDeviceGetPCIBusId(bus_id, kBusIdBytes, device) != cudaSuccess) return;
  // Stays loaded: it keeps threads and files of its own.
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto find = [library](const char* name, auto* function) {
    *reinterpret_cast<void**>(function) = dlsym(library, name);
    return *function != nullptr;
  };
  int (*start)() = nullptr;
  int (*by_bus_id)(const char*, Device*) = nullptr;
  if (!find("nvmlInit_v2", &start) || !find("nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id) ||
      !find("nvmlDeviceGetTotalEnergyConsumption", &energy_) ||
      !find("nvmlDeviceGetClockInfo", &clock_) || start() != 0 ||
      by_bus_id(bus_id, &device_) != 0) {
    device_ = nullptr;
  }
}

void GpuPower::Begin() {
  joules_ = Joules();
  seconds_ = Now();
}

double GpuPower::Watts() const {
  const double seconds = Now() - seconds_, joules = Joules();
  return seconds > 0 && joules_ > 0 && joules > 0 ? (joules - joules_) / seconds : 0;
}

double GpuPower::Megahertz() const {
  unsigned megahertz = 0;
  if (device_ == nullptr || clock_(device_, kMultiprocessors, &megahertz) != 0) return 0;
  return megahertz;
}

double GpuPower::Joules() const {
  unsigned long long millijoules = 0;
  if (device_ == nullptr || energy_(device_, &millijoules) != 0) return 0;
  return static_cast<double>(millijoules) / 1000;
}

}  // namespace tritonrl
