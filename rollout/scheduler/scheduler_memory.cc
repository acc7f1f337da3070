// Which sample gets memory: admission, pages for a step, preemption.

#include <algorithm>
#include <iterator>

#include "rollout/scheduler/scheduler.h"

namespace tritonrl {

int64_t Scheduler::PagesNeededSoon(const Group& group, const Sample& sample) const {
  int64_t held = static_cast<int64_t>(sample.table.pages.size());
  if (held == 0) {
    // Taken over from the prompt; the last sample to do so needs no copy of the partly filled page.
    held = group.without_pages == 1 ? Pages(group.prompt_length)
                                    : group.prompt_length / options_.page_size;
  }
  const int64_t at_its_end = Pages(group.prompt_length + group.max_tokens - 1) - held;
  if (options_.reserve_max_tokens) return std::max<int64_t>(0, at_its_end);
  // One page more than it needs now: samples that are let in must not push each other out at once.
  const int64_t soon = Pages(group.prompt_length + sample.drawn) + 1 - held;
  return std::max<int64_t>(0, std::min(at_its_end, soon));
}

int64_t Scheduler::IdlePages(const Group& group) const {
  if (group.running > 0) return 0;
  const std::vector<int32_t>& pages = group.prompt.pages;
  // With prefixes, others can hold them too.
  if (!options_.reserve_max_tokens || !prefix_cache_.has_value()) {
    return static_cast<int64_t>(pages.size());
  }
  return std::count_if(pages.begin(), pages.end(),
                       [this](int32_t page) { return pool_.ref_count(page) == 1; });
}

int64_t Scheduler::PagesOfIdleGroups() const {
  int64_t pages = 0;
  for (int64_t number : groups_with_pages_) pages += IdlePages(groups_.at(number));
  return pages;
}

void Scheduler::Admit() {
  if (waiting_.empty() || free_slots_.empty()) return;
  int64_t taken = 0;
  int64_t last = -1;  // what is missing of a group's prompt counts once
  const auto add = [&](const SampleId& name) {
    const Group& group = groups_.at(name.group);
    const Sample& sample = group.samples[name.sample];
    taken += PagesNeededSoon(group, sample);
    if (sample.table.pages.empty() && name.group != last) {
      taken += Pages(group.prompt_length) - static_cast<int64_t>(group.prompt.pages.size());
      last = name.group;
    }
  };
  for (const SampleId& name : running_) add(name);
  while (!waiting_.empty() && !free_slots_.empty()) {
    const SampleId name = *waiting_.begin();
    Group& group = groups_.at(name.group);
    Sample& sample = group.samples[name.sample];
    if (sample.in_flight > 0) return;  // nobody knows its last token yet
    add(name);
    const int64_t available = pool_.num_free() + PagesOfIdleGroups() - IdlePages(group);
    if (!running_.empty() && taken > available) return;
    waiting_.erase(waiting_.begin());
    sample.phase = Phase::kRunning;
    sample.slot = free_slots_.back();
    free_slots_.pop_back();
    ++group.running;
    running_.insert(std::lower_bound(running_.begin(), running_.end(), name), name);
  }
}

bool Scheduler::WritesToSharedPage(const Table& table) const {
  return table.computed % options_.page_size != 0 &&
         pool_.ref_count(table.pages[table.computed / options_.page_size]) > 1;
}

int64_t Scheduler::AllocatePages(size_t i, Table* table, int64_t count, Step* step) {
  if (count == 0) return 0;
  const auto wanted = [&] {
    return Pages(table->computed + count) - static_cast<int64_t>(table->pages.size()) +
           (WritesToSharedPage(*table) ? 1 : 0);
  };
  while (wanted() > pool_.num_free() && Reclaim(i, *step)) {
  }
  int64_t available = pool_.num_free();
  const bool copy = WritesToSharedPage(*table);
  if (copy && --available < 0) return 0;
  const int64_t positions =
      (static_cast<int64_t>(table->pages.size()) + available) * options_.page_size;
  count = std::min(count, positions - table->computed);
  if (count <= 0) return 0;
  if (copy) {
    int32_t& page = table->pages[table->computed / options_.page_size];
    const int32_t from = page;
    page = pool_.Allocate();
    step->copies.push_back({from, page});
    pool_.Release(from);
  }
  while (static_cast<int64_t>(table->pages.size()) < Pages(table->computed + count)) {
    table->pages.push_back(pool_.Allocate());
  }
  return count;
}

int64_t Scheduler::AllocateFreePages(Table* table, int64_t count) {
  const int64_t positions =
      (static_cast<int64_t>(table->pages.size()) + pool_.num_free()) * options_.page_size;
  count = std::min(count, positions - table->computed);
  while (static_cast<int64_t>(table->pages.size()) < Pages(table->computed + count)) {
    table->pages.push_back(pool_.Allocate());
  }
  return count;
}

bool Scheduler::Reclaim(size_t i, const Step& step) {
  const int64_t requester = running_[i].group;
  if (EvictIdlePrompt(requester)) return true;
  if (i + 1 < running_.size()) {
    Preempt();
    ++stats_.preemptions;
    return true;
  }
  return EvictPartialPage(requester, step);
}

void Scheduler::Preempt() {
  const SampleId name = running_.back();
  running_.pop_back();
  Group& group = groups_.at(name.group);
  Sample& sample = group.samples[name.sample];
  if (!sample.table.pages.empty()) ++group.without_pages;
  ReleaseAll(&sample.table);
  free_slots_.push_back(sample.slot);
  sample.slot = -1;
  sample.max_draft_tokens = 0;
  sample.phase = Phase::kWaiting;
  --group.running;
  waiting_.insert(name);
}

void Scheduler::Invalidate() {
  while (!running_.empty()) Preempt();
  for (const int64_t number : groups_with_pages_) {
    Group& group = groups_.at(number);
    ReleaseAll(&group.prompt);
    group.ready = false;
  }
  groups_with_pages_.clear();
  InvalidatePrefixCache();
}

void Scheduler::InvalidatePrefixCache() {
  if (!prefix_cache_.has_value()) return;
  prefix_cache_->Clear();
  // What unfinished groups have computed must not be found later either.
  for (auto& [number, group] : groups_) group.prompt_tokens = {};
}

// Gives up the prompt of the youngest group of which no sample runs.
bool Scheduler::EvictIdlePrompt(int64_t except) {
  for (auto it = groups_with_pages_.rbegin(); it != groups_with_pages_.rend(); ++it) {
    Group& group = groups_.at(*it);
    if (group.running > 0 || *it == except) continue;
    ReleaseAll(&group.prompt);
    group.ready = false;
    groups_with_pages_.erase(std::next(it).base());
    return true;
  }
  return false;
}

bool Scheduler::HasPartialPage(const Group& group) const {
  return group.ready && group.prompt_length % options_.page_size != 0;
}

// Gives up a prompt's partly filled page, if that frees a page or lets the requester write to it.
bool Scheduler::EvictPartialPage(int64_t requester, const Step& step) {
  for (auto it = groups_with_pages_.rbegin(); it != groups_with_pages_.rend(); ++it) {
    Group& group = groups_.at(*it);
    if (!HasPartialPage(group)) continue;
    const int32_t page = group.prompt.pages.back();
    // A page that this step copies from must not be one that it copies to.
    const bool copied = std::any_of(step.copies.begin(), step.copies.end(),
                                    [&](const PageCopy& copy) { return copy.from == page; });
    if (*it != requester && (pool_.ref_count(page) > 1 || copied)) continue;
    ReleasePartialPage(*it, &group);
    return true;
  }
  return false;
}

void Scheduler::ReleasePartialPage(int64_t number, Group* group) {
  if (!HasPartialPage(*group)) return;
  pool_.Release(group->prompt.pages.back());
  group->prompt.pages.pop_back();
  group->prompt.computed = group->prompt_length / options_.page_size * options_.page_size;
  group->ready = false;
  if (group->prompt.pages.empty()) groups_with_pages_.erase(number);
}

void Scheduler::ReleaseAll(Table* table) {
  // From the end, so that of what may be found again beginnings stay the longest.
  for (auto page = table->pages.rbegin(); page != table->pages.rend(); ++page) pool_.Release(*page);
  table->pages.clear();
  table->computed = 0;
}

}  // namespace tritonrl
