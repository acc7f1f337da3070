// Triton IR to machine code, by Python processes with Triton (compile_worker.py).
#ifndef TRITONRL_EXEC_DEVICE_CUDA_COMPILE_WORKERS_H_
#define TRITONRL_EXEC_DEVICE_CUDA_COMPILE_WORKERS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/device/json.h"
#include "exec/device/kernel_compiler.h"

namespace tritonrl::device {

// How the driver has to describe a tensor descriptor that is an argument of the kernel.
struct TensorMapPlan {
  int swizzle = 0;
  int element_bytes = 1;
  int element_type = 0;  // as Triton numbers them
  bool fp4_padded = false;
  std::vector<uint32_t> block;
};

struct CompiledKernel {
  std::string cubin;
  std::string name;  // of the function in it
  int64_t shared_bytes = 0;
  int64_t num_warps = 4;
  int64_t num_ctas = 1;
  int64_t global_scratch_bytes = 0;  // for each block
  int64_t global_scratch_align = 1;
  int64_t profile_scratch_bytes = 0;
  bool cooperative = false;
  bool pdl = false;
  std::vector<TensorMapPlan> descriptors;  // in the order of the arguments
};

// A process that compiles one kernel at a time.
class CompileProcess {
 public:
  virtual ~CompileProcess() = default;
  // The answer to a request, both as compile_worker.py describes them; nobody has checked it.
  // Errors: DeadlineExceeded; Unavailable, it crashed; Internal, the kernel is not to blame.
  virtual absl::StatusOr<std::string> Ask(const std::string& request, absl::Time deadline) = 0;
  // Whether it can be asked again.
  virtual bool alive() const = 0;
};

// Thread-safe: as many requests run at once as there are workers.
class CompileWorkers {
 public:
  struct Options {
    int workers = 4;                              // processes that Create may start
    absl::Duration deadline = absl::Seconds(60);  // of one kernel
    std::string cache_folder;                     // of results, for all processes; empty: none
  };
  // Processes without confinement, for kernels of ours. One starts with the first request that
  // needs it. NotFound: there is no Python with Triton.
  static absl::StatusOr<std::unique_ptr<CompileWorkers>> Create(const Options& options);
  // These processes and no others.
  static absl::StatusOr<std::unique_ptr<CompileWorkers>> CreateOver(
      const Options& options, std::vector<std::unique_ptr<CompileProcess>> processes);
  ~CompileWorkers();

  // InvalidArgument: Triton refuses the text, crashes, or needs more than the deadline, and why.
  // Internal: there is no process, or it ended without the kernel's doing.
  absl::StatusOr<CompiledKernel> Compile(const std::string& ttir, const KernelOptions& options,
                                         int arch);
  // The text with pointers, shapes and strides in the place of descriptors.
  absl::StatusOr<std::string> Flatten(const std::string& ttir);

  // Processes that run; less than there were if one ended.
  int running() const;
  // Answers that came from the cache.
  int64_t cache_hits() const;

 private:
  CompileWorkers(const Options& options, std::string script, int may_start);

  absl::StatusOr<Json> AskCached(const std::string& request);
  absl::StatusOr<Json> Ask(const std::string& request);
  absl::StatusOr<std::unique_ptr<CompileProcess>> TakeProcess();
  void GiveBack(std::unique_ptr<CompileProcess> process);

  const Options options_;
  const std::string script_;
  const int may_start_;  // processes that run at once and that this object starts
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<CompileProcess>> idle_;
  int running_ = 0;  // idle ones too
  int64_t cache_hits_ = 0;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_COMPILE_WORKERS_H_
