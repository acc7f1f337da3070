// What turns a Triton IR text into something that can be launched.
#ifndef TRITONRL_EXEC_DEVICE_KERNEL_COMPILER_H_
#define TRITONRL_EXEC_DEVICE_KERNEL_COMPILER_H_

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
#include "exec/ttir/run/observation.h"

namespace tritonrl::device {

// A value for one argument of the kernel's function, in its order.
struct LaunchArgument {
  enum class Kind : uint8_t { kPointer, kInteger, kFloat };
  Kind kind = Kind::kInteger;
  int64_t integer = 0;
  double number = 0;
  // kPointer: the kernel may touch all of the storage that `data` points into.
  char* data = nullptr;
  char* storage = nullptr;
  int64_t storage_bytes = 0;
  int64_t view_bytes = -1;    // that the tensor spans from `data` on; -1: unknown
  uint8_t* shadow = nullptr;  // of the storage: one byte for each byte
};

// Memory that a kernel reaches through addresses in memory or integers.
struct ReachableStorage {
  std::string name;
  char* data = nullptr;
  int64_t bytes = 0;
  uint8_t* shadow = nullptr;
};

using ttir::Finding;
using ttir::LaunchCounts;
using ttir::LaunchFindings;

struct LaunchSettings {
  int threads = 1;
  LaunchFindings* findings = nullptr;            // gets the findings: slowly, on one thread
  std::function<void(absl::string_view)> print;  // gets the lines of tl.device_print
  LaunchCounts* counts = nullptr;                // is set if it is not null, which costs time
  std::function<bool()> expired;                 // whether to stop; several threads call it
  std::vector<ReachableStorage> reachable;
  uint8_t shadow_tag = 0;  // what the kernel puts into the shadow of each byte that it stores
  // On a GPU: the kernel is queued on the current stream and not waited for, so that its errors
  // come later, and nothing is put into the shadow. No other setting counts then.
  bool bare = false;
};

// What a compiler for GPUs is asked for, as Triton names it.
struct KernelOptions {
  int64_t num_warps = 4;
  int64_t num_stages = 3;
  int64_t num_ctas = 1;
  int64_t maxnreg = 0;  // 0: no bound
  bool fp_fusion = true;
  bool cooperative = false;  // launch_cooperative_grid
  bool pdl = false;          // launch_pdl
};

class LaunchableKernel {
 public:
  virtual ~LaunchableKernel() = default;

  // InvalidArgument: the arguments do not fit. DeadlineExceeded: expired. ResourceExhausted: a
  // limit. Others: the kernel is wrong, as by an access out of bounds; what it stored before stays.
  virtual absl::Status Launch(const std::array<int32_t, 3>& grid,
                              absl::Span<const LaunchArgument> arguments,
                              const LaunchSettings& settings) const = 0;
};

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;

  // The text is untrusted. InvalidArgument of one sentence, or Unimplemented:
  // an operation that is not executed here.
  virtual absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CompileTtir(
      absl::string_view text, const KernelOptions& options) = 0;
  // Whether kernels of one text differ by their options: it compiles for a GPU, and knows how much
  // shared memory they need. Elsewhere the candidate's process finds that out.
  virtual bool uses_options() const { return false; }
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_KERNEL_COMPILER_H_
