// Shares an engine among many requests: each receives its own tokens in order and can end alone.
#ifndef TRITONRL_ROLLOUT_SERVE_GENERATION_H_
#define TRITONRL_ROLLOUT_SERVE_GENERATION_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

// The samples that one HTTP request needs. Choice number p * n + i is sample i of prompt p.
struct GenerationSpec {
  struct Prompt {
    std::vector<int32_t> ids;
    int max_tokens = 1;
  };
  std::vector<Prompt> prompts;
  int n = 1;
  SamplingSettings sampling;  // Its max_tokens is ignored: each prompt has its own.
  // If set, events have the log-probabilities of drawn tokens, and of prompts, with this number of
  // alternatives.
  std::optional<int> top_log_probs;
  std::optional<int> top_prompt_log_probs;
  // The same seed gives the same draws: prompt p's samples have the key (seed, 0, p).
  uint64_t seed = 0;
  // Whether each token makes event_fd readable, or only the end of a choice.
  bool wake_on_tokens = true;
};

// A drawn token of a choice, or its end; or the log-probabilities of its prompt, before its tokens.
struct TokenEvent {
  int choice = 0;
  bool ended = false;
  int32_t token = -1;  // If not ended.
  float log_prob = 0;
  absl::Time time;                                 // When the engine drew it.
  FinishReason reason = FinishReason::kStop;       // If ended.
  std::shared_ptr<const TokenLogProbs> log_probs;  // Of the token, if asked for.
  // Not null: the event of the prompt; entry i is for its token i + 1.
  std::shared_ptr<const GenerateRequest::PromptLogProbs> prompt;
};

class GenerationService;

// One running request. One thread may use it. The destructor cancels unfinished choices.
class Generation {
 public:
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // A descriptor for poll that becomes readable when there are events to take (see wake_on_tokens),
  // or the request has failed.
  int event_fd() const;

  // The events since the last call, in the order in which the engine drew the tokens; may be empty.
  // An error: the engine failed (never ResourceExhausted), or GenerationService::Abort was called.
  absl::StatusOr<std::vector<TokenEvent>> Take();

  // Ends one choice early; the other choices continue. Its remaining events still arrive, and its
  // end has the reason kCancelled.
  void CancelChoice(int choice);

 private:
  friend class GenerationService;
  class Channel;
  // The choices of a prompt; they are one request of the engine.
  struct Group {
    uint64_t request_id = 0;
    int open = 0;  // Not ended and not cancelled.
  };
  Generation(Engine* engine, int n) : engine_(engine), n_(n) {}

  Engine* const engine_;
  const int n_;  // Choices of each prompt.
  std::shared_ptr<Channel> channel_;
  std::vector<Group> groups_;  // By prompt.
  std::vector<bool> closed_;   // By choice.
};

// Runs requests on an engine. No other code may call the engine's Next.
class GenerationService {
 public:
  // `engine` must outlive this.
  explicit GenerationService(Engine* engine);
  // Cancels all samples and waits until the engine has returned each one. No Generation may be
  // left.
  ~GenerationService();
  GenerationService(const GenerationService&) = delete;
  GenerationService& operator=(const GenerationService&) = delete;

  // Starts all samples of `spec` or none. Errors: those of Engine::Submit, the status given to
  // Abort, and the failure of the engine.
  absl::StatusOr<std::unique_ptr<Generation>> Start(const GenerationSpec& spec);

  // Cancels all running requests. Their Take, and every later Start, returns `why`.
  void Abort(const absl::Status& why);

  // The engine's failure, if it failed.
  absl::Status health() const;

  // Number of unfinished samples that have drawn a token, and of those that have not.
  int64_t running() const;
  int64_t waiting() const;

 private:
  struct Route {
    std::shared_ptr<Generation::Channel> channel;
    int first_choice = 0;
    int left = 0;  // Samples that the engine has not returned.
  };

  absl::Status StartGroup(const GenerationSpec& spec, int prompt, Generation* generation);
  // Sets the callbacks of a request whose sample 0 is choice `base`.
  static void SetCallbacks(const GenerationSpec& spec, int base,
                           const std::shared_ptr<Generation::Channel>& channel,
                           GenerateRequest* request);
  void Run();
  void Deliver(const Sample& sample);
  void EndAll(const absl::Status& why, bool engine_failed);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || submitted_ > delivered_;
  }

  Engine* const engine_;
  mutable absl::Mutex mutex_;
  std::map<uint64_t, Route> routes_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  // Samples accepted and returned by the engine. delivered_ may exceed submitted_ for a moment,
  // because Next may return a sample before Submit returns.
  int64_t submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refuse_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Unfinished samples that have drawn a token; shared with the engine's callbacks.
  const std::shared_ptr<std::atomic<int64_t>> running_;
  std::thread thread_;  // Last, so that all other members exist when it starts.
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_GENERATION_H_
