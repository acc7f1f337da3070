// The common parts of programs that turn a folder of tasks into a folder of data.
#ifndef TRITONRL_TOOLS_ENDPOINT_DATA_TOOL_H_
#define TRITONRL_TOOLS_ENDPOINT_DATA_TOOL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/endpoint/client.h"
#include "tasks/loader.h"

namespace tritonrl {

// Reads the tasks of --tasks; files that are not tasks are named on stderr.
// InvalidArgument begins with "--tasks".
absl::StatusOr<std::vector<Task>> LoadTasksFlag(const std::string& folder);

// The absolute path of --out, which is made if it is missing. InvalidArgument if it is empty or the
// folder `tasks` of --tasks; errors begin with "--out".
absl::StatusOr<std::string> OutFolderFlag(const std::string& folder, const std::string& tasks);

// A prompt with its only placeholder {task} replaced by the task's source.
std::string FillTask(const std::string& prompt, const std::string& source);

// The text of the file `path`, or of `built_in` in the runfiles if `path` is empty. InvalidArgument
// if it lacks {task}.
absl::StatusOr<std::string> ReadTaskPrompt(const std::string& path, const std::string& built_in);

// The seed of sample `sample` of a task, in [0, 2^31): some endpoints take no larger one.
int64_t SampleSeed(uint64_t seed, const std::string& task, int sample);

// How a data tool asks a model.
struct AskSettings {
  std::string model;  // the endpoint's name of it
  std::string extra;  // further members of each request, a JSON object
  double temperature = 1.0;
  double top_p = 1.0;
  int max_tokens = 16384;  // of a response
  uint64_t seed = 0;       // of the samples' seeds
};

// InvalidArgument names the flag whose value is out of range.
absl::Status CheckAskSettings(const AskSettings& settings);

// The request for sample `sample` of a task, without its prompt or messages.
EndpointRequest RequestFor(const AskSettings& settings, const std::string& task, int sample);

// Unavailable if some requests got no response: the results are not complete.
absl::Status FailedRequestsError(int64_t failed);

// Rows of two columns, name and value, aligned.
std::string TwoColumns(const std::vector<std::pair<std::string, std::string>>& rows);

// Runs a program that asks an endpoint, and returns its exit code: 0 done, 1 failed, 2 bad flag or
// input, 75 stopped by a signal (the same command goes on). Errors are printed as one sentence,
// after the program's name.
int RunDataTool(const std::string& name, absl::FunctionRef<absl::StatusOr<bool>()> run);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_ENDPOINT_DATA_TOOL_H_
