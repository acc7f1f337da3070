// Runs a Python program with Triton kernels on the CPU: its process holds no data, and an executor
// runs, and checks, what it launches.
#ifndef TRITONRL_EXEC_TRITON_RUN_PROGRAM_RUN_H_
#define TRITONRL_EXEC_TRITON_RUN_PROGRAM_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "exec/device/kernel_compiler.h"
#include "exec/messages.pb.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

struct ProgramOptions {
  std::string source;
  // A function of the program, called with what its get_inputs() returns if it has one; or a class,
  // constructed with what get_init_inputs() returns and then called.
  std::string entry = "main";
  bool check = true;  // launches are checked: one thread, slowly
  uint64_t seed = 0;  // of random tensors
  int threads = 1;    // of a launch that is not checked
  absl::Duration time_limit = absl::Seconds(600);
  WorkerPoolOptions pool;                        // confinement and limits of the program's process
  std::function<void(absl::string_view)> print;  // gets what kernels print; may be null
};

// A tensor or another value that the entry returned.
struct ProgramOutput {
  std::string what;                    // "float32 [64, 200]", "3.5", "None"
  double low = 0, high = 0, mean = 0;  // of a tensor's finite elements
  int64_t not_finite = 0;
  bool is_tensor = false;
};

struct ProgramResult {
  // Empty: the entry returned. Otherwise why not: an exception, a kernel's access out of bounds, an
  // operation that the executor lacks.
  std::string error;
  int error_line = 0;                  // of the program; 0: unknown
  std::vector<KernelLaunch> launches;  // in order, with what they counted if nothing was checked
  device::LaunchFindings findings;
  std::vector<ProgramOutput> outputs;
  std::string printed;  // beginning and end of what the process printed
  double seconds = 0;
};

// Errors: InvalidArgument (options), FailedPrecondition (this machine cannot confine the program),
// DeadlineExceeded. A failure of the program itself is in the result.
absl::StatusOr<ProgramResult> RunProgram(const ProgramOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TRITON_RUN_PROGRAM_RUN_H_
