// From how a job's process ended to a typed outcome with its evidence.
#ifndef TRITONRL_EXEC_CLASSIFY_H_
#define TRITONRL_EXEC_CLASSIFY_H_

#include "exec/job.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// The result that the runner wrote, or the reason why there is none. Whatever happens before the
// candidate's code begins is the task's fault or ours, never the candidate's.
ExecResult Classify(const JobReport& report, const ExecLimits& limits);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLASSIFY_H_
