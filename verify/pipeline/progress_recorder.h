// Parallel loop that can be stopped, and a recorder that journals finished items and shows
// progress.
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

// Calls work(0) ... work(count - 1), each once, begun in this order, at most `parallel` at a time.
// Once a call has returned false none is begun any more. Returns when all have ended.
void ParallelForUntil(size_t count, int parallel, const std::function<bool(size_t)>& work);

// What is kept and shown of a list; one thread at a time.
class ProgressRecorder {
 public:
  // `file`: null if nothing is kept. Units that were done before are progress.first.
  explicit ProgressRecorder(const ProgressOptions& progress,
                            std::unique_ptr<JsonlJournal> file = nullptr);

  // One more unit is done; its line goes to the file.
  absl::Status Keep(const std::string& line);
  // One more unit is done, of which nothing is kept here.
  void Done() { ++done_; }

  // The passing state while units are left, and the line that stays at the end.
  void Show(const std::string& counts);
  void Finish(const std::string& counts);
  // A message of its own.
  void Print(const std::string& text) { progress_.Print(text); }

 private:
  const int64_t total_;
  int64_t done_;
  const std::unique_ptr<JsonlJournal> file_;
  Progress progress_;
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_PROGRESS_RECORDER_H_
