// Candidates for a soak: honest ones and a dozen kinds of hostile ones, each with its permitted
// outcomes.
#ifndef TRITONRL_EXEC_TESTING_SOAK_SOAK_PLAN_H_
#define TRITONRL_EXEC_TESTING_SOAK_SOAK_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "exec/messages.pb.h"

namespace tritonrl {

struct SoakCase {
  int id = 0;
  const char* kind = "";                  // "honest", "hang", "crash", ...
  std::string source;                     // first prints SoakMark(id)
  double wall_seconds = 0;                // limit
  std::vector<Outcome::Reason> outcomes;  // the permitted outcomes
};

struct SoakPlanOptions {
  int count = 0;
  double evil_share = 0;  // 0 to 1
  uint64_t seed = 1;
  bool fill_memory = true;  // includes memory bombs; only if a memory cgroup protects the host
  double extra_seconds =
      0;  // added to each limit: start of a job before the candidate's first line
};

// Honest candidates are Triton softmax kernels for kSoftmaxReference.
std::vector<SoakCase> PlanSoak(const SoakPlanOptions& options);

// The line that a case prints: "soak case 17." The period distinguishes 1 from 17.
std::string SoakMark(int id);

// Returns "" if `result` is a right verdict of `soak`, else the error.
std::string CheckSoakResult(const SoakCase& soak, const ExecResult& result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOAK_SOAK_PLAN_H_
