// Tools of the step benches: batches written as text, the FLOP of a training step, GPU time by kind
// of kernel, and GPU power.
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

// Parses the sequence lengths of batches: "16384;4096,4096" is a batch of one sequence and a batch
// of two. InvalidArgument names the part that is no positive number.
absl::StatusOr<std::vector<std::vector<int64_t>>> ParseBatches(absl::string_view text);

// Returns the FLOP of forward and backward of a batch. A GEMM counts 2 FLOP per parameter and token
// in the forward and 4 in the backward; the embedding is no GEMM. Causal attention of L tokens
// counts 6 H D L^2 per layer, half of the full square.
double StepFlops(const ModelConfig& config, const std::vector<int64_t>& lengths);

// Runs `command`, a peer such as step_peer.py, once for each share of recomputed layers that --peer
// lists, and prints its lines. step_peer.py gives one line per entry of `lengths` and share,
// update_peer.py one line per share.
absl::StatusOr<std::vector<nlohmann::json>> RunStepPeer(Bench* bench, PeerCommand command,
                                                        const std::string& shape,
                                                        const std::string& lengths, int steps);
// Returns the fastest of the peer's lines with these lengths (a list or a text), or null.
nlohmann::json FastestOf(const std::vector<nlohmann::json>& lines, const nlohmann::json& lengths);

struct StepProfile {
  // Seconds of kernels and of copies. Where kernels overlap, the time counts for the one that
  // started first, because a later one mostly waits for it.
  double gemm = 0, attention = 0, rest = 0;
  double communication = 0;  // seconds of NCCL's kernels
  double exposed = 0;        // part of `communication` in which no other kernel ran
  double gaps = 0;           // seconds in which no kernel ran
  double seconds = 0;        // from the first kernel to the end of the last

  struct Kernel {
    std::string name;
    double seconds = 0;
    int calls = 0;
  };
  std::vector<Kernel> kernels;  // sorted by time, the longest first

  // The times in milliseconds, those of NCCL only if it ran; empty without a profile.
  std::vector<Figure> Figures() const;
};

// One run of a kernel. `start` is in seconds since an arbitrary moment.
struct KernelRun {
  std::string name;
  double start = 0, seconds = 0;
};

// Sums the runs by kind, which follows from the kernel's name, and by name. Runs may be in any
// order and may overlap.
StepProfile SummarizeRuns(std::vector<KernelRun> runs);

// Prints the first `max_kernels` kernels to stdout, one per line.
void PrintKernels(const StepProfile& profile, int max_kernels);

// Profiles `calls` calls of `work` without a pause by torch's profiler (Kineto) and waits for their
// GPU work. A call makes `steps` steps. Times are per step, those of `kernels` per call; time
// between two calls counts.
StepProfile ProfileStep(const std::function<void()>& work, int calls = 3, int steps = 1);

// Power and clock of a GPU. A GPU at its power limit gets faster only by less work per result.
// Reads counters of NVIDIA's management library (libnvidia-ml.so.1); a figure is 0 if the library
// or its counter is missing.
class GpuPower {
 public:
  explicit GpuPower(int device);  // CUDA's index of the GPU

  // Begins a measurement.
  void Begin();
  // Mean watts since Begin(). The counter moves about ten times a second, so a measurement should
  // last at least a second.
  double Watts() const;
  // The multiprocessors' clock now.
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
