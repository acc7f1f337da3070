// Derives a typed outcome with its evidence from the way in which a job's process ended.
#ifndef TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
#define TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_

#include <string>

#include "exec/messages.pb.h"
#include "exec/outcome/result_json.h"
#include "exec/workers/job.h"

namespace tritonrl {

// Returns the result that a job of this role wrote, or the reason why there is none. A failure of a
// reference's job is the task's, or an infrastructure error; a failure of a runner before the
// candidate's code began is an infrastructure error. A runner's Outcome::OK means only that it ran
// to its end. `result_text`, if given, is set to the job's result object if there is one.
ExecResult Classify(const JobReport& report, const ExecLimits& limits, JobRole role,
                    std::string* result_text = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
