// The memory that holds the tensors of one candidate: how its process gets inputs, and how its
// outputs are compared with the reference's.
#ifndef TRITONRL_EXEC_CANDIDATE_TENSOR_EXCHANGE_H_
#define TRITONRL_EXEC_CANDIDATE_TENSOR_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/compare/input_sensitivity.h"
#include "exec/compare/tensor_compare.h"
#include "exec/reference/reference_runner.h"
#include "exec/workers/job.h"
#include "exec/workers/shared_memory.h"

namespace tritonrl {

// An error of any of these is an infrastructure error: the candidate's layouts were checked before.
class TensorExchange {
 public:
  virtual ~TensorExchange() = default;

  // Descriptors for the runner's job, "visible" and "memory"; they stay open as long as this.
  virtual std::vector<JobFd> fds() const = 0;
  // Of "memory": what the runner hands over lies inside.
  virtual uint64_t memory_bytes() const = 0;

  // Has the inputs of a trial lie where the runner will look for them; to be called before it is
  // told to go on to a call with them.
  virtual absl::Status Provide(int trial) = 0;

  // An output in memory with that of the reference runner's call (see CallsOf).
  virtual absl::StatusOr<Comparison> Compare(size_t call, const std::vector<Leaf>& output) = 0;

  // How one tensor of an output in memory, alike in type and shape to that of the reference
  // runner's call, follows what is wanted there, as against its first call
  // (MeasureInputSensitivity). To be asked for the first call once that was compared, which gives
  // no sums.
  virtual absl::StatusOr<InputSensitivity> Follow(size_t call, int leaf, const Leaf& got) = 0;

  // Whether the runner hands over its inputs after a call. Else it says itself whether they are
  // as they were: one that lies could as well have put them back.
  virtual bool inputs_come_back() const = 0;
  // Whether inputs that came back are those of the trial.
  virtual bool SameInputs(int trial, const std::vector<Leaf>& inputs) const = 0;

  // Keeps a copy of an output in memory; the one before is gone.
  virtual absl::Status Keep(const std::vector<Leaf>& output) = 0;
  // Whether an output in memory is the same as the one kept (SavedOutput).
  virtual absl::StatusOr<bool> IsSameAsKept(const std::vector<Leaf>& output) = 0;

  // One order to who times the reference, and the answer (formats in docs/protocol.md).
  virtual absl::StatusOr<std::string> AskTimer(const std::string& order) = 0;
};

// The exchange for a candidate of that reference: by sealed shared memory that is compared here, or
// by shared GPU buffers where a reference process serves. `reference_result` must outlive it. No
// call takes longer than until `deadline`, and none longer than `call_limit` from its turn at the
// reference process on; the time until its turn is added to `queued`, if there is one.
absl::StatusOr<std::unique_ptr<TensorExchange>> OpenExchange(
    const ExecRequest& request, const ReferenceResult& reference_result, absl::Duration call_limit,
    absl::Time deadline, WaitedTime* queued = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_TENSOR_EXCHANGE_H_
