// What benches of steps measure with: batches written as text, the FLOP of a training step, the
// GPU's time by kind of kernel, and its power.
#ifndef TRITONRL_BENCH_MODEL_STEP_MEASURES_H_
#define TRITONRL_BENCH_MODEL_STEP_MEASURES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/harness/harness.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// Lengths of the sequences of each batch: "16384;4096,4096" is a batch of one sequence and one of
// two. Errors name the part that is no positive number.
absl::StatusOr<std::vector<std::vector<int64_t>>> ParseBatches(absl::string_view text);

// FLOP of forward and backward of such a batch. A GEMM counts 2 for each parameter and
// token in the forward and 4 in the backward (the embedding is none), causal attention of a
// sequence of L tokens 6 H D L^2 in each layer: half of the square.
double StepFlops(const ModelConfig& config, const std::vector<int64_t>& lengths);

// Runs a peer like step_peer.py where --peer names shares of layers to recompute, and prints its
// lines: one for each of `lengths` (all, in update_peer.py) and share. `command` names the script.
absl::StatusOr<std::vector<nlohmann::json>> RunStepPeer(Bench* bench, PeerCommand command,
                                                        const std::string& shape,
                                                        const std::string& lengths, int steps);
// The fastest of these lines about such lengths, a list or text; null if there is none.
nlohmann::json FastestOf(const std::vector<nlohmann::json>& lines, const nlohmann::json& lengths);

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

  // The times in milliseconds, those of NCCL only where it ran; none without a profile.
  std::vector<Figure> Figures() const;
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

// Runs `work` `calls` times, without a pause, under torch's profiler (Kineto), to the end of what
// it started on the GPU. Times are of one of the `steps` steps that a call makes, those of
// `kernels` of a call; what passes between two calls counts.
StepProfile ProfileStep(const std::function<void()>& work, int calls = 3, int steps = 1);

// Power and clock of a GPU: one that is at its limit of power gets faster only by less work a
// result. Reads counters of NVIDIA's management library (libnvidia-ml.so.1); all figures are 0
// where the library or a counter is missing.
class GpuPower {
 public:
  explicit GpuPower(int device);  // CUDA's index of the GPU

  // Begins a stretch.
  void Begin();
  // Mean watts since Begin(). The counter moves about ten times a second: for stretches of a second
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

#endif  // TRITONRL_BENCH_MODEL_STEP_MEASURES_H_
