// Imports KernelBook as tasks to train on.
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "tools/kernelbook/import.h"

ABSL_FLAG(std::string, in, "", "File of KernelBook: Parquet, JSON array or JSON Lines; required.");
ABSL_FLAG(std::string, out, "data/kernelbook", "Folder for the tasks and their records.");
ABSL_FLAG(std::string, kernelbench, "",
          "Folder of KernelBench's tasks; tasks that are the same or nearly so are left out.");
ABSL_FLAG(int, workers, 0, "Tasks that run at once; 0: one for each CPU core.");
ABSL_FLAG(int64_t, limit, 0, "Read this many rows only; 0: all.");
ABSL_FLAG(double, task_seconds, 20, "Time limit of one task's run.");
ABSL_FLAG(double, task_gigabytes, 4, "Memory limit of one task's run.");
ABSL_FLAG(double, near_duplicates, tritonrl::NearDuplicates::kThreshold,
          "Similarity from which on a task counts as a near duplicate of an earlier one with the "
          "same operators: a Jaccard index above 0; 2: look for none.");

namespace {

constexpr char kUsage[] =
    "kernelbook --in=FILE [--out=FOLDER] [--kernelbench=FOLDER] [--workers=N] [--limit=N]\n"
    "Writes each sound task of KernelBook to FOLDER/tasks, and why the others were left out to\n"
    "FOLDER/left_out.jsonl. Tasks run in the sandbox. The same command goes on after a stop.";

// Flags as options; InvalidArgument names the flag.
absl::StatusOr<tritonrl::ImportOptions> Options() {
  tritonrl::ImportOptions options;
  if (absl::GetFlag(FLAGS_in).empty()) return absl::InvalidArgumentError("pass --in=FILE");
  options.in = tritonrl::UserPath(absl::GetFlag(FLAGS_in));
  options.out = tritonrl::UserPath(absl::GetFlag(FLAGS_out));
  if (const std::string folder = absl::GetFlag(FLAGS_kernelbench); !folder.empty()) {
    options.kernelbench = tritonrl::UserPath(folder);
  }
  options.limit = absl::GetFlag(FLAGS_limit);
  options.similarity = absl::GetFlag(FLAGS_near_duplicates);
  options.check.workers = absl::GetFlag(FLAGS_workers);
  options.check.wall_seconds = absl::GetFlag(FLAGS_task_seconds);
  options.check.memory_bytes =
      static_cast<int64_t>(absl::GetFlag(FLAGS_task_gigabytes) * (int64_t{1} << 30));
  if (options.check.workers == 0) {
    options.check.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  if (options.limit < 0) return absl::InvalidArgumentError("--limit must not be negative");
  if (options.check.workers < 1)
    return absl::InvalidArgumentError("--workers must not be negative");
  if (!(options.similarity > 0)) {
    return absl::InvalidArgumentError("--near_duplicates must be above 0");
  }
  if (!(options.check.wall_seconds > 0) || options.check.memory_bytes <= 0) {
    return absl::InvalidArgumentError("--task_seconds and --task_gigabytes must be above 0");
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<char*> rest = tritonrl::StartProgram(kUsage, argc, argv);
  if (rest.size() > 1) {
    std::fprintf(stderr, "kernelbook: %s is no flag; see --help\n", rest[1]);
    return 2;
  }
  absl::StatusOr<tritonrl::ImportOptions> options = Options();
  if (!options.ok()) {
    std::fprintf(stderr, "kernelbook: %s; see --help\n",
                 tritonrl::Message(options.status()).c_str());
    return 2;
  }
  const tritonrl::SignalHandler signals;
  options->stop = [&signals] { return signals.requested(); };
  if (options->kernelbench.empty()) {
    std::fprintf(stderr, "without --kernelbench, tasks of KernelBench are not looked for\n");
  }
  const absl::StatusOr<tritonrl::ImportSummary> summary = tritonrl::ImportKernelBook(*options);
  if (absl::IsCancelled(summary.status())) {
    std::fprintf(stderr, "kernelbook: stopped; the same command goes on from here\n");
    return 75;  // as docs/operations.md has it
  }
  if (!summary.ok()) {
    std::fprintf(stderr, "kernelbook: %s\n", tritonrl::Message(summary.status()).c_str());
    return 1;
  }
  std::printf("%s", tritonrl::ImportTable(*summary).c_str());
  std::printf("%d tasks in %s/tasks\n", static_cast<int>(summary->kept), options->out.c_str());
  std::printf("read %.1f s, compared %.1f s, ran %d tasks in %.1f s\n", summary->read_seconds,
              summary->compare_seconds, static_cast<int>(summary->ran), summary->run_seconds);
  return 0;
}
