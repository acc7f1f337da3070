#include "base/endpoint/threaded_client.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "base/endpoint/budget.h"
#include "base/endpoint/call.h"
#include "base/endpoint/refusal.h"
#include "base/endpoint/retry.h"
#include "base/random.h"
#include "base/status.h"

namespace tritonrl {

namespace {

// The longest sleep while a request waits for a time: the clock of a test moves without a signal.
constexpr absl::Duration kLongestSleep = absl::Milliseconds(100);

using CallPtr = std::unique_ptr<EndpointCall>;

class ThreadedClient : public EndpointClient {
 public:
  ThreadedClient(EndpointOptions options, std::string key, std::unique_ptr<HttpTransfers> transfers)
      : options_(std::move(options)),
        key_(std::move(key)),
        clock_(options_.clock),
        transfers_(std::move(transfers)),
        budget_(options_),
        thread_([this] { Drive(); }) {}

  ~ThreadedClient() override {
    {
      absl::MutexLock lock(&mutex_);
      closing_ = true;
    }
    transfers_->Wake();
    thread_.join();
  }

  void Submit(EndpointRequest request, Done done) override {
    auto call = std::make_unique<EndpointCall>();
    call->request = std::move(request);
    call->done = std::move(done);
    {
      absl::MutexLock lock(&mutex_);
      inbox_.push_back(std::move(call));
    }
    transfers_->Wake();
  }

  void CancelWaiting() override {
    {
      absl::MutexLock lock(&mutex_);
      draining_ = true;
    }
    transfers_->Wake();
  }

  void AddEarlier(const EndpointUsage& usage) override {
    absl::MutexLock lock(&mutex_);
    CountUsage(usage);
  }

  EndpointCounts counts() const override {
    absl::MutexLock lock(&mutex_);
    return counts_;
  }

  const EndpointOptions& options() const override { return options_; }

  absl::Duration CpuTime() const override {
    clockid_t clock;
    timespec time = {};
    // The handle is valid: only the destructor joins the thread.
    auto* const thread = const_cast<std::thread*>(&thread_);
    if (pthread_getcpuclockid(thread->native_handle(), &clock) != 0) return absl::ZeroDuration();
    clock_gettime(clock, &time);
    return absl::DurationFromTimespec(time);
  }

 private:
  enum class State { kOpen, kDraining, kClosing };

  void Drive() {
    while (true) {
      const State state = TakeInbox();
      if (state == State::kClosing) break;
      if (state == State::kDraining) CancelQueued();
      const absl::Time now = clock_->Now();
      const absl::Time next = StartDue(now);
      const absl::Duration sleep =
          next == absl::InfiniteFuture() ? absl::Seconds(1) : std::min(next - now, kLongestSleep);
      for (HttpReply& reply : transfers_->Wait(std::max(sleep, absl::ZeroDuration()))) {
        Finish(std::move(reply));
      }
    }
    CancelQueued();
    for (auto& [id, call] : std::exchange(in_flight_, {})) End(std::move(call), CancelledError());
  }

  State TakeInbox() {
    std::deque<CallPtr> arrived;
    State state = State::kOpen;
    {
      absl::MutexLock lock(&mutex_);
      arrived.swap(inbox_);
      if (draining_) state = State::kDraining;
      if (closing_) state = State::kClosing;
    }
    state_ = state;
    for (CallPtr& call : arrived) {
      call->id = next_id_++;
      if (const absl::Status ready = PrepareCall(options_, call.get()); ready.ok()) {
        queue_.push_back(std::move(call));
      } else {
        End(std::move(call), ready);
      }
    }
    return state;
  }

  static absl::Status CancelledError() {
    return absl::CancelledError("the endpoint is not asked any more");
  }

  void CancelQueued() {
    for (CallPtr& call : std::exchange(queue_, {})) End(std::move(call), CancelledError());
    for (auto& [due, call] : std::exchange(paused_, {})) End(std::move(call), CancelledError());
  }

  // Starts all requests that may start now. Returns the time at which the next one may; infinity if
  // that depends on replies alone.
  absl::Time StartDue(absl::Time now) {
    while (in_flight_.size() < static_cast<size_t>(options_.max_in_flight)) {
      if (now < blocked_until_) return blocked_until_;
      const bool retry = !paused_.empty() && paused_.begin()->first <= now;
      if (!retry && queue_.empty()) break;
      const absl::Time allowed = StartOne(retry, now);
      if (allowed > now) return allowed;
    }
    return paused_.empty() ? absl::InfiniteFuture() : std::max(now, paused_.begin()->first);
  }

  // Starts the first paused request, or the first of the queue. Returns a time after `now` if a
  // limit forbids it until then.
  absl::Time StartOne(bool retry, absl::Time now) {
    const EndpointCall& first = retry ? *paused_.begin()->second : *queue_.front();
    if (retry && now >= first.deadline) {
      EndLate(now);
      return now;
    }
    const absl::Time allowed = budget_.EarliestStart(first.request, now);
    if (allowed > now) return allowed;
    const bool fits = budget_.Fits(first.request, Spent());
    // Waits: a request in flight reserves the most that it can cost, and may give some of it back.
    if (!fits && budget_.holds()) return absl::InfiniteFuture();
    CallPtr call;
    if (retry) {
      call = std::move(paused_.begin()->second);
      paused_.erase(paused_.begin());
    } else {
      call = std::move(queue_.front());
      queue_.pop_front();
    }
    if (fits) {
      Begin(std::move(call), now);
    } else {
      const absl::Status error = budget_.CeilingError(call->request, Spent());
      End(std::move(call), error);
    }
    return now;
  }

  // Ends the first paused request, whose time passed while a limit held it back.
  void EndLate(absl::Time now) {
    CallPtr call = std::move(paused_.begin()->second);
    paused_.erase(paused_.begin());
    const std::string why = WhyGivenUp(options_, *call, now, absl::ZeroDuration(), /*last=*/false);
    GiveUp(std::move(call), why);
  }

  void Begin(CallPtr call, absl::Time now) {
    if (call->attempts == 0) call->deadline = now + options_.total_timeout;
    ++call->attempts;
    HttpRequest http;
    http.url = call->url;
    http.headers = {"Content-Type: application/json"};
    if (!key_.empty()) http.headers.push_back(absl::StrCat("Authorization: Bearer ", key_));
    http.body = call->body;
    http.timeout = std::min(options_.attempt_timeout, call->deadline - now);
    call->share = budget_.Start(call->request, now);
    if (const absl::Status started = transfers_->Start(call->id, std::move(http)); !started.ok()) {
      budget_.End(call->share, in_flight_.empty());
      End(std::move(call), started);
      return;
    }
    const int64_t id = call->id;
    in_flight_[id] = std::move(call);
    absl::MutexLock lock(&mutex_);
    ++counts_.attempts;
    counts_.in_flight = static_cast<int64_t>(in_flight_.size());
  }

  void Finish(HttpReply reply) {
    const auto found = in_flight_.find(reply.id);
    CallPtr call = std::move(found->second);
    in_flight_.erase(found);
    budget_.End(call->share, in_flight_.empty());
    {
      absl::MutexLock lock(&mutex_);
      counts_.in_flight = static_cast<int64_t>(in_flight_.size());
    }
    if (!reply.error.empty()) {
      Retry(std::move(call), /*counts=*/true, std::nullopt, reply.error);
      return;
    }
    std::string code;
    if (reply.status == 200) {
      Accept(std::move(call), std::move(reply.body));
      return;
    }
    const std::string text = WithoutKey(ErrorText(reply.body, &code));
    const std::string error =
        absl::StrCat("HTTP status ", reply.status, text.empty() ? "" : ": ", text);
    const HttpClass kind = ClassifyHttp(reply.status, code);
    if (kind == HttpClass::kRefused) {
      const absl::Status refused =
          RefusalError(options_, reply, call->url, call->request.model, error);
      End(std::move(call), refused);
      return;
    }
    const std::optional<absl::Duration> wanted = ParseRetryAfter(reply.retry_after, clock_->Now());
    const bool limited = kind == HttpClass::kRateLimited;
    if (limited) {
      absl::MutexLock lock(&mutex_);
      ++counts_.rate_limited;
    }
    // The others would be refused as well. A request that waits alone would be overtaken by them.
    if (wanted.has_value() && (limited || reply.status == 503)) {
      const absl::Duration pause = std::min(*wanted, options_.total_timeout);
      blocked_until_ = std::max(blocked_until_, clock_->Now() + pause);
    }
    Retry(std::move(call), /*counts=*/!limited, wanted, error);
  }

  void Accept(CallPtr call, std::string body) {
    absl::StatusOr<EndpointResponse> response = ParseReply(call->request, body);
    if (!response.ok()) {
      {
        absl::MutexLock lock(&mutex_);
        CountUsage(UsageOfBadReply(body));
      }
      Retry(std::move(call), /*counts=*/true, std::nullopt, Message(response.status()));
      return;
    }
    budget_.NoteAnswer(call->share, response->usage);
    {
      absl::MutexLock lock(&mutex_);
      CountUsage(response->usage);
      if (!response->usage.reported) ++counts_.unreported;
      ++counts_.responses;
    }
    call->done(std::move(response));
  }

  // Sends the request again after a pause, or gives up with `error`.
  void Retry(CallPtr call, bool counts, std::optional<absl::Duration> wanted,
             const std::string& error) {
    if (counts) ++call->counted;
    call->error = error;
    const absl::Time now = clock_->Now();
    const absl::Duration own =
        RetryPause(options_.first_pause, options_.longest_pause, call->attempts + 1,
                   MixKeys({options_.seed, static_cast<uint64_t>(call->id)}));
    // A request that was told when to return comes a little later than that, not with all others.
    const absl::Duration pause =
        wanted.has_value() ? *wanted + std::min(own, options_.first_pause) : own;
    const std::string why =
        WhyGivenUp(options_, *call, now, pause, /*last=*/state_ == State::kDraining);
    if (!why.empty()) return GiveUp(std::move(call), why);
    {
      absl::MutexLock lock(&mutex_);
      ++counts_.retries;
    }
    paused_.emplace(now + pause, std::move(call));
  }

  void GiveUp(CallPtr call, const std::string& why) {
    const absl::Status status = absl::UnavailableError(absl::StrCat("the endpoint ", options_.url,
                                                                    " gave no usable answer ", why,
                                                                    ": ", WithoutKey(call->error)));
    End(std::move(call), status);
  }

  void End(CallPtr call, const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      ++counts_.failures;
    }
    call->done(status);
  }

  // An endpoint may quote the key in its error message.
  std::string WithoutKey(const std::string& text) const {
    return key_.empty() ? text : absl::StrReplaceAll(text, {{key_, "[the key]"}});
  }

  double Spent() const {
    absl::MutexLock lock(&mutex_);
    return counts_.cost;
  }

  void CountUsage(const EndpointUsage& usage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    counts_.prompt_tokens += usage.prompt_tokens;
    counts_.completion_tokens += usage.completion_tokens;
    counts_.cost += budget_.Cost(usage);
  }

  const EndpointOptions options_;
  const std::string key_;
  Clock* const clock_;
  const std::unique_ptr<HttpTransfers> transfers_;

  mutable absl::Mutex mutex_;
  std::deque<CallPtr> inbox_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  EndpointCounts counts_ ABSL_GUARDED_BY(mutex_);

  // Used by the client's thread alone.
  State state_ = State::kOpen;
  int64_t next_id_ = 0;
  std::deque<CallPtr> queue_;                  // not begun yet, in the order of Submit
  std::multimap<absl::Time, CallPtr> paused_;  // before their next attempt, by its time
  absl::flat_hash_map<int64_t, CallPtr> in_flight_;
  absl::Time blocked_until_ =
      absl::InfinitePast();  // the endpoint asks not to be called until then
  EndpointBudget budget_;    // Cost is const and may be called by any thread

  std::thread thread_;  // declared last: it uses all other members
};

}  // namespace

std::unique_ptr<EndpointClient> MakeThreadedClient(const EndpointOptions& options, std::string key,
                                                   std::unique_ptr<HttpTransfers> transfers) {
  return std::make_unique<ThreadedClient>(options, std::move(key), std::move(transfers));
}

}  // namespace tritonrl
