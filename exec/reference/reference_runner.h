// Runs a task's reference for one seed, in a process that no candidate ever shares, and reads its
// inputs and expected outputs.
#ifndef TRITONRL_EXEC_REFERENCE_REFERENCE_RUNNER_H_
#define TRITONRL_EXEC_REFERENCE_REFERENCE_RUNNER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/compare/tensor_compare.h"
#include "exec/compare/tensor_layout.h"
#include "exec/messages.pb.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_process.h"
#include "exec/workers/shared_memory.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Sizes in bytes of a reference's windows and of its GPU memory.
struct SharedBufferSizes {
  // Of the windows of one candidate, for the inputs and the output of one call; 0: there are none.
  uint64_t in_bytes = 0, out_bytes = 0;
  int64_t call_bytes = 0;    // maximum memory of one call beyond inputs and weights
  int64_t device_bytes = 0;  // memory of the GPU; 0: unknown

  // Estimates the GPU memory that a run of a candidate needs, for the bytes of one trial's `inputs`
  // and `outputs`. In the executor: a context, one call as in the reference with a tag for each
  // byte, and once more what torch makes before it is copied. In the reference's process, beyond
  // the memory that it keeps anyway: one call. Plus the windows.
  int64_t CandidateBytes(int64_t inputs, int64_t outputs) const;
};

// The results of a reference for one seed. Immutable once made, and shared by all candidates of the
// task.
struct ReferenceResult {
  // Outcome::OK or the reason why the reference cannot be used; operators, device and versions of
  // the reference. The modelled time and device are added by ModelReference (exec/timing).
  ExecResult run;

  // Memory that candidates may see: constructor arguments, state, inputs of each trial. Sealed.
  SharedMemory visible;
  std::string visible_layout;             // JSON for the candidate's job
  std::vector<std::vector<Leaf>> inputs;  // of each trial, in `visible`

  // Memory that candidates must not see: expected outputs. Sealed; only the reference's process
  // receives its descriptor.
  SharedMemory hidden;
  std::vector<std::vector<Leaf>> outputs;  // of each call (see CallsOf), in `hidden`

  // With RULES_ROBUST, by call and leaf of its output: the float64 result and its tolerance, in
  // `hidden`. Empty with other rules.
  std::vector<std::vector<std::optional<ExactLeaf>>> exact;
  std::vector<std::string> trial_names;  // "random", or the variant of the inputs
  std::vector<std::string> notes;        // outputs without a float64 result, with the cause
  std::vector<std::string> left_out;     // inputs that it is not made for, with the cause
  bool shares_memory = false;            // an output aliases another output or an input

  // For a request with probes, by name and call: results that must not pass, in `hidden`; nullopt
  // if a probe could not be made.
  std::map<std::string, std::vector<std::optional<std::vector<Leaf>>>> probes;

  // Set if a reference process serves. Unless has_memory(), it keeps inputs and outputs: `visible`
  // holds arguments and state alone, `hidden` is empty, and offsets in `inputs` refer to the
  // window.
  std::shared_ptr<ReferenceSession> session;
  SharedBufferSizes shared_buffers;

  bool out_of_memory = false;  // not ok() because the GPU's memory was full, maybe by other jobs

  bool mutates_inputs = false;  // the reference changes its inputs, so a candidate may too
  bool has_buffers = false;     // outputs may depend on the number of earlier forward calls
  double bytes_per_second = 0;  // memory bandwidth of the modelled GPU; 0: none is modelled

  // Whether all tensors are in `visible` and `hidden`.
  bool has_memory() const { return shared_buffers.in_bytes == 0; }
  bool ok() const { return run.outcome().reason() == Outcome::OK; }
  // Memory of this result in this process.
  int64_t bytes() const;
  // The tolerance for the output of call number `call`; `exact` is null without RULES_ROBUST.
  Tolerance ToleranceOf(const ExecRequest& request, size_t call) const;
  // Lower bound on the bytes that any forward moves: the first trial's inputs and outputs once, but
  // at most the bytes that the reference itself moves by its own count, as a forward may need only
  // a part of an input.
  double MinBytesMoved() const;
  // SharedBufferSizes::CandidateBytes for the first trial's inputs and outputs.
  int64_t CandidateBytes() const;
  // GPU memory that the reference's first call takes at most: weights, inputs, and what it makes.
  int64_t CallBytes() const;
  // Lower bound on the operations of any forward: one for each element of the first call's outputs.
  double MinOperations() const;
};

// The options of a pool whose workers run references: those of `options` with their code instead of
// candidates'. NotFound: the program's runfiles lack it.
absl::StatusOr<WorkerPoolOptions> ReferencePoolOptions(WorkerPoolOptions options);

// Runs the reference, a second time if the worker died during the first. Never returns null:
// ReferenceResult::run says whether it succeeded. With context.reference_processes a result that is
// ok() has a session.
std::shared_ptr<ReferenceResult> RunReference(const JobContext& context, WorkerPool* pool,
                                              const ExecLimits& limits, absl::Time deadline);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_REFERENCE_RUNNER_H_
