// bazel run //exec/testing/soak: runs many candidates, a share of which hang, crash, fork or fill
// memory.
//
// Prints the number of running and finished candidates of each kind to stderr every three seconds,
// and a table and a line of JSON to stdout at the end. Exit codes: 0: every verdict is right, there
// are no leaks, and memory is flat; 1: otherwise; 2: a flag has an invalid value.
#include <stdio.h>

#include <string>

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "exec/testing/soak/soak.h"

ABSL_FLAG(int, count, 2000, "number of candidates");
ABSL_FLAG(double, evil, 1.0 / 3, "share of hostile candidates, 0 to 1");
ABSL_FLAG(uint64_t, seed, 1, "seed of the kinds of candidates and their order");
ABSL_FLAG(int, workers, 2, "candidates that run at the same time");
ABSL_FLAG(std::string, backend, "native", "native or cuda");
ABSL_FLAG(std::string, sandbox, "bubblewrap", "bubblewrap or none");
ABSL_FLAG(std::string, timing, "auto",
          "whether honest candidates are timed: true, false, or auto (not on a GPU, where a timed "
          "candidate waits until all others have left it)");
ABSL_FLAG(double, seconds, 0,
          "start no further candidate after this many seconds and report on those that ran; 0: run "
          "all of --count");
ABSL_FLAG(
    double, extra_seconds, 0,
    "seconds added to each candidate's wall-clock limit (0.4 s for one that hangs) for the work "
    "before its first line runs; 0: 2, on a GPU 20");
ABSL_FLAG(std::string, json, "", "also write the JSON line to this file");

namespace tritonrl {
namespace {

absl::StatusOr<SoakOptions> OptionsFromFlags() {
  SoakOptions options;
  options.count = absl::GetFlag(FLAGS_count);
  options.evil_share = absl::GetFlag(FLAGS_evil);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.workers = absl::GetFlag(FLAGS_workers);
  options.backend = absl::GetFlag(FLAGS_backend);
  options.sandbox = absl::GetFlag(FLAGS_sandbox);
  options.seconds = absl::GetFlag(FLAGS_seconds);
  if (options.count < 1) return absl::InvalidArgumentError("--count must be at least 1");
  if (options.workers < 1 || options.workers > 1024) {
    return absl::InvalidArgumentError("--workers must be 1 to 1024");
  }
  if (!(options.evil_share >= 0 && options.evil_share <= 1)) {
    return absl::InvalidArgumentError("--evil must be 0 to 1");
  }
  const bool cuda = options.backend == "cuda";
  if (!cuda && options.backend != "native") {
    return absl::InvalidArgumentError("--backend must be native or cuda");
  }
  const double extra = absl::GetFlag(FLAGS_extra_seconds);
  if (!(extra >= 0) || !(options.seconds >= 0)) {
    return absl::InvalidArgumentError("--seconds and --extra_seconds must not be negative");
  }
  options.extra_seconds = extra > 0 ? extra : (cuda ? 20 : 2);
  const std::string timing = absl::GetFlag(FLAGS_timing);
  if (timing != "auto" && timing != "true" && timing != "false") {
    return absl::InvalidArgumentError("--timing must be auto, true or false");
  }
  options.timing = timing == "auto" ? !cuda : timing == "true";
  options.tell = [](const SoakState& state) {
    fprintf(stderr, "%s\n", SoakStateText(state).c_str());
  };
  return options;
}

int Complain(int code, const absl::Status& status) {
  fprintf(stderr, "soak: %s\n", Message(status).c_str());
  return code;
}

int Main() {
  const auto options = OptionsFromFlags();
  if (!options.ok()) return Complain(2, options.status());
  fprintf(stderr, "soak: starting %d workers (%s) and running an honest candidate at each\n",
          options->workers, options->backend.c_str());
  const auto report = RunSoak(*options);
  if (!report.ok()) return Complain(1, report.status());
  const std::string json = SoakReportJson(*report) + "\n";
  fputs(SoakReportText(*report).c_str(), stdout);
  fputs(json.c_str(), stdout);
  fflush(stdout);
  if (const std::string file = absl::GetFlag(FLAGS_json); !file.empty()) {
    const absl::Status written = WriteFileAtomic(UserPath(file), json);
    if (!written.ok()) return Complain(1, written);
  }
  return report->ok() ? 0 : 1;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Many candidates, a share of them evil, through one pool.", argc, argv);
  return tritonrl::Main();
}
