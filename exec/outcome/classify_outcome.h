// Derives a typed outcome with its evidence from the way in which a job's process ended.
#ifndef TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
#define TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_

#include <string>

#include "exec/messages.pb.h"
#include "exec/outcome/result_json.h"
#include "exec/workers/job.h"

namespace tritonrl {

// Returns the result that the job wrote or, if it wrote none, an outcome that says why. A failed
// reference's job counts as a failure of the task or as an infrastructure error. A runner that
// fails before the candidate's code begins is an infrastructure error. A runner's Outcome::OK means
// only that it ran to its end. If the job wrote a result object, `*result_text` becomes its text.
ExecResult Classify(const JobReport& report, const ExecLimits& limits, JobRole role,
                    std::string* result_text = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
