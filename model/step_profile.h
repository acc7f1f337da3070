// Where the GPU's time goes in a stretch of work, by kind of kernel.
#ifndef TRITONRL_MODEL_STEP_PROFILE_H_
#define TRITONRL_MODEL_STEP_PROFILE_H_

#include <functional>
#include <string>
#include <vector>

namespace tritonrl {

struct StepProfile {
  double gemm = 0, attention = 0, rest = 0, gaps = 0;  // seconds; together all of it
  double seconds = 0;                                  // from the first kernel to the end of the last

  struct Kernel {
    std::string name;
    double seconds = 0;
    int calls = 0;
  };
  std::vector<Kernel> kernels;  // by time, the longest first
};

// Runs `work` once under torch's profiler (Kineto). Kernels are told apart by their names.
StepProfile ProfileStep(const std::function<void()>& work);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_STEP_PROFILE_H_
