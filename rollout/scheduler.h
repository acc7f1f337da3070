#ifndef TRITONRL_ROLLOUT_SCHEDULER_H_
#define TRITONRL_ROLLOUT_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <vector>

namespace tritonrl {

// Decides which sample runs in which cache slot. Plain bookkeeping without a model.
//
// Groups are served in the order they came; a group's samples get slots as these fall free. The
// prompt's keys and values stay at the beginning of every slot that a sample of the group ran in
// until another group's sample takes the slot. As only the first waiting group can be partly
// admitted, and takes free slots that hold its prompt first, a prompt never has to be computed
// twice.
class Scheduler {
 public:
  // A sample that starts now.
  struct Admission {
    int64_t group = 0;
    int sample = 0;  // 0 .. samples - 1, in order
    int slot = 0;
    // Slot to copy the prompt from; `slot` itself if the prompt is there already; -1 if no slot
    // holds it and it has to be computed (all admissions of one group at a time say the same).
    int source = -1;
  };

  explicit Scheduler(int num_slots);

  // Adds a group of `samples` samples at the end of the queue. Numbers of groups are never reused.
  void Add(int64_t group, int samples);

  // Fills free slots with waiting samples.
  std::vector<Admission> Admit();

  // The sample in `slot` ended.
  void Finish(int slot);

  // Takes a group's waiting samples out of the queue and returns their numbers. Those that run go
  // on until Finish.
  std::vector<int> CancelWaiting(int64_t group);

  int num_slots() const { return static_cast<int>(slots_.size()); }
  int num_running() const { return num_running_; }
  int64_t num_waiting() const;

 private:
  struct Slot {
    bool running = false;
    int64_t prompt_of = -1;  // The group whose prompt is in the slot.
  };
  struct Group {
    int64_t group = 0;
    int next_sample = 0;
    int samples = 0;
  };
  // A slot that holds the group's prompt, -1 if none.
  int FindPrompt(int64_t group) const;
  // A free slot, one that holds the group's prompt if possible; -1 if none is free.
  int FindFree(int64_t group) const;

  std::vector<Slot> slots_;
  std::deque<Group> waiting_;
  int num_running_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SCHEDULER_H_
