// The power that a GPU takes, for benches: what is at its limit of power gets faster by less work a
// result alone, not by a better order.
#ifndef TRITONRL_BENCH_MODEL_GPU_POWER_H_
#define TRITONRL_BENCH_MODEL_GPU_POWER_H_

namespace tritonrl {

// Reads counters of NVIDIA's management library (libnvidia-ml.so.1), which is looked for in the
// constructor. Where it, or a counter, is missing all figures are 0.
class GpuPower {
 public:
  // device: CUDA's index of the GPU.
  explicit GpuPower(int device);

  // A stretch begins now.
  void Begin();
  // Mean watts since Begin(). The counter moves about ten times a second: of stretches of a second
  // and more.
  double Watts() const;
  // Clock of the multiprocessors at this moment.
  double Megahertz() const;

 private:
  using Device = struct OpaqueDevice*;
  double Joules() const;  // since the driver was loaded; 0 if not known

  Device device_ = nullptr;
  int (*energy_)(Device, unsigned long long* millijoules) = nullptr;
  int (*clock_)(Device, int domain, unsigned* megahertz) = nullptr;
  double joules_ = 0, seconds_ = 0;  // at Begin()
};

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_MODEL_GPU_POWER_H_
