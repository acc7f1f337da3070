// What a candidate is asked once all its calls were right and its own result is handed over: one
// call under a profiler (on a GPU), and calls with kernels left out.
#ifndef TRITONRL_EXEC_CANDIDATE_FOLLOW_UP_H_
#define TRITONRL_EXEC_CANDIDATE_FOLLOW_UP_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "exec/candidate/ablation.h"
#include "exec/candidate/gpu_profile.h"
#include "exec/messages.pb.h"
#include "exec/workers/job.h"

namespace tritonrl {

struct FollowUpSetup {
  bool profile = false;
  bool ablate = true;
  // Whether the output of the profiled call, on the first trial's inputs, is right.
  std::function<bool(const std::vector<Leaf>& output)> judge_profiled;
  AblationSetup ablation;
};

struct FollowUpResult {
  GpuProfile profile;
  AblationResult ablation;
  bool profile_wrong = false;  // judge_profiled said no
  bool ended = false;          // its process ended in one of these calls
  absl::Status violation;      // an answer that makes no sense
};

// A share of a job's limit for all of it, ending before the limit; the job said its first word at
// `begin`.
absl::Time FollowUpDeadline(absl::Time begin, const ExecLimits& limits);

// `named` is the runner's message that names its kernels. The runner still waits for an answer
// when this returns.
FollowUpResult RunFollowUp(const FollowUpSetup& setup, const std::string& named,
                           const AskRunner& ask);

// Whether one of these calls may have left the device in a bad state: its process ended in it, or
// it raised an error of CUDA.
bool MayHaveHarmedDevice(const FollowUpResult& found);

// Writes down what was found.
void DescribeFollowUp(const FollowUpResult& found, ExecResult* result);

// To be called with the report of a process that ended in such a call. It had handed over its
// result before, so how it ended is no matter to that; a worker that died took the result along,
// which stays as it is. A kernel without which it hung until its limit has not been tried.
void ForgetEnd(JobReport* report, FollowUpResult* found);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_FOLLOW_UP_H_
