// The job objects that Python is given (format in exec/python/README.md), one for each role.
#ifndef TRITONRL_EXEC_ORACLE_JOB_JSON_H_
#define TRITONRL_EXEC_ORACLE_JOB_JSON_H_

#include <string>
#include <vector>

#include "exec/host/device_gate.h"
#include "exec/host/reference_host.h"
#include "exec/messages.pb.h"
#include "exec/oracle/seeds.h"

namespace tritonrl {

// Trials of a request: 5 as in the paper unless it says otherwise.
int TrialsOf(const ExecRequest& request);

// The trial of each call of forward, in order: the first trial twice (a repeated call must give the
// same), then one call for each of the others.
std::vector<int> CallsOf(int trials);

// Trials that may follow the random ones: 4 variants of the inputs and 8 lists of the task's own in
// the robust mode, none else.
int MostVariants(const ExecRequest& request);

// What all jobs of one request share.
struct JobContext {
  const ExecRequest& request;
  std::string device;  // "interpreter" or "cuda"
  JobSeeds seeds;
  // Soft limit that a job holds itself, between two launches, with a better message than a kill.
  double time_limit_seconds = 0;
  DeviceGate::Place* place = nullptr;  // on the GPU, where times are measured
  // References have hosts here, and tensors go through windows; null: through shared memory.
  HostPool* hosts = nullptr;
  // Nobody else uses the GPU's memory: what fails for want of it cannot be had.
  bool has_all_memory = false;
  int64_t keep_bytes = 0;  // of a GPU's memory that a host may keep; 0: its own default
};

std::string OracleJobJson(const JobContext& context);

// `visible` is the oracle's description of what candidates may see, as JSON, `trials` the number of
// inputs in it; with windows their sizes are needed. Neither reference, nor mode and tolerance, nor
// the seeds and names of inputs are in the job.
std::string RunnerJobJson(const JobContext& context, const std::string& visible, int trials,
                          uint64_t in_bytes = 0, uint64_t out_bytes = 0);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_ORACLE_JOB_JSON_H_
