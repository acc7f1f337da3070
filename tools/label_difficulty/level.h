// Difficulty levels of tasks: a labeller's response, the majority of several, and the name of
// the labelled file.
#ifndef TRITONRL_TOOLS_LABEL_DIFFICULTY_LEVEL_H_
#define TRITONRL_TOOLS_LABEL_DIFFICULTY_LEVEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tritonrl {

constexpr int kLowestLevel = 1, kHighestLevel = 3;

struct LevelAnswer {
  int level = 0;       // 1 to 3
  std::string reason;  // the model's, one line; may be empty
};

// Reads the last line "Level: N" of a response, and the last line "Reason: ..." before it; Markdown
// stars around them are ignored. DataLoss if there is no such level.
absl::StatusOr<LevelAnswer> ParseLevel(const std::string& answer);

// The level with the most votes; of several such levels, the one nearest to the median vote, and
// the lower of two. `votes` must not be empty.
int MajorityLevel(absl::Span<const int> votes);

// The name of a labelled task below the folder of its level: the task's id without folders named
// "levelN", so that an old level does not hide the new one.
std::string NameWithoutLevel(const std::string& task_id);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_LABEL_DIFFICULTY_LEVEL_H_
