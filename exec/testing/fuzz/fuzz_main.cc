// bazel run --config=asan //exec/testing/fuzz: damaged command streams and texts of Triton IR.
//
//   bazel run --config=asan //exec/testing/fuzz -- --count=1000000 --seed=1 --keep=$PWD/failures
//   bazel run --config=asan //exec/testing/fuzz -- --seed=1 --only=314986
//
// A sanitizer's report goes to stderr; inputs that failed are kept in files. --only runs one of
// them again, with the same --kinds and --seed. Exit codes: 0: none failed; 1: some did, or the run
// could not be made; 2: a flag has an invalid value.
#include <stdio.h>

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/status.h"
#include "exec/testing/fuzz/fuzz_run.h"
#include "exec/testing/fuzz/fuzz_target.h"

ABSL_FLAG(uint64_t, count, 100000, "number of inputs");
ABSL_FLAG(uint64_t, seed, 1, "seed of the inputs");
ABSL_FLAG(uint64_t, first, 0, "number of the first input");
ABSL_FLAG(int64_t, only, -1, "number of one input to run again");
ABSL_FLAG(std::vector<std::string>, kinds,
          (std::vector<std::string>{"streams", "texts", "launches"}),
          "inputs that take turns: streams (commands of a candidate's process), texts (Triton IR "
          "for the parser), launches (Triton IR that mostly verifies)");
ABSL_FLAG(int, jobs, 1, "processes at a time");
ABSL_FLAG(absl::Duration, limit, absl::Minutes(1), "time that one input may take");
ABSL_FLAG(std::string, keep, "", "folder for inputs that failed; empty: the temporary folder");

namespace tritonrl {
namespace {

absl::StatusOr<FuzzOptions> OptionsFromFlags() {
  FuzzOptions options;
  options.first = absl::GetFlag(FLAGS_first);
  options.count = absl::GetFlag(FLAGS_count);
  options.jobs = absl::GetFlag(FLAGS_jobs);
  options.limit = absl::GetFlag(FLAGS_limit);
  if (const int64_t only = absl::GetFlag(FLAGS_only); only >= 0) {
    options.first = static_cast<uint64_t>(only);
    options.count = 1;
  }
  if (options.count < 1) return absl::InvalidArgumentError("--count must be at least 1");
  if (options.jobs < 1 || options.jobs > 1024) {
    return absl::InvalidArgumentError("--jobs must be 1 to 1024");
  }
  return options;
}

// Writes the inputs that failed, and says where.
absl::Status Keep(FuzzTarget* target, const FuzzReport& report) {
  std::string folder = absl::GetFlag(FLAGS_keep);
  if (folder.empty()) {
    ASSIGN_OR_RETURN(folder, MakeTempDirectory("fuzz"));
  } else {
    folder = UserPath(folder);
    RETURN_IF_ERROR(CreateDirectories(folder));
  }
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  for (const FuzzFailure& failure : report.failures) {
    const std::string path =
        JoinPath(folder, absl::StrCat("seed", seed, "_", failure.number, ".input"));
    RETURN_IF_ERROR(WriteFileAtomic(path, target->Input(failure.number)));
    printf("input %llu failed: %s, kept in %s\n", static_cast<unsigned long long>(failure.number),
           failure.reason.c_str(), path.c_str());
  }
  return absl::OkStatus();
}

int Complain(int code, const absl::Status& status) {
  fprintf(stderr, "fuzz: %s\n", Message(status).c_str());
  return code;
}

int Main() {
  absl::StatusOr<FuzzOptions> options = OptionsFromFlags();
  if (!options.ok()) return Complain(2, options.status());
  const auto target = MakeFuzzTarget(absl::GetFlag(FLAGS_kinds), absl::GetFlag(FLAGS_seed));
  if (!target.ok()) return Complain(2, target.status());
  Progress progress({.label = "inputs", .total = static_cast<int64_t>(options->count)});
  const absl::Time start = absl::Now();
  const auto rate = [&](uint64_t done) {
    return absl::StrFormat("%.0f inputs/s",
                           static_cast<double>(done) / absl::ToDoubleSeconds(absl::Now() - start));
  };
  options->tell = [&](uint64_t done, size_t failures) {
    progress.Tick(static_cast<int64_t>(done), absl::StrCat(rate(done), ", ", failures, " failed"));
  };
  const absl::StatusOr<FuzzReport> report = RunFuzz(target->get(), *options);
  if (!report.ok()) return Complain(1, report.status());
  progress.ClearOpenLine();
  if (!report->failures.empty()) {
    const absl::Status kept = Keep(target->get(), *report);
    if (!kept.ok()) return Complain(1, kept);
  }
  printf("%llu inputs, %zu failed, %s\n", static_cast<unsigned long long>(report->done),
         report->failures.size(), rate(report->done).c_str());
  return report->failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Damaged command streams and texts of Triton IR.", argc, argv);
  return tritonrl::Main();
}
