#include "rollout/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "rollout/scheduler/block_pool.h"

namespace tritonrl {

Scheduler::Scheduler(const Options& options) : options_(options), pool_(options.num_pages) {
  CheckInvariant(options.max_num_batched_tokens >= options.max_num_seqs,
                 "max_num_batched_tokens is below max_num_seqs");
  if (options.enable_prefix_caching) prefix_cache_.emplace(options.page_size, &pool_);
  for (int slot = options.max_num_seqs - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

bool Scheduler::Fits(int64_t prompt_length, int64_t max_tokens) const {
  // The last token is never fed back.
  return Pages(prompt_length + max_tokens - 1) <= options_.num_pages;
}

void Scheduler::Add(int64_t number, int64_t prompt_length, int64_t max_tokens, int samples,
                    std::span<const int32_t> prompt) {
  CheckInvariant(Fits(prompt_length, max_tokens), "a sample is larger than the cache");
  CheckInvariant(groups_.empty() || groups_.rbegin()->first < number,
                 "numbers of groups must rise");
  Group& group = groups_[number];
  group.prompt_length = prompt_length;
  group.max_tokens = max_tokens;
  if (prefix_cache_.has_value()) group.prompt_tokens = prompt;
  group.unfinished = group.without_pages = samples;
  group.samples.resize(samples);
  for (int i = 0; i < samples; ++i) waiting_.insert({number, i});
}

int64_t Scheduler::Missing(const Group& group, const Sample& sample) const {
  const int64_t computed = sample.table.pages.empty() ? group.prompt_length : sample.table.computed;
  return group.prompt_length + sample.drawn - computed;
}

bool Scheduler::Decodes(const Group& group, const Sample& sample) const {
  return (group.ready || !sample.table.pages.empty()) && Missing(group, sample) == 1;
}

Scheduler::Step Scheduler::Schedule() {
  Admit();
  Budget budget = NextBudget();
  Step step;
  // Preemption takes samples from the end, which have not been placed.
  for (size_t i = 0; i < running_.size(); ++i) ScheduleSample(i, &budget, &step);
  EndStep(step);
  return step;
}

Scheduler::Budget Scheduler::NextBudget() {
  int64_t decoding = 0;
  for (const SampleId& name : running_) {
    const Group& group = groups_.at(name.group);
    const Sample& sample = group.samples[name.sample];
    // Else its prompt is missing, or its last draw is in flight.
    if (Decodes(group, sample) && sample.drawn < group.max_tokens) ++decoding;
  }
  return {.tokens = options_.max_num_batched_tokens - decoding,
          .chunks = ChunkTokens(decoding),
          .num_draft_tokens = options_.max_num_seqs - num_running()};
}

int64_t Scheduler::ChunkTokens(int64_t decoding) const {
  const int64_t filled = options_.prefill_budget;
  // Places for as many samples need no prompts to fill the steps.
  const bool full = free_slots_.empty() && options_.max_num_seqs >= filled;
  if (filled == 0 || waiting_.empty() || decoding == 0 || full)
    return options_.max_num_batched_tokens;
  const int64_t room = std::max({filled - decoding, filled / 4, int64_t{options_.page_size}});
  // Whole pages: runners round rows of samples that decode up to such numbers.
  return std::max<int64_t>(room - room % options_.page_size, options_.chunk_alignment);
}

void Scheduler::ScheduleSample(size_t i, Budget* budget, Step* step) {
  const SampleId name = running_[i];
  Group& group = groups_.at(name.group);
  Sample& sample = group.samples[name.sample];
  const int max_draft_tokens = std::exchange(sample.max_draft_tokens, 0);
  if (sample.verifying) return;                  // nobody knows how far it is
  if (sample.drawn == group.max_tokens) return;  // its last draw is in flight
  if (sample.table.pages.empty()) {
    if (!group.ready) return SchedulePrompt(i, &group, budget, step);
    SharePrompt(&group, &sample);
    if (group.without_pages == 0) ReleasePartialPage(name.group, &group);
  }
  const int64_t missing = Missing(group, sample);
  const bool decodes = missing == 1;
  const int64_t count =
      AllocatePages(i, &sample.table, decodes ? 1 : std::min(missing, budget->ChunkRoom()), step);
  if (count == 0) return;
  if (!decodes) {
    budget->tokens -= count;
    budget->chunks -= count;
  }
  SequenceSlice slice = {.slot = sample.slot,
                         .first = sample.table.computed,
                         .count = count,
                         .pages = sample.table.pages};
  int64_t generated = 0;
  Advance(&sample.table, count, &generated);
  if (count == missing) {
    if (decodes && max_draft_tokens > 0)
      ScheduleDraftTokens(group, max_draft_tokens, &sample, budget, &slice);
    slice.draws = 1 + slice.num_draft_tokens;
    const int slot = slice.num_draft_tokens > 0 ? -1 : sample.slot;
    for (int k = 0; k < slice.draws; ++k) {
      step->draws.push_back({.group = name.group,
                             .sample = name.sample,
                             .slot = slot,
                             .index = sample.drawn++,
                             .num_draft_tokens = k == 0 ? slice.num_draft_tokens : 0});
      ++sample.in_flight;
    }
  }
  step->slices.push_back({name.group, name.sample, slice});
}

void Scheduler::ScheduleDraftTokens(const Group& group, int max_draft_tokens, Sample* sample,
                                    Budget* budget, SequenceSlice* slice) {
  const int64_t wanted = std::min({int64_t{max_draft_tokens}, group.max_tokens - sample->drawn - 1,
                                   budget->tokens, budget->num_draft_tokens});
  if (wanted <= 0) return;
  slice->num_draft_tokens = static_cast<int>(AllocateFreePages(&sample->table, wanted));
  slice->count += slice->num_draft_tokens;
  slice->pages = sample->table.pages;
  sample->table.computed += slice->num_draft_tokens;
  sample->verifying = slice->num_draft_tokens > 0;
  budget->tokens -= slice->num_draft_tokens;
  budget->num_draft_tokens -= slice->num_draft_tokens;
  stats_.draft_tokens += slice->num_draft_tokens;
}

void Scheduler::SetDraftTokens(int64_t number, int index, int count) {
  Sample& sample = groups_.at(number).samples[index];
  if (sample.phase == Phase::kRunning && sample.in_flight == 0) sample.max_draft_tokens = count;
}

int64_t Scheduler::AlignedChunk(int64_t missing, int64_t room) const {
  return room >= missing ? missing : room - room % options_.chunk_alignment;
}

void Scheduler::SchedulePrompt(size_t i, Group* group, Budget* budget, Step* step) {
  const int64_t number = running_[i].group;
  Table& table = group->prompt;
  if (table.computed < group->prompt_length && table.computed % options_.chunk_alignment != 0) {
    // Its last page was given up, and what comes before does not begin a chunk: all is computed
    // again, when nobody reads it any more.
    const bool read =
        std::any_of(group->samples.begin(), group->samples.end(), [](const Sample& sample) {
          return sample.phase == Phase::kRunning && !sample.table.pages.empty();
        });
    if (read) return;
    ReleaseAll(&table);
    groups_with_pages_.erase(number);
  }
  if (table.pages.empty()) MatchPrefix(number, group);
  const int64_t missing = group->prompt_length - table.computed;
  const int64_t count = AlignedChunk(
      missing, AllocatePages(i, &table, AlignedChunk(missing, budget->ChunkRoom()), step));
  if (!table.pages.empty()) groups_with_pages_.insert(number);
  if (count == 0) return;
  budget->tokens -= count;
  budget->chunks -= count;
  SequenceSlice slice = {.first = table.computed, .count = count, .pages = table.pages};
  Advance(&table, count, &stats_.prompt_tokens);
  if (count == missing) {
    for (int k = 0; k < static_cast<int>(group->samples.size()); ++k) {
      Sample& sample = group->samples[k];
      if (sample.phase == Phase::kEnded || sample.drawn > 0) continue;
      step->draws.push_back({.group = number, .sample = k, .slot = sample.slot});
      sample.drawn = sample.in_flight = 1;
      ++slice.draws;
    }
  }
  step->slices.push_back({.group = number, .slice = slice});
}

void Scheduler::MatchPrefix(int64_t number, Group* group) {
  if (group->prompt_tokens.empty()) return;
  Table& table = group->prompt;
  // Its last token passes through the model in any case, for the logits.
  table.pages = prefix_cache_->Find(group->prompt_tokens.first(group->prompt_length - 1));
  const int64_t found = static_cast<int64_t>(table.pages.size()) * options_.page_size;
  table.pages.resize((found - found % options_.chunk_alignment) / options_.page_size);
  if (table.pages.empty()) return;
  for (const int32_t page : table.pages) pool_.AddRef(page);
  groups_with_pages_.insert(number);
  table.computed = static_cast<int64_t>(table.pages.size()) * options_.page_size;
  table.reached = std::max(table.reached, table.computed);
  stats_.cached_tokens += table.computed;
}

void Scheduler::CacheSample(const Group& group, const Sample& sample,
                            std::span<const int32_t> generated) {
  if (options_.reserve_max_tokens) return;
  if (group.prompt_tokens.empty() || sample.table.pages.empty() || generated.empty()) return;
  std::vector<int32_t> tokens(group.prompt_tokens.begin(), group.prompt_tokens.end());
  // Without the last one: if a draft token was rejected there, the cache has the draft token.
  tokens.insert(tokens.end(), generated.begin(), generated.end() - 1);
  const int64_t known = std::min(static_cast<int64_t>(tokens.size()), sample.table.computed);
  prefix_cache_->Insert(std::span(tokens).first(known), sample.table.pages);
}

void Scheduler::SharePrompt(Group* group, Sample* sample) {
  for (int32_t page : group->prompt.pages) pool_.AddRef(page);
  sample->table.pages = group->prompt.pages;
  sample->table.computed = group->prompt_length;
  sample->table.reached = std::max(sample->table.reached, group->prompt_length);
  if (group->shared) stats_.shared_tokens += group->prompt_length;
  group->shared = true;
  --group->without_pages;
}

void Scheduler::Advance(Table* table, int64_t count, int64_t* first_time) {
  table->computed += count;
  const int64_t fresh = std::clamp<int64_t>(table->computed - table->reached, 0, count);
  *first_time += fresh;
  stats_.recomputed_tokens += count - fresh;
  table->reached = std::max(table->reached, table->computed);
}

void Scheduler::EndStep(const Step& step) {
  for (const ScheduledSlice& scheduled : step.slices) {
    if (scheduled.sample >= 0) continue;
    Group& group = groups_.at(scheduled.group);
    // From the next step on: the pages are not written yet when this step's samples read theirs.
    group.ready = group.prompt.computed == group.prompt_length;
  }
}

void Scheduler::UpdateFromDraw(const Draw& draw) {
  const auto it = groups_.find(draw.group);
  if (it == groups_.end()) return;
  Group& group = it->second;
  Sample& sample = group.samples[draw.sample];
  if (sample.phase != Phase::kEnded) --sample.in_flight;
  // The prompt has run, and gave a token; its last, partly filled page may be given up by now.
  const int64_t whole = group.prompt_length - group.prompt_length % options_.page_size;
  if (draw.index == 0 && group.prompt.computed >= whole && !group.prompt_tokens.empty()) {
    prefix_cache_->Insert(group.prompt_tokens.first(whole), group.prompt.pages);
  }
}

void Scheduler::AcceptDraftTokens(const Draw& draw, int num_accepted) {
  const auto it = groups_.find(draw.group);
  if (it == groups_.end()) return;
  Sample& sample = it->second.samples[draw.sample];
  if (sample.phase == Phase::kEnded) return;
  const int num_rejected = draw.num_draft_tokens + 1 - num_accepted;
  sample.in_flight = 0;
  sample.verifying = false;
  sample.drawn -= num_rejected;
  // What the rejected ones left is written over; a sample without pages has given way meanwhile.
  if (!sample.table.pages.empty()) {
    sample.table.computed -= num_rejected;
    while (static_cast<int64_t>(sample.table.pages.size()) > Pages(sample.table.computed)) {
      pool_.Release(sample.table.pages.back());
      sample.table.pages.pop_back();
    }
  }
  sample.table.reached = std::min(sample.table.reached, it->second.prompt_length + sample.drawn);
}

void Scheduler::Finish(int64_t number, int index, std::span<const int32_t> generated) {
  Group& group = groups_.at(number);
  Sample& sample = group.samples[index];
  CheckInvariant(sample.phase != Phase::kEnded, "the sample has ended already");
  if (sample.phase == Phase::kRunning) {
    running_.erase(std::lower_bound(running_.begin(), running_.end(), SampleId{number, index}));
    free_slots_.push_back(sample.slot);
    --group.running;
  } else {
    waiting_.erase({number, index});
  }
  sample.phase = Phase::kEnded;
  CacheSample(group, sample, generated);
  if (sample.table.pages.empty()) --group.without_pages;
  ReleaseAll(&sample.table);
  if (--group.unfinished == 0) {
    ReleaseAll(&group.prompt);
    groups_with_pages_.erase(number);
    groups_.erase(number);
  } else if (group.without_pages == 0) {
    ReleasePartialPage(number, &group);
  }
}

std::vector<int> Scheduler::CountRefs() const {
  std::vector<int> ref_counts(options_.num_pages);
  for (const auto& [number, group] : groups_) {
    for (int32_t page : group.prompt.pages) ++ref_counts[page];
    for (const Sample& sample : group.samples) {
      for (int32_t page : sample.table.pages) ++ref_counts[page];
    }
  }
  return ref_counts;
}

}  // namespace tritonrl
