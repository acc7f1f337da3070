// Triton IR to machine code, by Python processes of ours with Triton (compile_worker.py).
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

// Thread-safe: as many requests run at once as there are workers.
class CompileWorkers {
 public:
  struct Options {
    int workers = 4;
    absl::Duration deadline = absl::Seconds(60);  // of one kernel
    std::string cache_folder;                     // of results, for all processes; empty: none
    bool at_once = false;
  };
  // NotFound: there is no Python with Triton. A worker starts with the first request that needs
  // it; with `at_once` all start now, for a process that may start none later, and end with the
  // calling thread.
  static absl::StatusOr<std::unique_ptr<CompileWorkers>> Create(const Options& options);
  ~CompileWorkers();

  // InvalidArgument: Triton refuses the text, crashes, or needs more than the deadline, and why.
  absl::StatusOr<CompiledKernel> Compile(const std::string& ttir, const KernelOptions& options,
                                         int arch);
  // The text with pointers, shapes and strides in the place of descriptors.
  absl::StatusOr<std::string> Flatten(const std::string& ttir);

  // Processes that run; less than there were if one crashed, or was late and killed.
  int running() const;
  // Answers that came from the cache.
  int64_t cache_hits() const;

 private:
  class Worker;
  CompileWorkers(const Options& options, std::string script);

  absl::StatusOr<Json> AskCached(const std::string& request);
  absl::StatusOr<Json> Ask(const std::string& request);
  std::unique_ptr<Worker> TakeWorker();
  void GiveBack(std::unique_ptr<Worker> worker);

  const Options options_;
  const std::string script_;
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
  int running_ = 0;  // idle ones too
  int64_t cache_hits_ = 0;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_COMPILE_WORKERS_H_
