// What runs on the engine's thread: steps are made, launched and collected.

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/scheduler/page_allocator.h"

namespace tritonrl {

void BatchedEngine::Run() {
  while (TakeWork()) {
    const absl::Time start = absl::Now();
    const absl::Status status = pause_next_ ? Pause() : Step();
    // Waiting for others' update is no time of ours; Pause has published what it collected.
    const double seconds = pause_next_ ? 0 : absl::ToDoubleSeconds(absl::Now() - start);
    if (decoding_ > 0 && step_tokens_ > 0) {
      gate_.Record({speculated_, decoding_, step_tokens_, seconds});
    }
    Publish(seconds);
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
  for (const Sample& sample : ended_) {
    stats_.failed_samples += sample.finish_reason == FinishReason::kFailed ? 1 : 0;
  }
  stats_.busy_seconds += seconds;
  stats_.sample_seconds += seconds * scheduler_.num_running();
  stats_.preemptions = totals.preemptions;
  stats_.recomputed_tokens = totals.recomputed_tokens;
  stats_.shared_tokens = totals.shared_tokens;
  stats_.draft_tokens = totals.draft_tokens;
  stats_.cached_tokens = totals.cached_tokens;
  stats_.accepted_tokens = accepted_tokens_;
  stats_.peak_pages = scheduler_.pool().peak();
  step_tokens_ = 0;
  unfinished_ -= static_cast<int64_t>(ended_.size());
  for (Sample& sample : ended_) finished_.push_back(std::move(sample));
  ended_.clear();
  for (uint64_t request : ended_requests_) active_requests_.erase(request);
  ended_requests_.clear();
}

bool BatchedEngine::HasWork() const {
  return stopping_ || pause_.has_value() || !submitted_.empty() || !cancelled_.empty();
}

bool BatchedEngine::TakeWork() {
  std::vector<GenerateRequest> submitted;
  std::vector<Cancellation> cancelled;
  int64_t updates = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (groups_.empty()) mutex_.Await(absl::Condition(this, &BatchedEngine::HasWork));
    if (stopping_) return false;
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    version_ = weights_version_;
    updates = updates_;
    pause_next_ = pause_.has_value();
  }
  if (std::exchange(updates_seen_, updates) != updates) scheduler_.InvalidatePrefixCache();
  for (GenerateRequest& request : submitted) StartGroup(std::move(request));
  for (const Cancellation& cancellation : cancelled) CancelNow(cancellation);
  return true;
}

void BatchedEngine::StartGroup(GenerateRequest request) {
  const int64_t number = next_group_++;
  group_of_request_[request.id] = number;
  Group& group = groups_[number];
  group.unfinished = request.n;
  group.ended.resize(request.n);
  group.samples.resize(request.n);
  for (int i = 0; i < request.n; ++i) {
    group.samples[i].request_id = request.id;
    group.samples[i].index = request.first_index + i;
  }
  if (options_.num_speculative_tokens > 0) {
    group.proposer =
        std::make_unique<NgramProposer>(request.prompt, request.n, options_.num_speculative_tokens);
    group.unverified.resize(request.n);
  }
  group.request = std::move(request);
  const std::vector<int32_t>& prompt = group.request.prompt;
  scheduler_.Add(number, static_cast<int64_t>(prompt.size()), group.request.sampling.max_tokens,
                 group.request.n, prompt);
}

bool BatchedEngine::MayHaveDraftTokens() const {
  if (in_flight_.empty()) return true;
  for (const Scheduler::SampleId& name : scheduler_.running()) {
    if (groups_.at(name.group).proposer->MayProposeNext(name.sample)) return true;
  }
  return false;
}

void BatchedEngine::ProposeDraftTokens() {
  for (const Scheduler::SampleId& name : scheduler_.running()) {
    Group& group = groups_.at(name.group);
    const Sample& sample = group.samples[name.sample];
    if (sample.tokens.empty()) continue;
    const std::vector<int32_t> draft_tokens = group.proposer->Propose(name.sample);
    if (draft_tokens.empty()) continue;
    std::vector<int32_t>& unverified = group.unverified[name.sample];
    unverified.assign(1, sample.tokens.back());
    unverified.insert(unverified.end(), draft_tokens.begin(), draft_tokens.end());
    scheduler_.SetDraftTokens(name.group, name.sample, static_cast<int>(draft_tokens.size()));
  }
}

absl::Status BatchedEngine::Step() {
  // Draft tokens use free batch slots.
  const bool may_speculate = options_.num_speculative_tokens > 0 &&
                             scheduler_.num_running() < runner_->max_num_seqs() &&
                             (options_.always_speculate || gate_.speculate());
  // Draft tokens follow tokens that are known, so the GPU waits for the host around them. Steps
  // that cannot have any are launched ahead like all others.
  if (may_speculate && MayHaveDraftTokens()) {
    while (!in_flight_.empty()) RETURN_IF_ERROR(CollectOldest());
    ProposeDraftTokens();
  }
  Scheduler::Step step = scheduler_.Schedule();
  const bool idle = step.slices.empty();
  const bool only_decodes =
      std::all_of(step.slices.begin(), step.slices.end(), [](const auto& scheduled) {
        return scheduled.slice.count == 1 + scheduled.slice.num_draft_tokens &&
               scheduled.sample >= 0;
      });
  decoding_ = only_decodes ? static_cast<int>(step.slices.size()) : 0;
  speculated_ = std::any_of(step.slices.begin(), step.slices.end(), [](const auto& scheduled) {
    return scheduled.slice.num_draft_tokens > 0;
  });
  CheckInvariant(!idle || !in_flight_.empty() || groups_.empty(), "no step for waiting samples");
  if (!idle) RETURN_IF_ERROR(Launch(std::move(step)));
  if (!in_flight_.empty() &&
      (idle || static_cast<int>(in_flight_.size()) >= runner_->max_in_flight())) {
    RETURN_IF_ERROR(CollectOldest());
  }
  // The steps launched ahead still use the weights; and what comes after draft tokens follows from
  // them.
  while ((groups_.empty() || speculated_) && !in_flight_.empty()) RETURN_IF_ERROR(CollectOldest());
  return absl::OkStatus();
}

std::span<const int32_t> BatchedEngine::TokensOf(const Scheduler::ScheduledSlice& scheduled) const {
  const auto& [number, sample, slice] = scheduled;
  const Group& group = groups_.at(number);
  if (slice.num_draft_tokens > 0) return std::span(group.unverified[sample]).first(slice.count);
  std::span<const int32_t> tokens = group.request.prompt;
  int64_t first = slice.first;
  if (sample >= 0) {
    first -= static_cast<int64_t>(tokens.size());
    tokens = group.samples[sample].tokens;
  }
  const bool known = first + slice.count <= static_cast<int64_t>(tokens.size());
  return known ? tokens.subspan(first, slice.count) : std::span<const int32_t>();
}

absl::Status BatchedEngine::Launch(Scheduler::Step step) {
  ModelStep launched;
  launched.copies = step.copies;
  launched.slices.reserve(step.slices.size());
  for (const Scheduler::ScheduledSlice& scheduled : step.slices) {
    launched.slices.push_back(scheduled.slice);
    launched.slices.back().tokens = TokensOf(scheduled);
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
  CheckInvariant(tokens.size() == draws.size(), "a step returned a wrong number of tokens");
  for (size_t i = 0; i < draws.size(); i += 1 + draws[i].num_draft_tokens) {
    if (draws[i].num_draft_tokens > 0) {
      AppendVerified(draws[i], std::span(tokens).subspan(i, 1 + draws[i].num_draft_tokens));
    } else if (!HasEnded(draws[i])) {
      if (tokens[i].token >= 0) scheduler_.UpdateFromDraw(draws[i]);
      AppendToken(draws[i], tokens[i]);
    }
  }
  return absl::OkStatus();
}

bool BatchedEngine::HasEnded(const Scheduler::Draw& draw) const {
  const auto it = groups_.find(draw.group);
  return it == groups_.end() || it->second.ended[draw.sample];
}

void BatchedEngine::AppendVerified(const Scheduler::Draw& first,
                                   std::span<const TokenDraw> tokens) {
  if (HasEnded(first)) return;
  // A sample that ends may take its group with it.
  const std::vector<int32_t> unverified = groups_.at(first.group).unverified[first.sample];
  int num_accepted = 0;
  bool is_accepted = true;
  for (Scheduler::Draw draw = first; is_accepted && num_accepted <= first.num_draft_tokens;
       ++draw.index) {
    const TokenDraw& token = tokens[num_accepted++];
    if (num_accepted > 1) ++accepted_tokens_;
    AppendToken(draw, token);
    if (HasEnded(first)) return;
    is_accepted = num_accepted <= first.num_draft_tokens && token.token == unverified[num_accepted];
  }
  scheduler_.AcceptDraftTokens(first, num_accepted);
  groups_.at(first.group)
      .proposer->RecordAccepted(first.sample, first.num_draft_tokens, num_accepted - 1);
}

void BatchedEngine::AppendToken(const Scheduler::Draw& draw, const TokenDraw& token) {
  Group& group = groups_.at(draw.group);
  const GenerateRequest& request = group.request;
  if (token.token < 0) return End(draw.group, draw.sample, FinishReason::kFailed);
  if (group.proposer != nullptr) group.proposer->Append(draw.sample, token.token);
  Sample& sample = group.samples[draw.sample];
  sample.tokens.push_back(token.token);
  sample.log_probs.push_back(token.log_prob);
  if (sample.versions.empty() || sample.versions.back().version != version_) {
    sample.versions.push_back({version_, 0});
  }
  ++sample.versions.back().tokens;
  if (request.on_token) request.on_token(sample.index, token.token, token.log_prob);
  ++step_tokens_;
  const std::vector<int32_t>& stop_ids = request.sampling.stop_ids;
  if (std::find(stop_ids.begin(), stop_ids.end(), token.token) != stop_ids.end()) {
    End(draw.group, draw.sample, FinishReason::kStop);
  } else if (draw.index + 1 >= request.sampling.max_tokens) {
    End(draw.group, draw.sample, FinishReason::kLength);
  }
}

void BatchedEngine::End(int64_t number, int index, FinishReason reason) {
  Group& group = groups_.at(number);
  group.ended[index] = true;
  group.samples[index].finish_reason = reason;
  // What is damaged serves no other prompt.
  const bool good = reason != FinishReason::kFailed;
  scheduler_.Finish(number, index, good ? group.samples[index].tokens : std::span<const int32_t>());
  ended_.push_back(std::move(group.samples[index]));
  if (--group.unfinished > 0) return;
  ended_requests_.push_back(group.request.id);
  group_of_request_.erase(group.request.id);
  groups_.erase(number);
}

void BatchedEngine::CancelNow(const Cancellation& cancellation) {
  const auto it = group_of_request_.find(cancellation.request);
  if (it == group_of_request_.end()) return;
  const int64_t number = it->second;
  const Group& group = groups_.at(number);
  const int first = group.request.first_index;
  const std::vector<bool> ended = group.ended;
  for (int i = 0; i < static_cast<int>(ended.size()); ++i) {
    if (ended[i] || cancellation.index.value_or(first + i) != first + i) continue;
    End(number, i, FinishReason::kCancelled);
  }
}

}  // namespace tritonrl
