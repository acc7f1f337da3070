// From how a job's process ended to a typed outcome with its evidence.
#ifndef TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
#define TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_

#include <string>

#include "exec/messages.pb.h"
#include "exec/outcome/result_json.h"
#include "exec/workers/job.h"

namespace tritonrl {

// The result that the job of this role wrote, or the reason why there is none. What happens in a
// job that runs the reference is the task's fault or ours, what happens in a runner before the
// candidate's code begins is ours. A runner's Outcome::OK means that it ran to its end and no more.
// `result_text`, if given, gets the job's result object where there was one.
ExecResult Classify(const JobReport& report, const ExecLimits& limits, JobRole role,
                    std::string* result_text = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
