#include "tools/endpoint/data_tool.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "parallel/process_group.h"

namespace tritonrl {

namespace {

constexpr absl::string_view kPlaceholder = "{task}";

}  // namespace

absl::StatusOr<std::vector<Task>> LoadTasksFlag(const std::string& folder) {
  if (folder.empty()) return absl::InvalidArgumentError("--tasks is missing: a folder of tasks");
  absl::StatusOr<TaskSet> set = LoadTasks(UserPath(folder));
  if (!set.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--tasks: ", set.status().message()));
  }
  for (const std::string& problem : set->problems) {
    std::fprintf(stderr, "left out: %s\n", problem.c_str());
  }
  return std::move(set->tasks);
}

absl::StatusOr<std::string> OutFolderFlag(const std::string& folder, const std::string& tasks) {
  if (folder.empty())
    return absl::InvalidArgumentError("--out is missing: a folder for the results");
  const std::string path = UserPath(folder);
  const auto plain = [](absl::string_view name) {
    while (absl::ConsumeSuffix(&name, "/")) {
    }
    return std::string(name);
  };
  if (plain(path) == plain(UserPath(tasks))) {
    return absl::InvalidArgumentError("--out and --tasks are the same folder");
  }
  const absl::Status made = CreateDirectories(path);
  if (!made.ok()) return AddContext(made, "--out");
  return path;
}

std::string FillTask(const std::string& prompt, const std::string& source) {
  return absl::StrReplaceAll(prompt, {{kPlaceholder, source}});
}

absl::StatusOr<std::string> ReadTaskPrompt(const std::string& path, const std::string& built_in) {
  std::string file = path.empty() ? "" : UserPath(path);
  if (file.empty()) {
    ASSIGN_OR_RETURN(file, Runfile(built_in));
  }
  ASSIGN_OR_RETURN(std::string prompt, ReadFile(file));
  if (!absl::StrContains(prompt, kPlaceholder)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the prompt ", file, " lacks {task}, the place of the task's source"));
  }
  return prompt;
}

int64_t SampleSeed(uint64_t seed, const std::string& task, int sample) {
  const uint64_t key = MixKeys({seed, Hash64(task), static_cast<uint64_t>(sample)});
  return static_cast<int64_t>(key >> 33);
}

absl::Status CheckAskSettings(const AskSettings& settings) {
  if (!(settings.temperature >= 0 && settings.temperature <= 2)) {
    return absl::InvalidArgumentError("--temperature must be 0 to 2");
  }
  if (!(settings.top_p > 0 && settings.top_p <= 1)) {
    return absl::InvalidArgumentError("--top_p must be above 0, and at most 1");
  }
  if (settings.max_tokens < 1) return absl::InvalidArgumentError("--max_tokens must be at least 1");
  return absl::OkStatus();
}

EndpointRequest RequestFor(const AskSettings& settings, const std::string& task, int sample) {
  EndpointRequest request;
  request.model = settings.model;
  request.temperature = settings.temperature;
  request.top_p = settings.top_p;
  request.max_tokens = settings.max_tokens;
  request.seed = SampleSeed(settings.seed, task, sample);
  request.extra = settings.extra;
  return request;
}

absl::Status FailedRequestsError(int64_t failed) {
  if (failed == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(failed, failed == 1 ? " request" : " requests",
                   " got no response, for the reasons above; the same command asks again"));
}

std::string TwoColumns(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t first = 0, second = 0;
  for (const auto& [name, value] : rows) {
    first = std::max(first, name.size());
    second = std::max(second, value.size());
  }
  std::string text;
  for (const auto& [name, value] : rows) {
    absl::StrAppend(&text, name, std::string(first - name.size() + 2, ' '),
                    std::string(second - value.size(), ' '), value, "\n");
  }
  return text;
}

int RunDataTool(const std::string& name, absl::FunctionRef<absl::StatusOr<bool>()> run) {
  const absl::StatusOr<bool> complete = run();
  if (!complete.ok()) {
    const absl::Status& status = complete.status();
    std::fprintf(stderr, "%s: %s\n", name.c_str(), Message(status).c_str());
    return absl::IsInvalidArgument(status) ? kExitBadUsage : kExitFailed;
  }
  if (*complete) return kExitDone;
  std::fprintf(stderr, "%s: stopped by a signal; the same command goes on\n", name.c_str());
  return kExitRequeue;
}

}  // namespace tritonrl
