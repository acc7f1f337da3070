#include "rollout/batched_engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {

BatchedEngine::BatchedEngine(std::unique_ptr<ModelRunner> runner, const Options& options)
    : options_(options),
      runner_(std::move(runner)),
      scheduler_(runner_->num_slots()),
      slots_(runner_->num_slots()),
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
    absl::MutexLock lock(&mutex_);
    stats_.prompt_tokens += step_stats_.prompt_tokens;
    stats_.generated_tokens += step_stats_.generated_tokens;
    stats_.decode_steps += step_stats_.decode_steps;
    stats_.finished_samples += static_cast<int64_t>(ended_.size());
    stats_.busy_seconds += absl::ToDoubleSeconds(absl::Now() - start);
    step_stats_ = {};
    unfinished_ -= static_cast<int64_t>(ended_.size());
    for (Sample& sample : ended_) finished_.push_back(std::move(sample));
    ended_.clear();
    for (uint64_t request : ended_requests_) active_requests_.erase(request);
    ended_requests_.clear();
    if (!status.ok()) {
      failure_ = AddContext(status, "generation engine");
      return;
    }
  }
}

bool BatchedEngine::HasWork() const {
  return stopping_ || !submitted_.empty() || !cancelled_.empty();
}

bool BatchedEngine::TakeWork() {
  std::vector<uint64_t> cancelled;
  {
    absl::MutexLock lock(&mutex_);
    if (groups_.empty()) mutex_.Await(absl::Condition(this, &BatchedEngine::HasWork));
    if (stopping_) return false;
    for (GenerateRequest& request : submitted_) {
      const int64_t number = next_group_++;
      scheduler_.Add(number, request.n);
      group_of_request_[request.id] = number;
      Group& group = groups_[number];
      group.unfinished = request.n;
      group.weights_version = weights_version_;
      group.request = std::move(request);
    }
    submitted_.clear();
    cancelled.swap(cancelled_);
  }
  for (uint64_t request : cancelled) {
    const auto it = group_of_request_.find(request);
    if (it != group_of_request_.end()) CancelGroup(it->second);
  }
  return true;
}

absl::Status BatchedEngine::Step() {
  RETURN_IF_ERROR(StartSamples());
  return DecodeOnce();
}

absl::Status BatchedEngine::StartSamples() {
  // One-token samples end at once and free their slots again.
  while (true) {
    const std::vector<Scheduler::Admission> admissions = scheduler_.Admit();
    if (admissions.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(FillSlots(admissions));
    for (const Scheduler::Admission& admission : admissions) {
      const Group& group = groups_.at(admission.group);
      Sample sample;
      sample.request_id = group.request.id;
      sample.index = group.request.first_index + admission.sample;
      sample.weights_version = group.weights_version;
      slots_[admission.slot] = {admission.group, std::move(sample)};
      RETURN_IF_ERROR(AppendToken(admission.slot, group.prompt_logits));
    }
  }
}

absl::Status BatchedEngine::FillSlots(const std::vector<Scheduler::Admission>& admissions) {
  std::map<int64_t, std::vector<int64_t>> to_compute;
  for (const Scheduler::Admission& admission : admissions) {
    const int64_t length = static_cast<int64_t>(groups_.at(admission.group).request.prompt.size());
    if (admission.source < 0) {
      to_compute[admission.group].push_back(admission.slot);
    } else if (admission.source != admission.slot) {
      RETURN_IF_ERROR(runner_->CopyPrompt(admission.source, admission.slot, length));
    }
  }
  for (const auto& [number, slots] : to_compute) {
    Group& group = groups_.at(number);
    RETURN_IF_ERROR(runner_->Prefill(group.request.prompt, slots, &group.prompt_logits));
    step_stats_.prompt_tokens += static_cast<int64_t>(group.request.prompt.size());
  }
  return absl::OkStatus();
}

absl::Status BatchedEngine::DecodeOnce() {
  std::vector<int64_t> tokens, slots, positions;
  for (int slot = 0; slot < static_cast<int>(slots_.size()); ++slot) {
    const Running& running = slots_[slot];
    if (running.group < 0) continue;
    const size_t prompt = groups_.at(running.group).request.prompt.size();
    tokens.push_back(running.sample.tokens.back());
    slots.push_back(slot);
    positions.push_back(static_cast<int64_t>(prompt + running.sample.tokens.size()) - 1);
  }
  if (tokens.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::span<const float> logits, runner_->Decode(tokens, slots, positions));
  ++step_stats_.decode_steps;
  const size_t vocab = static_cast<size_t>(runner_->vocab_size());
  for (size_t row = 0; row < slots.size(); ++row) {
    RETURN_IF_ERROR(AppendToken(static_cast<int>(slots[row]), logits.subspan(row * vocab, vocab)));
  }
  return absl::OkStatus();
}

absl::Status BatchedEngine::AppendToken(int slot, std::span<const float> logits) {
  Running& running = slots_[slot];
  const GenerateRequest& request = groups_.at(running.group).request;
  const int position = static_cast<int>(running.sample.tokens.size());
  absl::StatusOr<TokenDraw> draw = sampler_.Draw(
      logits, request.sampling, TokenUniform(request.key, running.sample.index, position));
  if (!draw.ok()) return AddContext(draw.status(), absl::StrCat("request ", request.id));
  running.sample.tokens.push_back(draw->token);
  running.sample.log_probs.push_back(draw->log_prob);
  if (request.on_token) request.on_token(running.sample.index, draw->token, draw->log_prob);
  ++step_stats_.generated_tokens;
  const std::vector<int32_t>& stop_ids = request.sampling.stop_ids;
  if (std::find(stop_ids.begin(), stop_ids.end(), draw->token) != stop_ids.end()) {
    End(slot, FinishReason::kStop);
  } else if (position + 1 >= request.sampling.max_tokens) {
    End(slot, FinishReason::kLength);
  }
  return absl::OkStatus();
}

void BatchedEngine::End(int slot, FinishReason reason) {
  const int64_t group = slots_[slot].group;
  Sample sample = std::move(slots_[slot].sample);
  sample.finish_reason = reason;
  slots_[slot] = {};
  scheduler_.Finish(slot);
  Emit(group, std::move(sample));
}

void BatchedEngine::CancelGroup(int64_t number) {
  const GenerateRequest request = groups_.at(number).request;
  const uint64_t version = groups_.at(number).weights_version;
  for (int slot = 0; slot < static_cast<int>(slots_.size()); ++slot) {
    if (slots_[slot].group == number) End(slot, FinishReason::kCancelled);
  }
  for (int index : scheduler_.CancelWaiting(number)) {
    Sample sample;
    sample.request_id = request.id;
    sample.index = request.first_index + index;
    sample.finish_reason = FinishReason::kCancelled;
    sample.weights_version = version;
    Emit(number, std::move(sample));
  }
}

void BatchedEngine::Emit(int64_t number, Sample sample) {
  ended_.push_back(std::move(sample));
  Group& group = groups_.at(number);
  if (--group.unfinished > 0) return;
  ended_requests_.push_back(group.request.id);
  group_of_request_.erase(group.request.id);
  groups_.erase(number);
}

}  // namespace tritonrl
