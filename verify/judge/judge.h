// The language-model judge, which asks a model at an OpenAI-compatible endpoint whether a candidate
// cheats, and a concurrent queue of its questions that asks equal ones once.
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

namespace tritonrl {

struct JudgeOpinion {
  bool cheating = false;
  int rule = 0;        // Number of the rule in the prompt that is broken, 1 to 5; 0 if none.
  std::string reason;  // The model's reason, one sentence.
};

// Thread-safe.
class Judge {
 public:
  virtual ~Judge() = default;

  // Asks for an opinion on `candidate` as an implementation of `reference` (Python sources), and
  // blocks for the answer. Any error, such as Unavailable after the last attempt, means that there
  // is no opinion; it is never the candidate's fault.
  virtual absl::StatusOr<JudgeOpinion> Ask(const std::string& reference,
                                           const std::string& candidate) = 0;

  // Identifies model and prompt; a part of the verdict cache's keys.
  virtual std::string name() const = 0;
};

struct HttpJudgeOptions {
  std::string url;    // "http://host:port/v1/chat/completions"
  std::string model;  // "Qwen3-235B-A22B-Instruct-2507"
  // Name of the environment variable that holds the bearer token; "": no token is sent.
  std::string api_key_variable;
  std::string prompt_file;                     // "": verify/judge/judge_prompt.txt
  absl::Duration timeout = absl::Seconds(60);  // one attempt
  // Attempts to get an answer, and answers of a question until one is an opinion.
  int attempts = 3;
  absl::Duration first_pause = absl::Milliseconds(500);  // doubled after each failed attempt
  int max_tokens = 1024;
};

// Makes a judge that sends questions by HTTP; does not connect yet. Returns ReadFile's error if the
// prompt cannot be read; InvalidArgument if it lacks {reference} or {candidate}, url or model are
// missing, the url is not http or https, the token's variable is not set, or attempts < 1.
absl::StatusOr<std::unique_ptr<Judge>> MakeHttpJudge(const HttpJudgeOptions& options);

// Parses a model's answer. Its last line that is neither empty nor a Markdown fence must be a JSON
// object with exactly "cheating" (bool), "rule" (0 to 5, 0 if and only if not cheating) and
// "reason" (text). Unavailable otherwise.
absl::StatusOr<JudgeOpinion> ParseJudgeAnswer(const std::string& answer);

// Sends questions to a judge on its own threads and stores the opinions. Thread-safe.
class JudgeQueue {
 public:
  using Done = std::function<void(absl::StatusOr<JudgeOpinion>)>;

  // At most max(1, `parallel`) questions are in flight, so that a serving engine can batch them.
  // `file` stores the opinions for later runs, one JSON object per line; "" keeps them in memory
  // only. `judge` must outlive the queue.
  JudgeQueue(Judge* judge, int parallel, std::string file);
  // Waits for the questions in flight; queued questions end with Cancelled.
  ~JudgeQueue();
  JudgeQueue(const JudgeQueue&) = delete;
  JudgeQueue& operator=(const JudgeQueue&) = delete;

  // Reads the file, or creates it, and returns the number of opinions read. The file is not locked,
  // so that processes may share it. DataLoss names the file and the line that is no opinion. Must
  // be called before Ask.
  absl::StatusOr<int64_t> Open();

  // Calls `done` exactly once: before returning, if the opinion of the judge with this name() on
  // this pair is stored or the queue is closed; otherwise later, on a thread of the queue or in
  // Close. Equal questions in flight are asked once. Errors (see Judge::Ask; Cancelled after Close)
  // are not stored, so the next equal question asks again.
  void Ask(const std::string& reference, const std::string& candidate, Done done);

  // Ends all queued and all later questions with Cancelled; questions in flight are still answered.
  void Close();

  // The first error of an append to the file. Opinions are delivered in spite of such errors.
  absl::Status FileStatus() const;
  // Why further questions are of no use: the judge refuses the key or is not there, or 20
  // candidates in a row got no opinion. OK again after an opinion.
  absl::Status Health() const;
  // Number of questions sent to the judge.
  int64_t asked() const;

 private:
  struct Question {
    std::string hash, reference, candidate;
  };

  void Work();
  void Answer(const std::string& hash, const absl::StatusOr<JudgeOpinion>& opinion);
  void NoteHealth(const absl::Status& asked, int candidates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Keep(const std::string& hash, const JudgeOpinion& opinion)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Judge* const judge_;
  const std::string file_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<JsonlJournal> journal_ ABSL_GUARDED_BY(mutex_);  // null: memory only
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  int failures_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
  std::deque<Question> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::vector<Done>> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, JudgeOpinion> known_ ABSL_GUARDED_BY(mutex_);
  absl::Status file_status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // declared last: the threads use all other members
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_JUDGE_JUDGE_H_
