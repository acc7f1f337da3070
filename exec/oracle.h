// The oracle: what the trusted reference of a task makes of a seed, from a process that no
// candidate ever shares.
#ifndef TRITONRL_EXEC_ORACLE_H_
#define TRITONRL_EXEC_ORACLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "exec/job_json.h"
#include "exec/messages.pb.h"
#include "exec/shared_memory.h"
#include "exec/tensor_layout.h"
#include "exec/worker_pool.h"

namespace tritonrl {

// All that is kept of a reference for one seed. Immutable once made, and shared by all candidates
// of the task.
struct OracleResult {
  // EXEC_OK, or why the reference cannot be used; its operators, modelled time, device, versions.
  ExecResult run;

  // What a candidate may see: constructor arguments, state, inputs of each trial. Sealed.
  SharedMemory visible;
  std::string visible_layout;             // JSON for the runner's job
  std::vector<std::vector<Leaf>> inputs;  // of each trial, in `visible`

  // What it may not: expected outputs. Sealed; its descriptor never leaves this process.
  SharedMemory hidden;
  std::vector<std::vector<Leaf>> outputs;  // of each call (see CallsOf), in `hidden`

  bool mutates_inputs = false;  // the reference changes its inputs, so a candidate may as well
  bool has_buffers = false;     // outputs may depend on how often forward was called before
  double bytes_per_second = 0;  // of the modelled GPU's memory; 0: not known

  bool ok() const { return run.outcome() == EXEC_OK; }
  // Memory that keeping it takes.
  int64_t bytes() const;
  // Bytes that any forward has to move: the first trial's inputs read and outputs written once,
  // but never more than the reference itself moves by its own count, as it may need only a part of
  // an input.
  double CompulsoryBytes() const;
  // Operations that any forward has to make: one for each element of the first call's outputs.
  double LeastOperations() const;
};

// Runs the reference, twice if the worker died under it. Always gives a result.
std::shared_ptr<const OracleResult> RunOracle(const JobContext& context, WorkerPool* pool,
                                              const ExecLimits& limits, absl::Time deadline);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_ORACLE_H_
