#ifndef TRITONRL_VERIFY_JUDGE_JUDGE_H_
#define TRITONRL_VERIFY_JUDGE_JUDGE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/jsonl.h"

// The language-model judge: asks a model behind an OpenAI-compatible endpoint whether a candidate
// cheats.
//
// Concurrent, deduplicating request queue in front of a judge.

namespace tritonrl {

struct JudgeOpinion {
  bool cheating = false;
  int rule = 0;        // Number of the broken rule of the prompt, 1 to 5; 0 if none.
  std::string reason;  // The model's one sentence.
};

class Judge {
 public:
  virtual ~Judge() = default;

  // Blocks for one opinion on `candidate` as an implementation of `reference` (Python sources). Any
  // error means that there is no opinion: Unavailable after all attempts failed. Never the
  // candidate's fault. Threads may share a judge.
  virtual absl::StatusOr<JudgeOpinion> Ask(const std::string& reference,
                                           const std::string& candidate) = 0;

  // Identifies model and prompt; a part of the verdict cache's key.
  virtual std::string name() const = 0;
};

struct HttpJudgeOptions {
  std::string url;    // "http://host:port/v1/chat/completions"
  std::string model;  // "Qwen3-235B-A22B-Instruct-2507"
  // Name of the environment variable with the key sent as a bearer token; "": none is sent.
  std::string api_key_variable;
  std::string prompt_file;                     // "": the prompt of this folder, judge_prompt.txt
  absl::Duration timeout = absl::Seconds(60);  // one attempt
  int attempts = 3;
  absl::Duration first_pause = absl::Milliseconds(500);  // doubled after each failed attempt
  int max_tokens = 1024;
};

// NotFound or InvalidArgument when the prompt cannot be read or lacks {reference} or {candidate},
// url or model are missing, the url is none of http or https, or the key's variable is not set.
// Does not connect.
absl::StatusOr<std::unique_ptr<Judge>> MakeHttpJudge(const HttpJudgeOptions& options);

// Reads a model's answer: its last non-empty line, or the text of its last fenced block, must be
// one JSON object with "cheating" (bool), "rule" (0 to 5, 0 exactly when not cheating) and "reason"
// (text), and no other member.
absl::StatusOr<JudgeOpinion> ParseJudgeAnswer(const std::string& answer);

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

  // Reads the file, or creates it. Processes may share it: it has no lock. DataLoss names the file
  // and the line that is no opinion. Returns the number of opinions read. Call it before Ask.
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
  absl::Status Keep(const std::string& hash, const JudgeOpinion& opinion)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Judge* const judge_;
  const std::string file_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<JsonlJournal> journal_ ABSL_GUARDED_BY(mutex_);  // null: memory only
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Question> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::vector<Done>> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, JudgeOpinion> known_ ABSL_GUARDED_BY(mutex_);
  absl::Status file_status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_JUDGE_JUDGE_H_
