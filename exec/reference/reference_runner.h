// Runs the reference: what the trusted reference of a task makes of a seed, from a process that no
// candidate ever shares.
#ifndef TRITONRL_EXEC_REFERENCE_REFERENCE_RUNNER_H_
#define TRITONRL_EXEC_REFERENCE_REFERENCE_RUNNER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "exec/compare/tensor_compare.h"
#include "exec/compare/tensor_layout.h"
#include "exec/messages.pb.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_process.h"
#include "exec/workers/shared_memory.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// The sizes of a reference's shared GPU buffers and of the memory that it took on the GPU.
struct SharedBufferSizes {
  uint64_t in_bytes = 0, out_bytes = 0;
  bool in_turn = false;      // one trial's inputs at a time are in the window
  int64_t call_bytes = 0;    // most that one call took beyond inputs and weights
  int64_t device_bytes = 0;  // the GPU's memory; 0: not known

  // What a candidate is likely to take, for these inputs and outputs. Its own process: a context,
  // three copies of inputs (now, before, as they came), two of outputs, and what a call took in the
  // reference. The reference process beside it, beyond what it keeps anyway: two of inputs and one
  // of outputs at hand, and a call. And the shared GPU buffers.
  int64_t CandidateBytes(int64_t inputs, int64_t outputs) const;
};

// All that is kept of a reference for one seed. Immutable once made, and shared by all candidates
// of the task.
struct ReferenceResult {
  // Outcome::OK, or why the reference cannot be used; its operators, modelled time, device,
  // versions.
  ExecResult run;

  // What a candidate may see: constructor arguments, state, inputs of each trial. Sealed.
  SharedMemory visible;
  std::string visible_layout;             // JSON for the runner's job
  std::vector<std::vector<Leaf>> inputs;  // of each trial, in `visible`

  // What it may not: expected outputs. Sealed; its descriptor never leaves this process.
  SharedMemory hidden;
  std::vector<std::vector<Leaf>> outputs;  // of each call (see CallsOf), in `hidden`

  // Robust mode, by call and leaf of its output: the float64 result and its tolerance, in `hidden`.
  // Empty in the paper's mode.
  std::vector<std::vector<std::optional<ExactLeaf>>> exact;
  std::vector<std::string> trial_names;  // "random", or the variant of the inputs
  std::vector<std::string> notes;        // outputs without a float64 result, and why
  bool shares_memory = false;            // outputs lie in each other's memory, or in the inputs'

  // If the request asked for probes: by name and call, results that must not pass, in `hidden`;
  // nothing where one could not be made.
  std::map<std::string, std::vector<std::optional<std::vector<Leaf>>>> probes;

  // Set where the reference's process goes on and keeps all tensors itself: `visible`, `hidden` and
  // what lies in them are empty then, and offsets in `inputs` are places in a window.
  std::shared_ptr<ReferenceSession> session;
  SharedBufferSizes shared_buffers;

  bool out_of_memory = false;  // why it is not ok(): the GPU's memory, which others may have used

  bool mutates_inputs = false;  // the reference changes its inputs, so a candidate may as well
  bool has_buffers = false;     // outputs may depend on how often forward was called before
  double bytes_per_second = 0;  // of the modelled GPU's memory; 0: not known

  bool ok() const { return run.outcome().reason() == Outcome::OK; }
  // Memory that keeping it takes.
  int64_t bytes() const;
  // How call number `call` is to be judged. Null `exact` in the paper's mode.
  Tolerance ToleranceOf(const ExecRequest& request, size_t call) const;
  // Bytes that any forward has to move: the first trial's inputs read and outputs written once,
  // but never more than the reference itself moves by its own count, as it may need only a part of
  // an input.
  double MinBytesMoved() const;
  // What a candidate is likely to take of the GPU's memory (SharedBufferSizes::CandidateBytes).
  int64_t CandidateBytes() const;
  // Operations that any forward has to make: one for each element of the first call's outputs.
  double MinOperations() const;
};

// Runs the reference, twice if the worker died under it. Always gives a result. With
// context.reference_processes it has a reference process if it is ok().
std::shared_ptr<const ReferenceResult> RunReference(const JobContext& context, WorkerPool* pool,
                                                    const ExecLimits& limits, absl::Time deadline);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_REFERENCE_RUNNER_H_
