#include "rollout/scheduler.h"

#include <algorithm>

namespace tritonrl {

Scheduler::Scheduler(int num_slots) : slots_(std::max(num_slots, 1)) {}

void Scheduler::Add(int64_t group, int samples) { waiting_.push_back({group, 0, samples}); }

std::vector<Scheduler::Admission> Scheduler::Admit() {
  std::vector<Admission> admissions;
  while (!waiting_.empty() && num_running_ < num_slots()) {
    Group& group = waiting_.front();
    const int source = FindPrompt(group.group);
    while (group.next_sample < group.samples) {
      const int slot = FindFree(group.group);
      if (slot < 0) break;
      const bool in_place = slots_[slot].prompt_of == group.group;
      admissions.push_back({group.group, group.next_sample++, slot, in_place ? slot : source});
      slots_[slot] = {.running = true, .prompt_of = group.group};
      ++num_running_;
    }
    if (group.next_sample == group.samples) waiting_.pop_front();
  }
  return admissions;
}

void Scheduler::Finish(int slot) {
  slots_[slot].running = false;
  --num_running_;
}

std::vector<int> Scheduler::CancelWaiting(int64_t group) {
  std::vector<int> samples;
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (it->group != group) continue;
    for (int sample = it->next_sample; sample < it->samples; ++sample) samples.push_back(sample);
    waiting_.erase(it);
    break;
  }
  return samples;
}

int64_t Scheduler::num_waiting() const {
  int64_t count = 0;
  for (const Group& group : waiting_) count += group.samples - group.next_sample;
  return count;
}

int Scheduler::FindPrompt(int64_t group) const {
  for (int slot = 0; slot < num_slots(); ++slot) {
    if (slots_[slot].prompt_of == group) return slot;
  }
  return -1;
}

int Scheduler::FindFree(int64_t group) const {
  int free = -1;
  for (int slot = 0; slot < num_slots(); ++slot) {
    if (slots_[slot].running) continue;
    if (slots_[slot].prompt_of == group) return slot;
    if (free < 0) free = slot;
  }
  return free;
}

}  // namespace tritonrl
