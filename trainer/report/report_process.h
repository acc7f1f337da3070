// The child process that keeps report.html and the TensorBoard events of a run up to date.
#ifndef TRITONRL_TRAINER_REPORT_REPORT_PROCESS_H_
#define TRITONRL_TRAINER_REPORT_REPORT_PROCESS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/subprocess.h"

namespace tritonrl {

// Never fails the run: Finish returns errors, and report.log has the output.
class ReportProcess {
 public:
  explicit ReportProcess(std::string run_dir) : run_dir_(std::move(run_dir)) {}

  // Starts the child unless it runs already. Does not wait.
  void Start();
  // Lets the child render a last time and waits for its end; restarts a child that has died. The
  // error says why the report is missing or out of date.
  absl::Status Finish(absl::Duration timeout);

 private:
  absl::StatusOr<Subprocess> Launch(bool follow);

  std::string run_dir_;
  std::optional<Subprocess> child_;
  absl::Status start_status_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_REPORT_REPORT_PROCESS_H_
