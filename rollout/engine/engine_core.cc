#include "rollout/engine/engine_core.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rollout/scheduler/page_allocator.h"

namespace tritonrl {

EngineCore::EngineCore(ModelRunner* runner, const EngineConfig& config)
    : config_(config),
      runner_(runner),
      scheduler_({.num_pages = runner_->num_pages(),
                  .page_size = runner_->page_size(),
                  .max_num_seqs = runner_->max_num_seqs(),
                  .max_num_batched_tokens = runner_->max_num_batched_tokens(),
                  .enable_prefix_caching = config_.enable_prefix_caching(),
                  .prefill_budget = runner_->prefill_budget(),
                  .reserve_max_tokens = runner_->batch_invariant(),
                  .chunk_alignment = runner_->chunk_alignment(),
                  .max_prompt_logits = runner_->max_prompt_logits()}) {}

absl::Status EngineCore::Validate(const GenerateRequest& request) const {
  const std::string name = absl::StrCat("request ", request.id);
  RETURN_IF_ERROR(AddContext(ValidateExtras(request), name));
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
  const int64_t drawn = std::max(request.sampling.max_tokens, 1);
  if (!scheduler_.Fits(static_cast<int64_t>(request.prompt.size()), drawn)) {
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

absl::Status EngineCore::ValidateExtras(const GenerateRequest& request) const {
  SamplingSettings sampling = request.sampling;
  if (request.on_prompt_log_probs && sampling.max_tokens == 0) sampling.max_tokens = 1;
  RETURN_IF_ERROR(ValidateSampling(sampling));
  for (const auto& [token, bias] : sampling.logit_bias) {
    if (token >= 0 && token < runner_->vocab_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("logit_bias has token ", token,
                                                   ", outside the model's vocabulary of ",
                                                   runner_->vocab_size()));
  }
  for (const int top : {request.top_log_probs, request.top_prompt_log_probs}) {
    if (top >= 0 && top <= kMaxTopLogProbs) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("top_log_probs and top_prompt_log_probs must be "
                     "from 0 to ",
                     kMaxTopLogProbs, ", not ", top));
  }
  return absl::OkStatus();
}

void EngineCore::StartGroup(GenerateRequest request) {
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
  const bool on_host = request.sampling.draws_on_host();
  host_groups_ += on_host ? 1 : 0;
  const bool prompt_logits = static_cast<bool>(request.on_prompt_log_probs);
  if (prompt_logits) {
    group.prompt_log_probs = std::make_shared<GenerateRequest::PromptLogProbs>();
    group.prompt_log_probs->resize(request.prompt.size() - 1);
  }
  // A draft token is checked against a draw that knows only the tokens before the draft.
  if (config_.num_speculative_tokens() > 0 && !on_host) {
    group.proposer = std::make_unique<NgramProposer>(request.prompt, request.n,
                                                     config_.num_speculative_tokens());
    group.unverified.resize(request.n);
  }
  group.request = std::move(request);
  const std::vector<int32_t>& prompt = group.request.prompt;
  scheduler_.Add(number, static_cast<int64_t>(prompt.size()),
                 std::max(group.request.sampling.max_tokens, 1), group.request.n, prompt,
                 prompt_logits);
}

bool EngineCore::MayHaveDraftTokens() const {
  if (in_flight_.empty()) return true;
  for (const Scheduler::SampleId& name : scheduler_.running()) {
    const NgramProposer* proposer = groups_.at(name.group).proposer.get();
    if (proposer != nullptr && proposer->MayProposeNext(name.sample)) return true;
  }
  return false;
}

void EngineCore::ProposeDraftTokens() {
  for (const Scheduler::SampleId& name : scheduler_.running()) {
    Group& group = groups_.at(name.group);
    const Sample& sample = group.samples[name.sample];
    if (sample.tokens.empty() || group.proposer == nullptr) continue;
    const std::vector<int32_t> draft_tokens = group.proposer->Propose(name.sample);
    if (draft_tokens.empty()) continue;
    std::vector<int32_t>& unverified = group.unverified[name.sample];
    unverified.assign(1, sample.tokens.back());
    unverified.insert(unverified.end(), draft_tokens.begin(), draft_tokens.end());
    scheduler_.SetDraftTokens(name.group, name.sample, static_cast<int>(draft_tokens.size()));
  }
}

absl::Status EngineCore::Step() {
  // Draft tokens use free batch slots.
  const bool may_speculate = config_.num_speculative_tokens() > 0 &&
                             scheduler_.num_running() < runner_->max_num_seqs() &&
                             (config_.always_speculate() || gate_.speculate());
  // Draft tokens need the sample's last token on the host, so the GPU waits for the host before and
  // after a step that has them. Steps that cannot have draft tokens are launched ahead.
  if (may_speculate && MayHaveDraftTokens()) {
    RETURN_IF_ERROR(CollectAll());
    ProposeDraftTokens();
  }
  // Penalties count all tokens before a draw, and no runner knows what the host draws.
  if (host_groups_ > 0) RETURN_IF_ERROR(CollectAll());
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
  // Without groups, steps launched ahead still read the weights. After draft tokens the next step
  // depends on the number that is accepted.
  return groups_.empty() || speculated_ ? CollectAll() : absl::OkStatus();
}

absl::Status EngineCore::CollectAll() {
  while (!in_flight_.empty()) RETURN_IF_ERROR(CollectOldest());
  return absl::OkStatus();
}

void EngineCore::RecordStepTime(double seconds) {
  if (decoding_ > 0 && step_tokens_ > 0) {
    gate_.Record({speculated_, decoding_, step_tokens_, seconds});
  }
}

void EngineCore::UpdateStats(double seconds, EngineStats* stats) {
  const Scheduler::Stats& totals = scheduler_.stats();
  stats->prompt_tokens = totals.prompt_tokens;
  stats->generated_tokens += std::exchange(step_tokens_, 0);
  stats->decode_steps = launched_;
  stats->busy_seconds += seconds;
  stats->sample_seconds += seconds * scheduler_.num_running();
  stats->preemptions = totals.preemptions;
  stats->recomputed_tokens = totals.recomputed_tokens;
  stats->shared_tokens = totals.shared_tokens;
  stats->draft_tokens = totals.draft_tokens;
  stats->cached_tokens = totals.cached_tokens;
  stats->accepted_tokens = accepted_tokens_;
  stats->peak_pages = scheduler_.pool().peak();
}

std::span<const int32_t> EngineCore::TokensOf(const Scheduler::ScheduledSlice& scheduled) const {
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

void EngineCore::AddPromptTargets(const Scheduler::ScheduledSlice& scheduled, ModelStep* launched,
                                  LaunchedStep* record) const {
  const SequenceSlice& slice = scheduled.slice;
  const GenerateRequest& request = groups_.at(scheduled.group).request;
  const std::span<const int32_t> prompt = request.prompt;
  const int64_t first = slice.first + 1;
  const int64_t count = std::min(slice.count, static_cast<int64_t>(prompt.size()) - first);
  launched->prompt_targets.push_back(
      {.targets = prompt.subspan(first, count), .top = request.top_prompt_log_probs});
  record->prompt_parts.push_back({scheduled.group, first, count});
}

absl::Status EngineCore::Launch(Scheduler::Step step) {
  ModelStep launched;
  LaunchedStep record;
  launched.copies = step.copies;
  launched.slices.reserve(step.slices.size());
  for (const Scheduler::ScheduledSlice& scheduled : step.slices) {
    launched.slices.push_back(scheduled.slice);
    launched.slices.back().tokens = TokensOf(scheduled);
    if (scheduled.slice.all_logits) AddPromptTargets(scheduled, &launched, &record);
  }
  launched.draws.reserve(step.draws.size());
  for (const Scheduler::Draw& draw : step.draws) {
    const Group& group = groups_.at(draw.group);
    const GenerateRequest& request = group.request;
    launched.draws.push_back(
        {.slot = draw.slot,
         .sampling = &request.sampling,
         .stream = SampleStream(request.key, request.first_index + draw.sample),
         .position = draw.index,
         .history = {request.prompt, group.samples[draw.sample].tokens},
         .top_log_probs = request.on_log_probs ? request.top_log_probs : -1});
  }
  RETURN_IF_ERROR(runner_->Launch(launched));
  ++launched_;
  record.draws = std::move(step.draws);
  in_flight_.push_back(std::move(record));
  return absl::OkStatus();
}

absl::Status EngineCore::CollectOldest() {
  ASSIGN_OR_RETURN(const std::vector<TokenDraw> tokens, runner_->Collect());
  const LaunchedStep step = std::move(in_flight_.front());
  const std::vector<Scheduler::Draw>& draws = step.draws;
  in_flight_.pop_front();
  if (!step.prompt_parts.empty()) StorePromptLogProbs(step.prompt_parts);
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

void EngineCore::StorePromptLogProbs(const std::vector<PromptPart>& parts) {
  std::vector<TokenLogProbs> log_probs = runner_->TakePromptLogProbs();
  auto next = log_probs.begin();
  for (const PromptPart& part : parts) {
    CheckInvariant(log_probs.end() - next >= part.count, "a step returned too few prompt tokens");
    const auto group = groups_.find(part.group);
    for (int64_t i = 0; i < part.count; ++i, ++next) {
      if (group == groups_.end() || group->second.prompt_log_probs == nullptr) continue;
      group->second.prompt_failed |= !std::isfinite(next->token.log_prob);
      group->second.prompt_log_probs->at(part.first + i - 1) = std::move(*next);
    }
  }
}

bool EngineCore::HasEnded(const Scheduler::Draw& draw) const {
  const auto it = groups_.find(draw.group);
  return it == groups_.end() || it->second.ended[draw.sample];
}

void EngineCore::AppendVerified(const Scheduler::Draw& first, std::span<const TokenDraw> tokens) {
  if (HasEnded(first)) return;
  // A copy, because AppendToken may end the sample and with it erase the group.
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

void EngineCore::AppendToken(const Scheduler::Draw& draw, const TokenDraw& token) {
  Group& group = groups_.at(draw.group);
  const GenerateRequest& request = group.request;
  if (token.token < 0 || group.prompt_failed) {
    return End(draw.group, draw.sample, FinishReason::kFailed);
  }
  if (group.prompt_log_probs != nullptr) {
    request.on_prompt_log_probs(std::exchange(group.prompt_log_probs, nullptr));
  }
  if (request.sampling.max_tokens == 0) {
    return End(draw.group, draw.sample, FinishReason::kLength);
  }
  if (group.proposer != nullptr) group.proposer->Append(draw.sample, token.token);
  Sample& sample = group.samples[draw.sample];
  sample.tokens.push_back(token.token);
  sample.log_probs.push_back(token.log_prob);
  if (sample.versions.empty() || sample.versions.back().version != weights_version_) {
    sample.versions.push_back({weights_version_, 0});
  }
  ++sample.versions.back().tokens;
  if (request.on_log_probs) request.on_log_probs(sample.index, token.log_probs);
  if (request.on_token) request.on_token(sample.index, token.token, token.log_prob);
  ++step_tokens_;
  const std::vector<int32_t>& stop_ids = request.sampling.stop_ids;
  if (std::find(stop_ids.begin(), stop_ids.end(), token.token) != stop_ids.end()) {
    End(draw.group, draw.sample, FinishReason::kStop);
  } else if (draw.index + 1 >= request.sampling.max_tokens) {
    End(draw.group, draw.sample, FinishReason::kLength);
  }
}

void EngineCore::End(int64_t number, int index, FinishReason reason) {
  Group& group = groups_.at(number);
  group.ended[index] = true;
  group.samples[index].finish_reason = reason;
  // Results of damaged weights are not cached for other prompts.
  const bool good = reason != FinishReason::kFailed;
  scheduler_.Finish(number, index, good ? group.samples[index].tokens : std::span<const int32_t>());
  ended_.samples.push_back(std::move(group.samples[index]));
  if (--group.unfinished > 0) return;
  host_groups_ -= group.request.sampling.draws_on_host() ? 1 : 0;
  ended_.requests.push_back(group.request.id);
  group_of_request_.erase(group.request.id);
  groups_.erase(number);
}

void EngineCore::Cancel(const Cancellation& cancellation) {
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
