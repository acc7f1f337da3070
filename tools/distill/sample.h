// Samples of a teacher: their text as it is taught, the presets of known teachers, and the split
// of tasks into training and evaluation.
#ifndef TRITONRL_TOOLS_DISTILL_SAMPLE_H_
#define TRITONRL_TOOLS_DISTILL_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/endpoint/message.h"
#include "tasks/loader.h"

namespace tritonrl {

// Sampling of a teacher, as in the paper.
struct TeacherPreset {
  std::string name;
  double temperature = 0.6;
  double top_p = 0.95;
};

// The preset "r1" (DeepSeek-R1: 0.6, 0.95) or "gpt-oss-120b" (1.0, 1.0). InvalidArgument names the
// presets that exist.
absl::StatusOr<TeacherPreset> FindTeacher(const std::string& name);

// The text that is taught: `<think>`, plan, `</think>`, code. Reasoning that the endpoint returns
// apart becomes the plan; a plan whose `<think>` was part of the prompt gets one. Text without a
// plan stays as it is.
std::string TaughtText(const EndpointChoice& choice);

// The ids of the tasks for evaluation: the nearest number to `share` of the tasks, but at least one
// if share > 0 and there are two tasks. The choice is a function of the seed and the ids alone.
absl::flat_hash_set<std::string> EvalTasks(const std::vector<Task>& tasks, double share,
                                           uint64_t seed);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_DISTILL_SAMPLE_H_
