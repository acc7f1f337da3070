#include "rollout/batched_engine.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "rollout/check.h"

namespace tritonrl {

BatchedEngine::BatchedEngine(std::unique_ptr<ModelRunner> runner, const Options& options)
    : options_(options),
      runner_(std::move(runner)),
      scheduler_({.num_pages = runner_->num_pages(),
                  .page_size = runner_->page_size(),
                  .max_running = runner_->max_running(),
                  .max_step_tokens = runner_->max_step_tokens()}),
      weights_version_(options.weights_version),
      thread_([this] { Run(); }) {}

BatchedEngine::~BatchedEngine() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

// ---- Called from any thread.

absl::Status BatchedEngine::Validate(const GenerateRequest& request) const {
  const std::string name = absl::StrCat("request ", request.id);
  RETURN_IF_ERROR(AddContext(ValidateSampling(request.sampling), name));
  if (request.prompt.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the prompt is empty"));
  }
  if (request.n < 1 || request.first_index < 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": n is ", request.n, " and first_index ",
                                                   request.first_index,
                                                   ", must be at least 1 and 0"));
  }
  const int64_t length = static_cast<int64_t>(request.prompt.size()) + request.sampling.max_tokens;
  if (length > runner_->max_length()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": prompt of ", request.prompt.size(), " tokens and max_tokens ",
        request.sampling.max_tokens, " exceed the engine's max_length ", runner_->max_length()));
  }
  if (!scheduler_.Fits(static_cast<int64_t>(request.prompt.size()), request.sampling.max_tokens)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": prompt of ", request.prompt.size(), " tokens and max_tokens ",
                     request.sampling.max_tokens, " do not fit the cache of ",
                     int64_t{runner_->num_pages()} * runner_->page_size(),
                     " tokens even alone; lower max_tokens or give the cache more memory"));
  }
  for (int32_t token : request.prompt) {
    if (token < 0 || token >= runner_->vocab_size()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": prompt token ", token,
                                                     " is outside the model's vocabulary of ",
                                                     runner_->vocab_size()));
    }
  }
  return absl::OkStatus();
}

absl::Status BatchedEngine::Submit(GenerateRequest request) {
  RETURN_IF_ERROR(Validate(request));
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) {
    return absl::FailedPreconditionError(
        absl::StrCat("request ", request.id, ": a weight update is under way"));
  }
  if (outstanding_ + request.n > options_.max_outstanding) {
    return absl::ResourceExhaustedError(
        absl::StrCat("request ", request.id, ": ", outstanding_, " samples are outstanding, with ",
                     request.n, " more than the limit of ", options_.max_outstanding));
  }
  if (!active_requests_.insert(request.id).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", request.id, ": a request of this id is not finished"));
  }
  outstanding_ += request.n;
  unfinished_ += request.n;
  submitted_.push_back(std::move(request));
  return absl::OkStatus();
}

bool BatchedEngine::NextIsDecided() const {
  return !finished_.empty() || outstanding_ == 0 || !failure_.ok();
}

absl::StatusOr<Sample> BatchedEngine::Next(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithDeadline(absl::Condition(this, &BatchedEngine::NextIsDecided), deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat("no sample ended in time; ", outstanding_, " are outstanding"));
  }
  if (finished_.empty()) {
    if (!failure_.ok()) return failure_;
    return absl::OutOfRangeError("no sample is outstanding");
  }
  Sample sample = std::move(finished_.front());
  finished_.pop_front();
  --outstanding_;
  return sample;
}

void BatchedEngine::Cancel(uint64_t request_id) {
  absl::MutexLock lock(&mutex_);
  if (active_requests_.count(request_id) > 0) cancelled_.push_back(request_id);
}

int64_t BatchedEngine::Outstanding() const {
  absl::MutexLock lock(&mutex_);
  return outstanding_;
}

absl::Status BatchedEngine::BeginWeightUpdate() {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  // A step hands its samples over after its last use of the weights, so none unfinished means that
  // the weights are not in use.
  if (unfinished_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot update the weights: ", unfinished_, " samples are being generated"));
  }
  updating_ = true;
  return absl::OkStatus();
}

void BatchedEngine::EndWeightUpdate(uint64_t version) {
  absl::MutexLock lock(&mutex_);
  updating_ = false;
  weights_version_ = version;
}

EngineStats BatchedEngine::Stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

// ---- The engine's thread.

void BatchedEngine::Run() {
  while (TakeWork()) {
    const absl::Time start = absl::Now();
    const absl::Status status = Step();
    Publish(absl::ToDoubleSeconds(absl::Now() - start));
    if (!status.ok()) {
      absl::MutexLock lock(&mutex_);
      failure_ = AddContext(status, "generation engine");
      return;
    }
  }
}

void BatchedEngine::Publish(double seconds) {
  const Scheduler::Stats& totals = scheduler_.stats();
  absl::MutexLock lock(&mutex_);
  stats_.prompt_tokens = totals.prompt_tokens;
  stats_.generated_tokens += step_tokens_;
  stats_.decode_steps = launched_;
  stats_.finished_samples += static_cast<int64_t>(ended_.size());
  stats_.busy_seconds += seconds;
  stats_.preemptions = totals.preemptions;
  stats_.recomputed_tokens = totals.recomputed_tokens;
  stats_.shared_tokens = totals.shared_tokens;
  stats_.peak_pages = scheduler_.pool().peak();
  stats_.num_pages = scheduler_.pool().num_pages();
  step_tokens_ = 0;
  unfinished_ -= static_cast<int64_t>(ended_.size());
  for (Sample& sample : ended_) finished_.push_back(std::move(sample));
  ended_.clear();
  for (uint64_t request : ended_requests_) active_requests_.erase(request);
  ended_requests_.clear();
}

bool BatchedEngine::HasWork() const {
  return stopping_ || !submitted_.empty() || !cancelled_.empty();
}

bool BatchedEngine::TakeWork() {
  std::vector<GenerateRequest> submitted;
  std::vector<uint64_t> cancelled;
  uint64_t version = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (groups_.empty()) mutex_.Await(absl::Condition(this, &BatchedEngine::HasWork));
    if (stopping_) return false;
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    version = weights_version_;
  }
  for (GenerateRequest& request : submitted) StartGroup(std::move(request), version);
  for (uint64_t request : cancelled) {
    const auto it = group_of_request_.find(request);
    if (it != group_of_request_.end()) CancelGroup(it->second);
  }
  return true;
}

void BatchedEngine::StartGroup(GenerateRequest request, uint64_t weights_version) {
  const int64_t number = next_group_++;
  scheduler_.Add(number, static_cast<int64_t>(request.prompt.size()), request.sampling.max_tokens,
                 request.n);
  group_of_request_[request.id] = number;
  Group& group = groups_[number];
  group.unfinished = request.n;
  group.ended.resize(request.n);
  group.samples.resize(request.n);
  for (int i = 0; i < request.n; ++i) {
    group.samples[i].request_id = request.id;
    group.samples[i].index = request.first_index + i;
    group.samples[i].weights_version = weights_version;
  }
  group.request = std::move(request);
}

absl::Status BatchedEngine::Step() {
  Scheduler::Step step = scheduler_.Schedule();
  const bool idle = step.slices.empty();
  Check(!idle || !in_flight_.empty() || groups_.empty(), "nothing to do for samples that wait");
  if (!idle) RETURN_IF_ERROR(Launch(std::move(step)));
  if (!in_flight_.empty() &&
      (idle || static_cast<int>(in_flight_.size()) >= runner_->max_in_flight())) {
    RETURN_IF_ERROR(CollectOldest());
  }
  // The steps launched ahead still use the weights.
  while (groups_.empty() && !in_flight_.empty()) RETURN_IF_ERROR(CollectOldest());
  return absl::OkStatus();
}

absl::Status BatchedEngine::Launch(Scheduler::Step step) {
  ModelStep launched;
  launched.copies = step.copies;
  launched.slices.reserve(step.slices.size());
  for (const Scheduler::Slice& slice : step.slices) {
    const Group& group = groups_.at(slice.group);
    const std::vector<int32_t>& prompt = group.request.prompt;
    std::span<const int32_t> tokens = prompt;
    int64_t first = slice.first;
    if (slice.sample >= 0) {
      tokens = group.samples[slice.sample].tokens;
      first -= static_cast<int64_t>(prompt.size());
    }
    // A token whose draw is under way is not known yet; the runner has it in the slot.
    const bool known = first + slice.count <= static_cast<int64_t>(tokens.size());
    launched.slices.push_back(
        {.tokens = known ? tokens.subspan(first, slice.count) : std::span<const int32_t>(),
         .slot = slice.slot,
         .first = slice.first,
         .count = slice.count,
         .pages = slice.pages,
         .draws = slice.draws});
  }
  launched.draws.reserve(step.draws.size());
  for (const Scheduler::Draw& draw : step.draws) {
    const GenerateRequest& request = groups_.at(draw.group).request;
    launched.draws.push_back(
        {.slot = draw.slot,
         .sampling = &request.sampling,
         .stream = SampleStream(request.key, request.first_index + draw.sample),
         .position = draw.index});
  }
  RETURN_IF_ERROR(runner_->Launch(launched));
  ++launched_;
  in_flight_.push_back(std::move(step.draws));
  return absl::OkStatus();
}

absl::Status BatchedEngine::CollectOldest() {
  ASSIGN_OR_RETURN(const std::vector<TokenDraw> tokens, runner_->Collect());
  const Draws draws = std::move(in_flight_.front());
  in_flight_.pop_front();
  Check(tokens.size() == draws.size(), "a step gave another number of tokens");
  for (size_t i = 0; i < draws.size(); ++i) RETURN_IF_ERROR(AppendToken(draws[i], tokens[i]));
  return absl::OkStatus();
}

absl::Status BatchedEngine::AppendToken(const Scheduler::Draw& draw, const TokenDraw& token) {
  const auto it = groups_.find(draw.group);
  if (it == groups_.end() || it->second.ended[draw.sample]) return absl::OkStatus();
  const GenerateRequest& request = it->second.request;
  if (token.token < 0) {
    return absl::InternalError(absl::StrCat("request ", request.id, ": ", kLogitsNotFinite));
  }
  scheduler_.Collected(draw);
  Sample& sample = it->second.samples[draw.sample];
  sample.tokens.push_back(token.token);
  sample.log_probs.push_back(token.log_prob);
  ++step_tokens_;
  const std::vector<int32_t>& stop_ids = request.sampling.stop_ids;
  if (std::find(stop_ids.begin(), stop_ids.end(), token.token) != stop_ids.end()) {
    End(draw.group, draw.sample, FinishReason::kStop);
  } else if (draw.index + 1 >= request.sampling.max_tokens) {
    End(draw.group, draw.sample, FinishReason::kLength);
  }
  return absl::OkStatus();
}

void BatchedEngine::End(int64_t number, int index, FinishReason reason) {
  Group& group = groups_.at(number);
  group.ended[index] = true;
  group.samples[index].finish_reason = reason;
  ended_.push_back(std::move(group.samples[index]));
  scheduler_.Finish(number, index);
  if (--group.unfinished > 0) return;
  ended_requests_.push_back(group.request.id);
  group_of_request_.erase(group.request.id);
  groups_.erase(number);
}

void BatchedEngine::CancelGroup(int64_t number) {
  const std::vector<bool> ended = groups_.at(number).ended;
  for (int index = 0; index < static_cast<int>(ended.size()); ++index) {
    if (!ended[index]) End(number, index, FinishReason::kCancelled);
  }
}

}  // namespace tritonrl
