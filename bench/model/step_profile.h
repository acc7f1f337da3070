// Where the GPU's time goes in a stretch of work, by kind of kernel.

#ifndef TRITONRL_BENCH_MODEL_STEP_PROFILE_H_
#define TRITONRL_BENCH_MODEL_STEP_PROFILE_H_

#include <functional>
#include <string>
#include <vector>

namespace tritonrl {

struct StepProfile {
  // Seconds of kernels and of copies. Of those that overlap the first one to start has the time: a
  // later one has mostly waited for it.
  double gemm = 0, attention = 0, rest = 0;
  double communication = 0;  // seconds of NCCL's kernels
  double exposed = 0;        // of these, seconds in which nothing else ran
  double gaps = 0;           // seconds in which nothing ran at all
  double seconds = 0;        // from the first kernel to the end of the last

  struct Kernel {
    std::string name;
    double seconds = 0;
    int calls = 0;
  };
  std::vector<Kernel> kernels;  // by time, the longest first
};

// One run of a kernel; seconds since any moment.
struct KernelRun {
  std::string name;
  double start = 0, seconds = 0;
};

// Sums by kind, which a kernel's name tells, and by name. Runs may come in any order and overlap;
// only NCCL's run beside others for long.
StepProfile SummarizeRuns(std::vector<KernelRun> runs);

// The first `max_kernels` kernels on stdout, a line each.
void PrintKernels(const StepProfile& profile, int max_kernels);

// Runs `work` so often in a row, without a pause, under torch's profiler (Kineto), to the end of
// what it started on the GPU. Seconds and calls are of one run, so that what passes between two
// counts.
StepProfile ProfileStep(const std::function<void()>& work, int times = 3);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_MODEL_STEP_PROFILE_H_
