// Asks a judge about many candidates at once and never twice about the same one, so that a slow
// model holds up neither the runs of other candidates nor their verdicts.
#ifndef TRITONRL_VERIFY_JUDGE_QUEUE_H_
#define TRITONRL_VERIFY_JUDGE_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "verify/judge.h"

namespace tritonrl {

class JudgeQueue {
 public:
  using Done = std::function<void(absl::StatusOr<JudgeOpinion>)>;

  // At most `parallel` (at least 1) questions are in flight; a serving engine works on them as one
  // batch. `file` keeps opinions, one JSON object a line, for later runs; "" keeps them in memory
  // only. `judge` must outlive the queue.
  JudgeQueue(Judge* judge, int parallel, std::string file);
  // Waits for the questions in flight; what waits ends as Cancelled.
  ~JudgeQueue();
  JudgeQueue(const JudgeQueue&) = delete;
  JudgeQueue& operator=(const JudgeQueue&) = delete;

  // Reads the file, which is made if it is missing, and cuts off a torn last line. DataLoss names
  // file and line of any other line that is no opinion. Returns the number of opinions read. Call
  // before Ask.
  absl::StatusOr<int64_t> Open();

  // Calls `done` exactly once: here and now when the judge of this name has given its opinion on
  // this pair before, else on a thread of the queue. Equal questions in flight are asked once. An
  // error (see Judge::Ask; Cancelled after Close) is not kept, so the next one asks again.
  void Ask(const std::string& reference, const std::string& candidate, Done done);

  // What waits ends as Cancelled, as does what is asked from now on.
  void Close();

  // The first error met while appending to the file; opinions are still delivered.
  absl::Status FileStatus() const;
  // Questions that went to the judge.
  int64_t asked() const;

 private:
  struct Question {
    std::string hash, reference, candidate;
  };

  void Work();
  void Answer(const std::string& hash, const absl::StatusOr<JudgeOpinion>& opinion);
  absl::Status Keep(const std::string& hash, const JudgeOpinion& opinion);

  Judge* const judge_;
  const std::string file_;
  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Question> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::vector<Done>> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, JudgeOpinion> known_ ABSL_GUARDED_BY(mutex_);
  absl::Status file_status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_JUDGE_QUEUE_H_
