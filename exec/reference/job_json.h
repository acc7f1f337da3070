// The job objects (JSON) that Python is given, one for each role (format in docs/protocol.md), and
// the seeds in them.
#ifndef TRITONRL_EXEC_REFERENCE_JOB_JSON_H_
#define TRITONRL_EXEC_REFERENCE_JOB_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "exec/device_gate.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_process.h"

namespace tritonrl {

struct JobSeeds {
  uint64_t weights = 0;            // the candidate knows it, as it may draw its parameters alike
  std::vector<uint64_t> inputs;    // of each trial; the reference runner alone knows them
  std::vector<uint64_t> forward;   // of each trial: random layers must draw alike on both sides
  std::vector<uint64_t> variants;  // of each further trial; the reference runner alone knows them
};

// The seeds of one job, each by SHA-256 from the seed of the run and below 2^63. None can be
// computed from another one; whoever guesses the run's seed itself knows them all, but has gained
// nothing, as inputs are handed over anyway. `more` trials follow the random ones; they have seeds
// of forward as well.
JobSeeds DeriveSeeds(uint64_t run_seed, int trials, int more = 0);

// Trials of a request: 5 as in the paper unless it says otherwise.
int TrialsOf(const ExecRequest& request);

// The trial of each call of forward, in order: the first trial twice (a repeated call must give the
// same), then one call for each of the others.
std::vector<int> CallsOf(int trials);

// Trials that may follow the random ones: 4 variants of the inputs and 8 lists of the task's own in
// the robust mode, none else.
int MaxVariants(const ExecRequest& request);

// What all jobs of one request share.
struct JobContext {
  const ExecRequest& request;
  std::string device;  // "interpreter" or "cuda"
  JobSeeds seeds;
  // Soft limit that a job holds itself, between two launches, with a better message than a kill.
  double time_limit_seconds = 0;
  DeviceGate::Lease* lease = nullptr;  // on the GPU, where times are measured
  // References have reference processes here, and tensors go through shared GPU buffers; null:
  // through shared memory.
  ReferenceProcessPool* reference_processes = nullptr;
  // Nobody else uses the GPU's memory: what fails for want of it cannot be had.
  bool has_all_memory = false;
  int64_t keep_bytes =
      0;  // of a GPU's memory that a reference process may keep; 0: its own default
};

std::string ReferenceJobJson(const JobContext& context);

// `visible` is the reference runner's description of what candidates may see, as JSON, `trials` the
// number of inputs in it; with shared GPU buffers their sizes are needed. Neither reference, nor
// mode and tolerance, nor the seeds and names of inputs are in the job.
std::string RunnerJobJson(const JobContext& context, const std::string& visible, int trials,
                          uint64_t in_bytes = 0, uint64_t out_bytes = 0);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_JOB_JSON_H_
