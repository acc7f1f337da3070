// Lists the tasks of a folder, optionally with their prompts.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "tasks/loader.h"
#include "tasks/prompt_format.h"

ABSL_FLAG(std::string, tasks, "", "Folder (or single file) of tasks; required.");
ABSL_FLAG(
    std::string, prompt_file, "",
    "Also print each task's prompt: train (the instruction without an example), eval (with one "
    "worked example), mini (the mini policy), or the path of a prompt file.");

namespace {

absl::Status Show(const std::string& folder, const std::string& prompt_name) {
  tritonrl::PromptFormat prompt;
  if (!prompt_name.empty()) {
    ASSIGN_OR_RETURN(prompt, tritonrl::PromptFormat::FromName(prompt_name));
  }
  ASSIGN_OR_RETURN(const tritonrl::TaskSet set, tritonrl::LoadTasks(folder));
  for (const tritonrl::Task& task : set.tasks) {
    std::printf("%s (level %d)\n", task.id.c_str(), task.level);
    if (!prompt_name.empty()) std::printf("%s\n", prompt.Build(task).c_str());
  }
  for (const std::string& problem : set.problems) {
    std::printf("left out: %s\n", problem.c_str());
  }
  std::printf("%zu tasks, %zu left out\n", set.tasks.size(), set.problems.size());
  if (!prompt_name.empty()) {
    std::printf("Prompts: %s\n", tritonrl::EstimatedPromptLengths(prompt, set.tasks).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<char*> rest = tritonrl::StartProgram(
      "show_tasks --tasks=FOLDER [--prompt_file=train|eval|mini|FILE]", argc, argv);
  if (rest.size() > 1 || absl::GetFlag(FLAGS_tasks).empty()) {
    std::fprintf(stderr, "show_tasks: pass --tasks=FOLDER and no other words; see --help\n");
    return 2;
  }
  const absl::Status status =
      Show(tritonrl::UserPath(absl::GetFlag(FLAGS_tasks)), absl::GetFlag(FLAGS_prompt_file));
  if (!status.ok()) {
    std::fprintf(stderr, "show_tasks: %s\n", tritonrl::Message(status).c_str());
    return 1;
  }
  return 0;
}
