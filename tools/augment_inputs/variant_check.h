// Runs a task's reference in the sandbox and reports the shapes of its inputs.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_CHECK_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_CHECK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

struct InputCheckOptions {
  int workers = 1;
  std::string sandbox = "bubblewrap";  // or "none", which runs tasks unconfined
  double wall_seconds = 30;            // of one run
  int64_t memory_bytes = int64_t{4} << 30;
};

// What a run of a reference showed.
struct InputCheck {
  std::string problem;  // why it cannot be used; "": it runs
  // Of each input, in order: "float32[16, 256]" for a tensor, "number" or the type's name for
  // others.
  std::vector<std::string> inputs;
};

// Warm workers that run one reference each at a time. Thread-safe.
class InputChecker {
 public:
  // Errors: InvalidArgument for an unknown sandbox; those of WorkerPool::Start.
  static absl::StatusOr<std::unique_ptr<InputChecker>> Start(const InputCheckOptions& options);

  // Runs `source` on one set of random inputs. Unavailable: the run says nothing about the task,
  // because its worker was lost.
  absl::StatusOr<InputCheck> Run(const std::string& task, const std::string& source);

  int workers() const { return pool_->workers(); }

 private:
  InputChecker() = default;

  std::unique_ptr<WorkerPool> pool_;
};

// Why inputs of the shapes `variant` are no variant of those of `original`, both as in
// InputCheck::inputs: another number of inputs, another type or number of dimensions, or the same
// shapes. "": they are one.
std::string CompareInputs(const std::vector<std::string>& original,
                          const std::vector<std::string>& variant);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_CHECK_H_
