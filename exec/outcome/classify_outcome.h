// Derives a typed outcome with its evidence from the way in which a job's process ended.
#ifndef TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
#define TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_

#include <string>

#include "exec/messages.pb.h"
#include "exec/outcome/result_json.h"
#include "exec/workers/job.h"

namespace tritonrl {

// Returns the result that a reference's job wrote or, if there is none, an outcome that says why. A
// failed reference's job counts as a failure of the task or as an infrastructure error. A
// candidate's process writes no result; one that ends before the candidate's code begins is an
// infrastructure error. `*result_text` becomes the text of the result object, if there is one.
ExecResult Classify(const JobReport& report, const ExecLimits& limits, JobRole role,
                    std::string* result_text = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_OUTCOME_CLASSIFY_OUTCOME_H_
