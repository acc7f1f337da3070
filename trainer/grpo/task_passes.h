#ifndef TRITONRL_TRAINER_GRPO_TASK_PASSES_H_
#define TRITONRL_TRAINER_GRPO_TASK_PASSES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"

// The order of training tasks in which each epoch is a pass over them.

namespace tritonrl {

// An endless order of tasks, one epoch after the other. A pure function of the constructor's
// arguments, so a resumed run needs only its position.
//
// An epoch has as many places as all pools together have tasks. Each pool has its share of them,
// rounded to whole places, at least one. Within a pool each task comes once before any comes again:
// its order is one permutation after the other. One pool, or one pool with a share above 0,
// therefore means that each epoch holds each of its tasks exactly once.
class TaskPasses {
 public:
  // `pools`: the tasks of each level. `shares`: the share of each pool, which need not add up to 1;
  // a pool without a share is not used. At least one pool has a share, and each of these has a
  // task.
  TaskPasses(uint64_t seed, const std::vector<std::vector<int>>& pools,
             const std::vector<double>& shares);

  // Number of places in an epoch.
  int64_t epoch_length() const { return length_; }

  // The task at a place, counted from 0 over all epochs. Thread-safe.
  int At(int64_t place) const;

 private:
  struct Pool {
    std::vector<int> tasks;
    double share = 0;
    int64_t places = 0;  // in an epoch
  };

  // Sets the pools' places: their shares of the epoch, with the largest remainders rounded up.
  void DividePlaces();
  std::vector<int> MakeEpoch(int64_t epoch) const;
  std::shared_ptr<const std::vector<int>> Epoch(int64_t epoch) const;

  const uint64_t seed_;
  std::vector<Pool> pools_;
  int64_t length_ = 0;
  mutable absl::Mutex mutex_;
  mutable std::map<int64_t, std::shared_ptr<const std::vector<int>>> epochs_
      ABSL_GUARDED_BY(mutex_);  // the ones used last
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_TASK_PASSES_H_
