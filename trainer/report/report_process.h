// The child process that updates report.html and the TensorBoard events of a run.
#ifndef TRITONRL_TRAINER_REPORT_REPORT_PROCESS_H_
#define TRITONRL_TRAINER_REPORT_REPORT_PROCESS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/subprocess.h"

namespace tritonrl {

// Errors never end the run: Finish returns them, and report.log holds the child's output.
class ReportProcess {
 public:
  explicit ReportProcess(std::string run_dir) : run_dir_(std::move(run_dir)) {}

  // Starts the child unless it is running. Does not wait.
  void Start();
  // Makes the child render a last time and waits for its end; if the child has died, runs another
  // one. The error says why the report is missing or out of date.
  absl::Status Finish(absl::Duration timeout);

 private:
  absl::StatusOr<Subprocess> Launch(bool follow);

  std::string run_dir_;
  std::optional<Subprocess> child_;
  absl::Status start_status_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_REPORT_REPORT_PROCESS_H_
