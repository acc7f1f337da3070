#include "rollout/scheduler.h"

#include <algorithm>
#include <utility>

#include "rollout/check.h"

namespace tritonrl {

Scheduler::Scheduler(const Options& options) : options_(options), pool_(options.num_pages) {
  Check(options.max_step_tokens >= options.max_running, "max_step_tokens is below max_running");
  if (options.keep_prefixes) prefixes_.emplace(options.page_size, &pool_);
  for (int slot = options.max_running - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

bool Scheduler::Fits(int64_t prompt_length, int64_t max_tokens) const {
  // The last token is never fed back.
  return Pages(prompt_length + max_tokens - 1) <= options_.num_pages;
}

void Scheduler::Add(int64_t number, int64_t prompt_length, int64_t max_tokens, int samples,
                    std::span<const int32_t> prompt) {
  Check(Fits(prompt_length, max_tokens), "a sample is larger than the cache");
  Check(groups_.empty() || groups_.rbegin()->first < number, "numbers of groups must rise");
  Group& group = groups_[number];
  group.prompt_length = prompt_length;
  group.max_tokens = max_tokens;
  if (prefixes_.has_value()) group.prompt_tokens = prompt;
  group.not_ended = group.without_pages = samples;
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
  for (size_t i = 0; i < running_.size(); ++i) Place(i, &budget, &step);
  EndStep(step);
  return step;
}

Scheduler::Budget Scheduler::NextBudget() {
  int64_t decoding = 0;
  for (const Name& name : running_) {
    const Group& group = groups_.at(name.group);
    const Sample& sample = group.samples[name.sample];
    // Else its prompt is missing, or its last draw is under way.
    if (Decodes(group, sample) && sample.drawn < group.max_tokens) ++decoding;
  }
  return {.tokens = options_.max_step_tokens - decoding,
          .chunks = ChunkTokens(decoding),
          .guesses = options_.max_running - num_running()};
}

int64_t Scheduler::ChunkTokens(int64_t decoding) const {
  const int64_t filled = options_.weights_bound_tokens;
  // Places for as many samples need no prompts to fill the steps.
  const bool full = free_slots_.empty() && options_.max_running >= filled;
  if (filled == 0 || waiting_.empty() || decoding == 0 || full) return options_.max_step_tokens;
  const int64_t room = std::max({filled - decoding, filled / 4, int64_t{options_.page_size}});
  // Whole pages: runners round rows of samples that decode up to such numbers.
  return std::max<int64_t>(room - room % options_.page_size, options_.chunk_multiple);
}

void Scheduler::Place(size_t i, Budget* budget, Step* step) {
  const Name name = running_[i];
  Group& group = groups_.at(name.group);
  Sample& sample = group.samples[name.sample];
  const int may_guess = std::exchange(sample.may_guess, 0);
  if (sample.guessing) return;                   // nobody knows how far it is
  if (sample.drawn == group.max_tokens) return;  // its last draw is under way
  if (sample.table.pages.empty()) {
    if (!group.ready) return PlacePrompt(i, &group, budget, step);
    TakePromptOver(&group, &sample);
    if (group.without_pages == 0) ReleaseTail(name.group, &group);
  }
  const int64_t missing = Missing(group, sample);
  const bool decodes = missing == 1;
  const int64_t count =
      MakeRoom(i, &sample.table, decodes ? 1 : std::min(missing, budget->ChunkRoom()), step);
  if (count == 0) return;
  if (!decodes) {
    budget->tokens -= count;
    budget->chunks -= count;
  }
  Slice slice = {.group = name.group,
                 .sample = name.sample,
                 .slot = sample.slot,
                 .first = sample.table.computed,
                 .count = count,
                 .pages = sample.table.pages};
  int64_t generated = 0;
  Advance(&sample.table, count, &generated);
  if (count == missing) {
    if (decodes && may_guess > 0) PlaceGuesses(group, may_guess, &sample, budget, &slice);
    slice.draws = 1 + slice.guesses;
    const int slot = slice.guesses > 0 ? -1 : sample.slot;
    for (int k = 0; k < slice.draws; ++k) {
      step->draws.push_back({.group = name.group,
                             .sample = name.sample,
                             .slot = slot,
                             .index = sample.drawn++,
                             .guesses = k == 0 ? slice.guesses : 0});
      ++sample.under_way;
    }
  }
  step->slices.push_back(slice);
}

void Scheduler::PlaceGuesses(const Group& group, int may_guess, Sample* sample, Budget* budget,
                             Slice* slice) {
  const int64_t wanted = std::min(
      {int64_t{may_guess}, group.max_tokens - sample->drawn - 1, budget->tokens, budget->guesses});
  if (wanted <= 0) return;
  slice->guesses = static_cast<int>(MakeFreeRoom(&sample->table, wanted));
  slice->count += slice->guesses;
  slice->pages = sample->table.pages;
  sample->table.computed += slice->guesses;
  sample->guessing = slice->guesses > 0;
  budget->tokens -= slice->guesses;
  budget->guesses -= slice->guesses;
  stats_.guessed_tokens += slice->guesses;
}

void Scheduler::Guess(int64_t number, int index, int count) {
  Sample& sample = groups_.at(number).samples[index];
  if (sample.phase == Phase::kRunning && sample.under_way == 0) sample.may_guess = count;
}

int64_t Scheduler::WholeChunks(int64_t missing, int64_t room) const {
  return room >= missing ? missing : room - room % options_.chunk_multiple;
}

void Scheduler::PlacePrompt(size_t i, Group* group, Budget* budget, Step* step) {
  const int64_t number = running_[i].group;
  Table& table = group->prompt;
  if (table.computed < group->prompt_length && table.computed % options_.chunk_multiple != 0) {
    // Its last page was given up, and what comes before does not begin a chunk: all is computed
    // again, when nobody reads it any more.
    const bool read =
        std::any_of(group->samples.begin(), group->samples.end(), [](const Sample& sample) {
          return sample.phase == Phase::kRunning && !sample.table.pages.empty();
        });
    if (read) return;
    ReleaseAll(&table);
    holding_.erase(number);
  }
  if (table.pages.empty()) FindPrefix(number, group);
  const int64_t missing = group->prompt_length - table.computed;
  const int64_t count =
      WholeChunks(missing, MakeRoom(i, &table, WholeChunks(missing, budget->ChunkRoom()), step));
  if (!table.pages.empty()) holding_.insert(number);
  if (count == 0) return;
  budget->tokens -= count;
  budget->chunks -= count;
  Slice slice = {.group = number, .first = table.computed, .count = count, .pages = table.pages};
  Advance(&table, count, &stats_.prompt_tokens);
  if (count == missing) {
    for (int k = 0; k < static_cast<int>(group->samples.size()); ++k) {
      Sample& sample = group->samples[k];
      if (sample.phase == Phase::kEnded || sample.drawn > 0) continue;
      step->draws.push_back({.group = number, .sample = k, .slot = sample.slot});
      sample.drawn = sample.under_way = 1;
      ++slice.draws;
    }
  }
  step->slices.push_back(slice);
}

void Scheduler::FindPrefix(int64_t number, Group* group) {
  if (group->prompt_tokens.empty()) return;
  Table& table = group->prompt;
  // Its last token passes through the model in any case, for the logits.
  table.pages = prefixes_->Find(group->prompt_tokens.first(group->prompt_length - 1));
  const int64_t found = static_cast<int64_t>(table.pages.size()) * options_.page_size;
  table.pages.resize((found - found % options_.chunk_multiple) / options_.page_size);
  if (table.pages.empty()) return;
  for (const int32_t page : table.pages) pool_.Hold(page);
  holding_.insert(number);
  table.computed = static_cast<int64_t>(table.pages.size()) * options_.page_size;
  table.reached = std::max(table.reached, table.computed);
  stats_.cached_tokens += table.computed;
}

void Scheduler::KeepSample(const Group& group, const Sample& sample,
                           std::span<const int32_t> generated) {
  if (options_.reserve_whole_samples) return;
  if (group.prompt_tokens.empty() || sample.table.pages.empty() || generated.empty()) return;
  std::vector<int32_t> tokens(group.prompt_tokens.begin(), group.prompt_tokens.end());
  // Without the last one: if a guess was refused there, the cache has the guess.
  tokens.insert(tokens.end(), generated.begin(), generated.end() - 1);
  const int64_t known = std::min(static_cast<int64_t>(tokens.size()), sample.table.computed);
  prefixes_->Insert(std::span(tokens).first(known), sample.table.pages);
}

void Scheduler::TakePromptOver(Group* group, Sample* sample) {
  for (int32_t page : group->prompt.pages) pool_.Hold(page);
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
  for (const Slice& slice : step.slices) {
    if (slice.sample >= 0) continue;
    Group& group = groups_.at(slice.group);
    // From the next step on: the pages are not written yet when this step's samples read theirs.
    group.ready = group.prompt.computed == group.prompt_length;
  }
}

void Scheduler::Collected(const Draw& draw) {
  const auto it = groups_.find(draw.group);
  if (it == groups_.end()) return;
  Group& group = it->second;
  Sample& sample = group.samples[draw.sample];
  if (sample.phase != Phase::kEnded) --sample.under_way;
  // The prompt has run, and gave a token; its last, partly filled page may be given up by now.
  const int64_t whole = group.prompt_length - group.prompt_length % options_.page_size;
  if (draw.index == 0 && group.prompt.computed >= whole && !group.prompt_tokens.empty()) {
    prefixes_->Insert(group.prompt_tokens.first(whole), group.prompt.pages);
  }
}

void Scheduler::CollectedGuesses(const Draw& draw, int held) {
  const auto it = groups_.find(draw.group);
  if (it == groups_.end()) return;
  Sample& sample = it->second.samples[draw.sample];
  if (sample.phase == Phase::kEnded) return;
  const int refused = draw.guesses + 1 - held;
  sample.under_way = 0;
  sample.guessing = false;
  sample.drawn -= refused;
  // What the refused ones left is written over; a sample without pages has given way meanwhile.
  if (!sample.table.pages.empty()) {
    sample.table.computed -= refused;
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
  Check(sample.phase != Phase::kEnded, "the sample has ended already");
  if (sample.phase == Phase::kRunning) {
    running_.erase(std::lower_bound(running_.begin(), running_.end(), Name{number, index}));
    free_slots_.push_back(sample.slot);
    --group.running;
  } else {
    waiting_.erase({number, index});
  }
  sample.phase = Phase::kEnded;
  KeepSample(group, sample, generated);
  if (sample.table.pages.empty()) --group.without_pages;
  ReleaseAll(&sample.table);
  if (--group.not_ended == 0) {
    ReleaseAll(&group.prompt);
    holding_.erase(number);
    groups_.erase(number);
  } else if (group.without_pages == 0) {
    ReleaseTail(number, &group);
  }
}

std::vector<int> Scheduler::CountHolders() const {
  std::vector<int> holders(options_.num_pages);
  for (const auto& [number, group] : groups_) {
    for (int32_t page : group.prompt.pages) ++holders[page];
    for (const Sample& sample : group.samples) {
      for (int32_t page : sample.table.pages) ++holders[page];
    }
  }
  return holders;
}

}  // namespace tritonrl
