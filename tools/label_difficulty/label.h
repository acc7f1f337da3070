// Labels tasks with their difficulty level by the responses of a model.
#ifndef TRITONRL_TOOLS_LABEL_DIFFICULTY_LABEL_H_
#define TRITONRL_TOOLS_LABEL_DIFFICULTY_LABEL_H_

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/endpoint/client.h"
#include "tasks/loader.h"
#include "tools/endpoint/data_tool.h"
#include "tools/label_difficulty/level.h"

namespace tritonrl {

struct LabelOptions {
  std::vector<Task> tasks;
  std::string prompt;  // with the placeholder {task}
  // Folder of the results, which exists:
  //   responses.jsonl              each response (base/endpoint/response_journal.h)
  //   level1/, level2/, level3/    the labelled tasks, as the trainer reads them
  //   labels.jsonl                 task, level, file, votes and reasons
  //   summary.json                 the figures of the table
  std::string out;
  // The sampling of the paper's labels.
  AskSettings ask = {.temperature = 0.7, .top_p = 0.8, .max_tokens = 4096};
  int votes = 1;  // responses for each task
  std::function<bool()> stop = [] { return false; };
  std::FILE* messages = stderr;
};

struct LabelSummary {
  std::array<int64_t, kHighestLevel + 1> tasks = {};  // of each level; [0]: without a label
  int64_t divided = 0;                                // tasks whose votes differ
  int64_t failed = 0;                                 // requests of this run without a response
  EndpointCounts counts;
  bool interrupted = false;  // stopped by a signal: nothing but the journal is written
  absl::Status ended;        // the endpoint's error that ended the asking; the rest is written
};

// Asks for the votes that `out` does not hold yet, and writes the tasks into the folders of their
// levels; a task without a single vote is left out. The same call goes on after a stop.
// InvalidArgument: two tasks would get the same file. Other errors: those of AskAll and the files.
absl::StatusOr<LabelSummary> LabelTasks(const LabelOptions& options, EndpointClient* client);

// The summary as a table for people.
std::string LabelTable(const LabelSummary& summary);

// What a run wrote below its folder: "level1, level3, labels.jsonl, summary.json".
std::string LabelFiles(const LabelSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_LABEL_DIFFICULTY_LABEL_H_
