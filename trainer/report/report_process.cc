#include "trainer/report/report_process.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {

absl::StatusOr<Subprocess> ReportProcess::Launch(bool follow) {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string program, Runfile("trainer/report/publish.py"));
  SubprocessOptions options;
  options.argv = {python.interpreter, program, absl::StrCat("--run=", run_dir_)};
  if (follow) {
    options.argv.push_back("--follow");
    options.argv.push_back(absl::StrCat("--parent=", getpid()));
  }
  options.env = python.Environment();
  options.out = Stdio::File(run_dir_ + "/report.log");
  options.err = options.out;
  // If the trainer is killed, the child ends without a last rendering; the resumed run starts
  // another.
  options.parent_death_signal = SIGHUP;
  return Subprocess::Start(options);
}

void ReportProcess::Start() {
  if (child_.has_value()) return;
  absl::StatusOr<Subprocess> child = Launch(/*follow=*/true);
  start_status_ = child.status();
  if (child.ok()) child_ = *std::move(child);
}

absl::Status ReportProcess::Finish(absl::Duration timeout) {
  if (child_.has_value()) {
    child_->Signal(SIGTERM);
    const std::optional<ExitStatus> ended = child_->Wait(timeout);
    const bool good = ended.has_value() && ended->ok();
    child_.reset();
    if (good) return absl::OkStatus();
  }
  absl::StatusOr<Subprocess> once = Launch(/*follow=*/false);
  if (!once.ok()) return AddContext(once.status(), "the report was not written");
  const std::optional<ExitStatus> ended = once->Wait(timeout);
  if (ended.has_value() && ended->ok()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the report is missing or out of date (",
                   ended.has_value() ? ended->ToString() : "it took too long", "): see ", run_dir_,
                   "/report.log"));
}

}  // namespace tritonrl
