// The engine shared by many requests: each sees its own tokens, in order, and can end alone.
#ifndef TRITONRL_ROLLOUT_SERVE_GENERATION_H_
#define TRITONRL_ROLLOUT_SERVE_GENERATION_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

// What one HTTP request wants of the engine. Choice number p * n + i is sample i of prompt p.
struct GenerationSpec {
  struct Prompt {
    std::vector<int32_t> ids;
    int max_tokens = 1;
  };
  std::vector<Prompt> prompts;
  int n = 1;
  SamplingSettings sampling;  // Its max_tokens is that of each prompt.
  // The same seed gives the same draws: prompt p's samples have the key (seed, 0, p).
  uint64_t seed = 0;
  // Whether each token makes event_fd readable, or the ends of choices alone.
  bool wake_on_tokens = true;
};

// A drawn token of a choice, or its end.
struct TokenEvent {
  int choice = 0;
  bool ended = false;
  int32_t token = -1;  // If not ended.
  float log_prob = 0;
  absl::Time time;                            // When the engine drew it.
  FinishReason reason = FinishReason::kStop;  // If ended.
};

class GenerationService;

// One running request. To be used by one thread; dropping it cancels what still runs.
class Generation {
 public:
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // A descriptor that becomes readable when there is something to take (see wake_on_tokens) or the
  // request failed; for poll.
  int event_fd() const;

  // What came since the last call, in the order in which the engine drew it; empty if nothing did.
  // An error: the engine failed, or GenerationService::Abort was called.
  absl::StatusOr<std::vector<TokenEvent>> Take();

  // Ends one choice early, while its siblings go on; its events still come, the end as kCancelled.
  void CancelChoice(int choice);

 private:
  friend class GenerationService;
  class Channel;
  // The choices of a prompt, which are one request of the engine.
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

// Feeds requests to an engine that nobody else takes samples from.
class GenerationService {
 public:
  // `engine` must outlive this.
  explicit GenerationService(Engine* engine);
  // Cancels all and waits until the engine has given back every sample. No Generation may be left.
  ~GenerationService();
  GenerationService(const GenerationService&) = delete;
  GenerationService& operator=(const GenerationService&) = delete;

  // Starts all samples of `spec` or none. Errors are those of Engine::Submit, and what Abort or a
  // failed engine left.
  absl::StatusOr<std::unique_ptr<Generation>> Start(const GenerationSpec& spec);

  // Cancels everything that runs and lets its Take return `why`, as does every later Start.
  void Abort(const absl::Status& why);

  // The engine's failure, if it failed.
  absl::Status health() const;

  // Samples that have drawn a token and go on; samples that wait for their first.
  int64_t running() const;
  int64_t waiting() const;

 private:
  struct Route {
    std::shared_ptr<Generation::Channel> channel;
    int first_choice = 0;
    int left = 0;  // Samples that the engine has not given back.
  };

  absl::Status StartGroup(const GenerationSpec& spec, int prompt, Generation* generation);
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
  // Samples that the engine has taken and given back. The second may be ahead for a moment, as a
  // sample may come out before Submit returns.
  int64_t submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refuse_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Samples that have drawn a token and did not end; shared with the engine's callbacks.
  const std::shared_ptr<std::atomic<int64_t>> running_;
  std::thread thread_;  // Last, so that all else is there when it starts.
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_GENERATION_H_
