// A parallel loop that can be stopped, and a recorder that writes finished items to a journal and
// shows progress.
#ifndef TRITONRL_VERIFY_PIPELINE_PROGRESS_RECORDER_H_
#define TRITONRL_VERIFY_PIPELINE_PROGRESS_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/jsonl.h"
#include "base/progress.h"

namespace tritonrl {

// Calls work(0), ..., work(count - 1) once each, started in this order, at most `parallel` at the
// same time. After a call has returned false, no further call starts. Returns when all started
// calls have ended.
void ParallelForUntil(size_t count, int parallel, const std::function<bool(size_t)>& work);

// Records the progress of a list of units. Not thread-safe.
class ProgressRecorder {
 public:
  // `file` may be null: no journal. progress.first is the number of units done by earlier runs.
  explicit ProgressRecorder(const ProgressOptions& progress,
                            std::unique_ptr<JsonlJournal> file = nullptr);

  // Counts one unit as done and appends its line to the journal.
  absl::Status Keep(const std::string& line);
  // Counts one unit as done without a line.
  void Done() { ++done_; }

  // Updates the progress bar, with `counts` behind it, while units are left.
  void Show(const std::string& counts);
  // Prints the bar and `counts` as a permanent last line.
  void Finish(const std::string& counts);
  // Prints `text` as a permanent line.
  void Print(const std::string& text) { progress_.Print(text); }

 private:
  const int64_t total_;
  int64_t done_;
  const std::unique_ptr<JsonlJournal> file_;
  Progress progress_;
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_PROGRESS_RECORDER_H_
