// The JSON object that describes a reference's job to the Python side (format: docs/protocol.md),
// and the seeds in it.
#ifndef TRITONRL_EXEC_REFERENCE_JOB_JSON_H_
#define TRITONRL_EXEC_REFERENCE_JOB_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/secret_key.h"
#include "exec/device_gate.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_process.h"

namespace tritonrl {

struct JobSeeds {
  uint64_t weights = 0;            // of the parameters
  std::vector<uint64_t> inputs;    // one per random trial; only the reference runner gets them
  std::vector<uint64_t> forward;   // one per trial: random layers draw the same on both sides
  std::vector<uint64_t> variants;  // one per further trial; only the reference runner gets them
  // Of the parameters, for a candidate's process whose constructor runs again under the true seed.
  uint64_t decoy = 0;
};

// Derives the seeds of one job, each below 2^63, from the seed of the run by HMAC-SHA256 under the
// key of the installation. So none can be computed from another, and a candidate that guesses the
// run's seed, which is 0 as a rule, cannot make the inputs, nor tables of expected outputs.
// `trials` is the number of random trials, `more` the number of trials after them.
JobSeeds DeriveSeeds(const SecretKey& key, uint64_t run_seed, int trials, int more = 0);

// Number of random trials of a request; the default is 5, as in the paper.
int TrialsOf(const ExecRequest& request);

// The trial of each call of forward, in order. The first trial has two calls, which must give the
// same result; each other trial has one.
std::vector<int> CallsOf(int trials);

// Maximum number of trials after the random ones: with RULES_ROBUST 6 variants of the inputs and 8
// input lists of the task, otherwise 0.
int MaxVariants(const ExecRequest& request);

// Data that all jobs of one request share.
struct JobContext {
  const ExecRequest& request;
  std::string device;  // of the reference: "cpu" or "cuda"
  JobSeeds seeds;
  // Soft time limit, which the job checks between two calls. Its error message says more than that
  // of a kill.
  double time_limit_seconds = 0;
  // The request's use of the GPU; null without a GPU.
  DeviceGate::Lease* lease = nullptr;
  // The reference processes of the backend. Null: references are separate jobs.
  ReferenceProcessPool* reference_processes = nullptr;
  // Reference processes hand small tasks over in two memories of the host, of so many bytes each.
  int64_t host_memory_bytes = 0;
  // No other job uses the GPU's memory, so an out-of-memory error is final.
  bool has_all_memory = false;
  int64_t keep_bytes = 0;  // GPU memory that a reference process may keep; 0: its own default
  // Tasks of more bytes stay in their reference process, and pass through windows; -1: its default.
  int64_t whole_bytes = -1;
};

std::string ReferenceJobJson(const JobContext& context);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_JOB_JSON_H_
