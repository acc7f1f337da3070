// The values of a kernel's parameters, as the driver takes them.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_LAUNCH_PARAMETERS_H_
#define TRITONRL_EXEC_DEVICE_CUDA_LAUNCH_PARAMETERS_H_

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "exec/device/cuda/compile_workers.h"
#include "exec/device/cuda/driver.h"
#include "exec/device/kernel_compiler.h"
#include "exec/ttir/types.h"

namespace tritonrl::device {

class LaunchParameters {
 public:
  explicit LaunchParameters(const Driver& driver) : driver_(driver) {}

  // Arguments in the order of the function's parameters; in the place of a descriptor stand its
  // pointer, shape, strides and whether it pads with NaN. InvalidArgument: they do not fit.
  absl::Status Add(absl::Span<const ttir::Type> types, absl::Span<const LaunchArgument> arguments,
                   absl::Span<const TensorMapPlan> plans);
  void AddPointer(CUdeviceptr pointer) { AddWord(pointer); }

  // Valid until the next Add, in this object's life.
  void** pointers() { return pointers_.data(); }

 private:
  absl::Status AddScalar(const ttir::Type& type, const LaunchArgument& argument);
  absl::Status AddDescriptor(const ttir::Type& type, absl::Span<const LaunchArgument> arguments,
                             const TensorMapPlan& plan);
  void AddWord(uint64_t word);

  const Driver& driver_;
  std::deque<uint64_t> words_;
  std::deque<CUtensorMap> maps_;
  std::vector<void*> pointers_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_LAUNCH_PARAMETERS_H_
