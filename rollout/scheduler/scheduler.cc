#include "rollout/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

namespace tritonrl {

Scheduler::Scheduler(const Options& options)
    : options_(options),
      pages_(options.num_pages, options.page_size, options.enable_prefix_caching,
             /*count_exclusive=*/options.enable_prefix_caching && options.reserve_max_tokens) {
  CheckInvariant(options.max_num_batched_tokens >= options.max_num_seqs,
                 "max_num_batched_tokens is below max_num_seqs");
  for (int slot = options.max_num_seqs - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

bool Scheduler::Fits(int64_t prompt_length, int64_t max_tokens) const {
  // The last token is never fed back.
  return pages_.NumPages(prompt_length + max_tokens - 1) <= options_.num_pages;
}

void Scheduler::Add(int64_t number, int64_t prompt_length, int64_t max_tokens, int samples,
                    std::span<const int32_t> prompt, bool prompt_logits) {
  CheckInvariant(Fits(prompt_length, max_tokens), "a sample is larger than the cache");
  CheckInvariant(groups_.empty() || groups_.rbegin()->first < number,
                 "numbers of groups must rise");
  Group& group = groups_[number];
  group.prompt.length = prompt_length;
  group.max_tokens = max_tokens;
  group.prompt_logits = prompt_logits;
  if (options_.enable_prefix_caching) group.prompt.tokens = prompt;
  group.unfinished = group.without_pages = samples;
  group.samples.resize(samples);
  for (int i = 0; i < samples; ++i) waiting_.insert({number, i});
}

int64_t Scheduler::Missing(const Group& group, const Sample& sample) const {
  const int64_t computed = sample.table.pages.empty() ? group.prompt.length : sample.table.computed;
  return group.prompt.length + sample.drawn - computed;
}

bool Scheduler::Decodes(const Group& group, const Sample& sample) const {
  return (group.prompt.ready || !sample.table.pages.empty()) && Missing(group, sample) == 1;
}

int64_t Scheduler::PagesNeededSoon(const Group& group, const Sample& sample) const {
  int64_t held = std::ssize(sample.table.pages);
  if (held == 0) {
    // The sample will share the prompt. The last sample to do so needs no copy of the partly filled
    // page.
    held = group.without_pages == 1 ? pages_.NumPages(group.prompt.length)
                                    : group.prompt.length / options_.page_size;
  }
  const int64_t at_its_end = pages_.NumPages(group.prompt.length + group.max_tokens - 1) - held;
  if (options_.reserve_max_tokens) return std::max<int64_t>(0, at_its_end);
  // One page more than it needs now: admitted samples must not preempt each other at once.
  const int64_t soon = pages_.NumPages(group.prompt.length + sample.drawn) + 1 - held;
  return std::max<int64_t>(0, std::min(at_its_end, soon));
}

void Scheduler::Admit() {
  if (waiting_.empty() || free_slots_.empty()) return;
  int64_t taken = 0;
  int64_t last = -1;  // last group counted; a prompt's missing part counts once
  const auto add = [&](const SampleId& name) {
    const Group& group = groups_.at(name.group);
    const Sample& sample = group.samples[name.sample];
    taken += PagesNeededSoon(group, sample);
    if (sample.table.pages.empty() && name.group != last) {
      taken += pages_.NumPages(group.prompt.length) - std::ssize(group.prompt.table.pages);
      last = name.group;
    }
  };
  for (const SampleId& name : running_) add(name);
  while (!waiting_.empty() && !free_slots_.empty()) {
    const SampleId name = *waiting_.begin();
    Group& group = groups_.at(name.group);
    Sample& sample = group.samples[name.sample];
    if (sample.in_flight > 0) return;  // its last token is not known yet
    add(name);
    const int64_t available =
        pages_.num_free() + pages_.TotalIdlePages() - pages_.IdlePages(group.prompt);
    if (!running_.empty() && taken > available) return;
    waiting_.erase(waiting_.begin());
    sample.phase = Phase::kRunning;
    sample.slot = free_slots_.back();
    free_slots_.pop_back();
    ++group.prompt.num_running;
    running_.insert(std::lower_bound(running_.begin(), running_.end(), name), name);
  }
}

int64_t Scheduler::AllocatePages(size_t i, PageTable* table, int64_t count, Step* step) {
  if (count == 0) return 0;
  while (pages_.NumMissingPages(*table, count) > pages_.num_free() && Reclaim(i, *step)) {
  }
  return pages_.Allocate(table, count, &step->copies);
}

bool Scheduler::Reclaim(size_t i, const Step& step) {
  const int64_t requester = running_[i].group;
  if (pages_.EvictIdlePrompt(requester)) return true;
  if (i + 1 < running_.size()) {
    Preempt();
    ++stats_.preemptions;
    return true;
  }
  return pages_.EvictPartialPage(requester, step.copies);
}

void Scheduler::Preempt() {
  const SampleId name = running_.back();
  running_.pop_back();
  Group& group = groups_.at(name.group);
  Sample& sample = group.samples[name.sample];
  if (!sample.table.pages.empty()) ++group.without_pages;
  pages_.ReleaseAll(&sample.table);
  free_slots_.push_back(sample.slot);
  sample.slot = -1;
  sample.max_draft_tokens = 0;
  sample.phase = Phase::kWaiting;
  --group.prompt.num_running;
  waiting_.insert(name);
}

Scheduler::Step Scheduler::Schedule() {
  Admit();
  Budget budget = NextBudget();
  Step step;
  // Preemption takes samples from the end, which are not in the step yet.
  for (size_t i = 0; i < running_.size(); ++i) ScheduleSample(i, &budget, &step);
  EndStep(step);
  return step;
}

Scheduler::Budget Scheduler::NextBudget() {
  int64_t decoding = 0;
  for (const SampleId& name : running_) {
    const Group& group = groups_.at(name.group);
    const Sample& sample = group.samples[name.sample];
    // Other samples lack their prompt, or have their last draw in flight.
    if (Decodes(group, sample) && sample.drawn < group.max_tokens) ++decoding;
  }
  return {.tokens = options_.max_num_batched_tokens - decoding,
          .chunks = ChunkTokens(decoding),
          .num_draft_tokens = options_.max_num_seqs - num_running(),
          .prompt_logits = options_.max_prompt_logits};
}

int64_t Scheduler::ChunkTokens(int64_t decoding) const {
  const int64_t filled = options_.prefill_budget;
  // With `filled` or more batch slots, all of them taken, decodes alone fill the steps.
  const bool full = free_slots_.empty() && options_.max_num_seqs >= filled;
  if (filled == 0 || waiting_.empty() || decoding == 0 || full)
    return options_.max_num_batched_tokens;
  const int64_t room = std::max({filled - decoding, filled / 4, int64_t{options_.page_size}});
  // Whole pages: runners round the number of decoding rows up to such multiples.
  return std::max<int64_t>(room - room % options_.page_size, options_.chunk_alignment);
}

void Scheduler::ScheduleSample(size_t i, Budget* budget, Step* step) {
  const SampleId name = running_[i];
  Group& group = groups_.at(name.group);
  Sample& sample = group.samples[name.sample];
  const int max_draft_tokens = std::exchange(sample.max_draft_tokens, 0);
  if (sample.verifying) return;                  // its length is not known yet
  if (sample.drawn == group.max_tokens) return;  // its last draw is in flight
  if (sample.table.pages.empty()) {
    if (!group.prompt.ready) return SchedulePrompt(i, &group, budget, step);
    SharePrompt(name.group, &group, &sample);
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
  slice->num_draft_tokens = static_cast<int>(pages_.Grow(&sample->table, wanted));
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
  PageTable& table = group->prompt.table;
  if (table.computed < group->prompt.length && table.computed % options_.chunk_alignment != 0) {
    // Its partly filled page was released, and the end of the remaining pages is not aligned, so no
    // chunk may begin there. The whole prompt is recomputed as soon as no sample reads it.
    const bool read =
        std::any_of(group->samples.begin(), group->samples.end(), [](const Sample& sample) {
          return sample.phase == Phase::kRunning && !sample.table.pages.empty();
        });
    if (read) return;
    pages_.ReleasePrompt(number, &group->prompt);
  }
  // A prompt that was computed before, and lost its pages, needs no logits again.
  const bool logits = group->prompt_logits && table.reached < group->prompt.length;
  if (table.pages.empty() && !logits) {
    stats_.cached_tokens += pages_.MatchPrefix(number, options_.chunk_alignment, &group->prompt);
  }
  const int64_t missing = group->prompt.length - table.computed;
  const int64_t room =
      logits ? std::min(budget->ChunkRoom(), budget->prompt_logits) : budget->ChunkRoom();
  const int64_t count =
      AlignedChunk(missing, AllocatePages(i, &table, AlignedChunk(missing, room), step));
  pages_.TrackPrompt(number, &group->prompt);
  if (count == 0) return;
  budget->tokens -= count;
  budget->chunks -= count;
  SequenceSlice slice = {
      .first = table.computed, .count = count, .pages = table.pages, .all_logits = logits};
  if (logits) budget->prompt_logits -= count;
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

void Scheduler::SharePrompt(int64_t number, Group* group, Sample* sample) {
  pages_.SharePrompt(group->prompt, &sample->table);
  if (group->shared) stats_.shared_tokens += group->prompt.length;
  group->shared = true;
  if (--group->without_pages == 0) pages_.ReleasePartialPage(number, &group->prompt);
}

void Scheduler::Advance(PageTable* table, int64_t count, int64_t* first_time) {
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
    // From the next step on: in this step samples could read the pages before they are written.
    group.prompt.ready = group.prompt.table.computed == group.prompt.length;
  }
}

void Scheduler::UpdateFromDraw(const Draw& draw) {
  const auto it = groups_.find(draw.group);
  if (it == groups_.end()) return;
  Group& group = it->second;
  Sample& sample = group.samples[draw.sample];
  if (sample.phase != Phase::kEnded) --sample.in_flight;
  if (draw.index == 0) pages_.CachePrompt(group.prompt);
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
  // Later tokens overwrite the rejected ones. A sample without pages was preempted meanwhile.
  if (!sample.table.pages.empty()) {
    sample.table.computed -= num_rejected;
    pages_.Shrink(&sample.table);
  }
  sample.table.reached = std::min(sample.table.reached, it->second.prompt.length + sample.drawn);
}

void Scheduler::Finish(int64_t number, int index, std::span<const int32_t> generated) {
  Group& group = groups_.at(number);
  Sample& sample = group.samples[index];
  CheckInvariant(sample.phase != Phase::kEnded, "the sample has ended already");
  if (sample.phase == Phase::kRunning) {
    running_.erase(std::lower_bound(running_.begin(), running_.end(), SampleId{number, index}));
    free_slots_.push_back(sample.slot);
    --group.prompt.num_running;
  } else {
    waiting_.erase({number, index});
  }
  sample.phase = Phase::kEnded;
  if (!options_.reserve_max_tokens) pages_.CacheSample(group.prompt, sample.table, generated);
  if (sample.table.pages.empty()) --group.without_pages;
  pages_.ReleaseAll(&sample.table);
  if (--group.unfinished == 0) {
    pages_.ReleasePrompt(number, &group.prompt);
    groups_.erase(number);
  } else if (group.without_pages == 0) {
    pages_.ReleasePartialPage(number, &group.prompt);
  }
}

void Scheduler::Invalidate() {
  while (!running_.empty()) Preempt();
  pages_.ReleaseAllPrompts();
  InvalidatePrefixCache();
}

void Scheduler::InvalidatePrefixCache() {
  if (!options_.enable_prefix_caching) return;
  pages_.ClearPrefixCache();
  // Unfinished groups hold results of the old weights, which must not be cached later.
  for (auto& [number, group] : groups_) group.prompt.tokens = {};
}

std::vector<int> Scheduler::CountRefs() const {
  std::vector<int> ref_counts(options_.num_pages);
  for (const auto& [number, group] : groups_) {
    for (int32_t page : group.prompt.table.pages) ++ref_counts[page];
    for (const Sample& sample : group.samples) {
      for (int32_t page : sample.table.pages) ++ref_counts[page];
    }
  }
  return ref_counts;
}

}  // namespace tritonrl
