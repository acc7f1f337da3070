#include "rollout/serve/generation.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {

// Passes events from the engine's thread and the service's thread to the thread of one HTTP
// request.
class Generation::Channel {
 public:
  Channel(int choices, bool wake_on_tokens, std::shared_ptr<std::atomic<int64_t>> running)
      : wake_on_tokens_(wake_on_tokens),
        running_(std::move(running)),
        event_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        states_(choices, State::kWaiting) {}
  ~Channel() {
    if (event_fd_ >= 0) close(event_fd_);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int event_fd() const { return event_fd_; }

  void Token(int choice, int32_t token, float log_prob,
             std::shared_ptr<const TokenLogProbs> log_probs) {
    absl::MutexLock lock(&mutex_);
    if (states_[choice] == State::kWaiting) {
      states_[choice] = State::kRunning;
      ++*running_;
    }
    Push({choice, false, token, log_prob, absl::Now(), {}, std::move(log_probs), nullptr});
  }

  void Prompt(int choice, std::shared_ptr<const GenerateRequest::PromptLogProbs> prompt) {
    absl::MutexLock lock(&mutex_);
    Push({choice, false, -1, 0, absl::Now(), {}, nullptr, std::move(prompt)});
  }

  void End(int choice, FinishReason reason) {
    absl::MutexLock lock(&mutex_);
    Leave(choice);
    Push({choice, true, -1, 0, absl::Now(), reason, nullptr, nullptr});
  }

  // Take returns `why` from now on. With `all_ended` no further tokens or ends will follow.
  void Fail(const absl::Status& why, bool all_ended) {
    absl::MutexLock lock(&mutex_);
    if (all_ended) {
      for (size_t choice = 0; choice < states_.size(); ++choice) Leave(static_cast<int>(choice));
    }
    if (failure_.ok()) failure_ = why;
    Wake();
  }

  absl::StatusOr<std::vector<TokenEvent>> Take() {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    if (awake_) {
      eventfd_t count;
      eventfd_read(event_fd_, &count);
      awake_ = false;
    }
    return std::exchange(events_, {});
  }

 private:
  enum class State : uint8_t { kWaiting, kRunning, kEnded };

  void Leave(int choice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (states_[choice] == State::kRunning) --*running_;
    states_[choice] = State::kEnded;
  }
  void Push(TokenEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool wakes = event.ended || wake_on_tokens_;
    events_.push_back(std::move(event));
    if (wakes) Wake();
  }
  // One system call wakes the reader; further ones follow only after the reader has taken the
  // events.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!awake_) eventfd_write(event_fd_, 1);
    awake_ = true;
  }

  const bool wake_on_tokens_;
  const std::shared_ptr<std::atomic<int64_t>> running_;
  const int event_fd_;
  absl::Mutex mutex_;
  std::vector<TokenEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<State> states_ ABSL_GUARDED_BY(mutex_);
  bool awake_ ABSL_GUARDED_BY(mutex_) = false;  // event_fd_ is readable.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

Generation::~Generation() {
  for (const Group& group : groups_) {
    if (group.open > 0) engine_->Cancel(group.request_id);
  }
}

int Generation::event_fd() const { return channel_->event_fd(); }

absl::StatusOr<std::vector<TokenEvent>> Generation::Take() {
  ASSIGN_OR_RETURN(std::vector<TokenEvent> events, channel_->Take());
  for (const TokenEvent& event : events) {
    if (!event.ended || closed_[event.choice]) continue;
    closed_[event.choice] = true;
    --groups_[event.choice / n_].open;
  }
  return events;
}

void Generation::CancelChoice(int choice) {
  if (closed_[choice]) return;
  closed_[choice] = true;
  Group& group = groups_[choice / n_];
  --group.open;
  engine_->CancelSample(group.request_id, choice % n_);
}

GenerationService::GenerationService(Engine* engine)
    : engine_(engine),
      running_(std::make_shared<std::atomic<int64_t>>(0)),
      thread_([this] { Run(); }) {}

GenerationService::~GenerationService() {
  Abort(absl::UnavailableError("the server has ended"));
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::StatusOr<std::unique_ptr<Generation>> GenerationService::Start(const GenerationSpec& spec) {
  const int prompts = static_cast<int>(spec.prompts.size());
  std::unique_ptr<Generation> generation(new Generation(engine_, spec.n));
  generation->channel_ =
      std::make_shared<Generation::Channel>(prompts * spec.n, spec.wake_on_tokens, running_);
  if (generation->event_fd() < 0) {
    return absl::ResourceExhaustedError("the server has no file descriptor left for this request");
  }
  generation->closed_.assign(static_cast<size_t>(prompts) * spec.n, false);
  for (int prompt = 0; prompt < prompts; ++prompt) {
    RETURN_IF_ERROR(StartGroup(spec, prompt, generation.get()));
  }
  return generation;
}

void GenerationService::SetCallbacks(const GenerationSpec& spec, int base,
                                     const std::shared_ptr<Generation::Channel>& channel,
                                     GenerateRequest* request) {
  // By sample: what on_log_probs has said of the token that on_token says next. All callbacks run
  // on the engine's thread.
  auto said = std::make_shared<std::vector<std::shared_ptr<const TokenLogProbs>>>(spec.n);
  request->on_token = [channel, base, said](int index, int32_t token, float log_prob) {
    channel->Token(base + index, token, log_prob, std::exchange((*said)[index], nullptr));
  };
  if (spec.top_log_probs) {
    request->top_log_probs = *spec.top_log_probs;
    request->on_log_probs = [said](int index, std::shared_ptr<const TokenLogProbs> log_probs) {
      (*said)[index] = std::move(log_probs);
    };
  }
  if (spec.top_prompt_log_probs) {
    request->top_prompt_log_probs = *spec.top_prompt_log_probs;
    request->on_prompt_log_probs =
        [channel, base,
         n = spec.n](const std::shared_ptr<const GenerateRequest::PromptLogProbs>& prompt) {
          for (int i = 0; i < n; ++i) channel->Prompt(base + i, prompt);
        };
  }
}

absl::Status GenerationService::StartGroup(const GenerationSpec& spec, int prompt,
                                           Generation* generation) {
  const std::shared_ptr<Generation::Channel> channel = generation->channel_;
  const int base = prompt * spec.n;  // The choice of sample 0.
  GenerateRequest request;
  request.prompt = spec.prompts[prompt].ids;
  request.n = spec.n;
  request.sampling = spec.sampling;
  request.sampling.max_tokens = spec.prompts[prompt].max_tokens;
  request.key = {.run_seed = spec.seed, .step = 0, .task = static_cast<uint64_t>(prompt)};
  SetCallbacks(spec, base, channel, &request);
  {
    absl::MutexLock lock(&mutex_);
    if (!refuse_.ok()) return refuse_;
    request.id = next_id_++;
    routes_[request.id] = {channel, base, spec.n};
  }
  const uint64_t id = request.id;
  const absl::Status submitted = engine_->Submit(std::move(request));
  absl::MutexLock lock(&mutex_);
  if (!submitted.ok()) {
    routes_.erase(id);
    return submitted;
  }
  submitted_ += spec.n;
  generation->groups_.push_back({id, spec.n});
  return absl::OkStatus();
}

void GenerationService::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &GenerationService::HasWork));
      if (submitted_ <= delivered_) return;
    }
    absl::StatusOr<Sample> sample = engine_->Next(absl::InfiniteFuture());
    if (sample.ok()) {
      Deliver(*sample);
    } else if (!absl::IsDeadlineExceeded(sample.status()) && !absl::IsOutOfRange(sample.status())) {
      // To a client ResourceExhausted would mean a full server that has room again later.
      absl::Status failure = sample.status();
      if (absl::IsResourceExhausted(failure)) failure = absl::InternalError(Message(failure));
      EndAll(failure, /*engine_failed=*/true);
      return;
    }
  }
}

void GenerationService::Deliver(const Sample& sample) {
  std::shared_ptr<Generation::Channel> channel;
  int choice = 0;
  {
    absl::MutexLock lock(&mutex_);
    ++delivered_;
    const auto route = routes_.find(sample.request_id);
    if (route == routes_.end()) return;
    channel = route->second.channel;
    choice = route->second.first_choice + sample.index;
    if (--route->second.left == 0) routes_.erase(route);
  }
  channel->End(choice, sample.finish_reason);
}

void GenerationService::EndAll(const absl::Status& why, bool engine_failed) {
  std::vector<std::pair<uint64_t, std::shared_ptr<Generation::Channel>>> open;
  {
    absl::MutexLock lock(&mutex_);
    if (refuse_.ok()) refuse_ = why;
    if (engine_failed) failure_ = why;
    for (const auto& [id, route] : routes_) open.emplace_back(id, route.channel);
    if (engine_failed) {
      routes_.clear();
      delivered_ = submitted_;
    }
  }
  for (const auto& [id, channel] : open) {
    channel->Fail(why, engine_failed);
    if (!engine_failed) engine_->Cancel(id);
  }
}

void GenerationService::Abort(const absl::Status& why) { EndAll(why, /*engine_failed=*/false); }

absl::Status GenerationService::health() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

int64_t GenerationService::running() const { return running_->load(); }

int64_t GenerationService::waiting() const {
  absl::MutexLock lock(&mutex_);
  return std::max<int64_t>(submitted_ - delivered_ - running_->load(), 0);
}

}  // namespace tritonrl
