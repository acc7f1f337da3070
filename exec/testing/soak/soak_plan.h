// Candidates for a soak: honest ones and a dozen kinds of evil, each with what must become of it.
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
  std::string source;                     // says its id on stdout before it does anything else
  double wall_seconds = 0;                // limit
  std::vector<Outcome::Reason> outcomes;  // any of these is right
};

struct SoakPlanOptions {
  int count = 0;
  double evil_share = 0;  // 0 to 1
  uint64_t seed = 1;
  // Honest ones are softmax kernels in Triton for kSoftmaxReference; false: plain statements for
  // the fake runner of testing/fake_runner.py.
  bool torch_runner = true;
  bool fill_memory = true;   // only where a memory cgroup protects the machine
  bool cuda = false;         // kinds that leave a CUDA context of no use, or never end on the GPU
  double extra_seconds = 0;  // what a job takes until the candidate's first line runs
};

std::vector<SoakCase> PlanSoak(const SoakPlanOptions& options);

// What a case prints: "soak case 17." The point keeps 1 apart from 17.
std::string SoakMark(int id);

// "" when `result` is the verdict of `soak`, else what is wrong with it.
std::string CheckSoakResult(const SoakCase& soak, const ExecResult& result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOAK_SOAK_PLAN_H_
