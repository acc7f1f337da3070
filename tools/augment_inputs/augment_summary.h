// The figures of a run that makes variants of tasks.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_SUMMARY_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/endpoint/client.h"

namespace tritonrl {

struct AugmentSummary {
  int64_t tasks = 0;
  int wanted = 0;        // variants of each task
  int64_t broken = 0;    // tasks that do not run themselves (Family::broken)
  int64_t proposed = 0;  // variants in the responses, at most `wanted` of each
  int64_t kept = 0;
  std::map<int, int64_t> tasks_by_kept;     // number of kept variants -> tasks with a response
  std::map<std::string, int64_t> left_out;  // reason -> variants
  // Reason for which the task itself fails its check, though it is not broken -> tasks.
  std::map<std::string, int64_t> originals;
  std::vector<std::string> incomplete;  // names of the tasks with fewer variants than wanted
  int64_t failed = 0;                   // requests of this run without a response
  int64_t lost = 0;                     // tasks with a check whose worker was lost
  EndpointCounts counts;
  bool interrupted = false;  // stopped by a signal: nothing but the journals is written
  absl::Status ended;        // the endpoint's error that ended the asking; the rest is written
};

// The summary as a table for people.
std::string AugmentTable(const AugmentSummary& summary);

// "98 of 100 tasks have 5 variants; fewer: level1/3_x, level2/7_y": how many tasks have all
// variants, and the first of the others.
std::string CompleteTasksText(const AugmentSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_AUGMENT_SUMMARY_H_
