// Executes kernels of Triton IR on the CPU.
//
//   ASSIGN_OR_RETURN(Module module, ParseTtir(text));
//   ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, Compile(module));
//   LaunchOptions options;
//   options.threads = 4;
//   RETURN_IF_ERROR(kernel->Launch({128, 1, 1}, {KernelArgument::Tensor(x, bytes),
//                                                KernelArgument::Integer(n)}, options));
//
// Programs of the grid run in the order of their numbers (x fastest), several at a time on several
// threads. A program never waits for the ones behind it, so a kernel whose programs wait for
// earlier ones ends, and one whose programs wait for later ones meets the deadline. Without races
// the results are the same bits for any number of threads.
#ifndef TRITONRL_EXEC_TTIR_RUN_EXECUTOR_H_
#define TRITONRL_EXEC_TTIR_RUN_EXECUTOR_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "exec/ttir/operation.h"
#include "exec/ttir/run/observation.h"

namespace tritonrl::ttir {

// A value for one argument of the kernel's function, in its order.
struct KernelArgument {
  enum class Kind : uint8_t { kTensor, kInteger, kFloat };

  // A pointer to `data`. The kernel may touch the `bytes` bytes from there on.
  static KernelArgument Tensor(void* data, int64_t bytes) { return View(data, data, bytes); }
  // A pointer into a storage: the kernel may touch all of the storage.
  static KernelArgument View(void* data, void* storage, int64_t storage_bytes);
  static KernelArgument Integer(int64_t value);  // wraps around to the argument's type
  static KernelArgument Float(double value);     // is rounded to the argument's type

  Kind kind = Kind::kInteger;
  int64_t integer = 0;
  double number = 0;
  void* data = nullptr;
  void* storage = nullptr;
  int64_t storage_bytes = 0;
  // Of tensors: the bytes from `data` on that the tensor spans; -1: to the end of the storage. What
  // is accessed behind them is a finding.
  int64_t view_bytes = -1;
  // Of tensors: one byte for each byte of the storage, which becomes LaunchOptions::shadow_tag when
  // the kernel stores the byte; or null.
  uint8_t* shadow = nullptr;
};

// Memory that kernels reach through pointers in memory, as of a table of pointers.
struct ReachableMemory {
  std::string name;
  void* data = nullptr;
  int64_t bytes = 0;
  uint8_t* shadow = nullptr;  // as KernelArgument::shadow
};

struct LaunchOptions {
  int threads = 1;
  // Operations that one program may execute; a loop that never ends meets this limit.
  int64_t max_steps = int64_t{1} << 40;
  // Bytes of buffers of all threads together; a launch has fewer threads if they do not fit.
  int64_t max_buffer_bytes = int64_t{1} << 31;
  // Whether to stop: asked before each program, and every few hundred iterations of loops. Several
  // threads call it.
  std::function<bool()> expired;
  // Gets the lines of tt.print, one call for each operation and program; not called concurrently.
  std::function<void(absl::string_view)> print;
  int64_t max_printed_elements = 64;  // of each operation
  std::vector<ReachableMemory> reachable;
  LaunchCounts* counts = nullptr;  // is set if it is not null, which costs time
  uint8_t shadow_tag = 1;          // what stores and atomics put into shadows
  // Gets the findings if it is not null: programs then run one after the other, and slowly.
  LaunchFindings* check = nullptr;
};

struct CompiledKernel;

class Kernel {
 public:
  explicit Kernel(std::unique_ptr<const CompiledKernel> compiled);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Runs the grid's programs. Thread-safe. Errors, each of one sentence:
  // - InvalidArgument: the arguments do not fit the function, or the grid is empty or too large (or
  //   too large to check);
  // - OutOfRange: an access is outside of its argument or misaligned, or a gather's index is;
  // - Aborted: an assertion of the kernel failed;
  // - DeadlineExceeded, ResourceExhausted: limits of the options.
  // Stores of the programs before an error have happened.
  absl::Status Launch(const std::array<int32_t, 3>& grid,
                      absl::Span<const KernelArgument> arguments,
                      const LaunchOptions& options) const;

  const std::string& name() const;
  int64_t buffer_bytes() const;  // of one thread

 private:
  std::unique_ptr<const CompiledKernel> compiled_;
};

// Compiles a public function of a verified module; `name` may be empty if there is only one. The
// kernel does not refer to the module. InvalidArgument "not executable: tt.xyz, line 12 of
// kernel.py" for operations that are missing here.
absl::StatusOr<std::unique_ptr<Kernel>> Compile(const Module& module, absl::string_view name = "");

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_EXECUTOR_H_
