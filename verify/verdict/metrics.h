#ifndef TRITONRL_VERIFY_VERDICT_METRICS_H_
#define TRITONRL_VERIFY_VERDICT_METRICS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verify/verdict/verdict.pb.h"

// The rewards of a sample, and the paper's evaluation metrics over N tasks with k samples each: for
// every sample an indicator or a speedup, the maximum over the k samples of a task, the mean over
// tasks. Beside it the unbiased pass@k estimator.

namespace tritonrl {

// What one sample contributes; each indicator contains those before it, as in the paper.
struct SampleScore {
  bool syntax = false;
  bool valid = false;
  bool compiled = false;
  bool correct = false;
  double speedup = 0.0;  // 0 unless correct; not clipped.
  // The speedup that fast_p compares with p: the lower end of the interval if it was measured; a
  // modelled speedup has no interval and counts itself. 0 unless correct.
  double speedup_low = 0.0;
};

SampleScore ScoreOf(const Verdict& verdict);

// All fractions lie in [0, 1]; mean_speedup is a mean of ratios.
struct Metrics {
  double syntax = 0.0;
  double valid = 0.0;
  double compiled = 0.0;
  double correct = 0.0;
  double fast_1 = 0.0;  // correct and the lower end of the speedup's interval > 1
  double fast_2 = 0.0;  // the same above 2
  double mean_speedup = 0.0;
  int tasks = 0;  // N: tasks with at least one sample.
  int samples = 0;
  int infra_errors = 0;    // Samples left out.
  int tasks_left_out = 0;  // Tasks whose every sample was an infrastructure error.
  bool modelled = false;   // True if any speedup comes from a model.
};

// Scores of the samples of each task, by task id.
class MetricsBuilder {
 public:
  // Adds one sample of verdict.task_id(). Infrastructure errors are counted and left out.
  void Add(const Verdict& verdict);

  // The paper's definition: the maximum over all samples of each task (k = samples of that task).
  Metrics MaxOverSamples() const;

  // The maximum over the first k samples of each task, in the order they were added.
  Metrics MaxOverFirst(int k) const;

  // The expectation of the maximum over k samples drawn without replacement from the n added of
  // each task. For indicators this is the unbiased estimator 1 - C(n-c, k) / C(n, k); for the
  // speedup its generalisation by order statistics. k above a task's n is an error that names the
  // task.
  absl::StatusOr<Metrics> PassAtK(int k) const;

 private:
  std::map<std::string, std::vector<SampleScore>> scores_;
  int infra_errors_ = 0;
  std::map<std::string, int> infra_errors_by_task_;
  bool modelled_ = false;
};

// 1 - C(n-c, k) / C(n, k): the chance that at least one of k samples drawn from n, of which c are
// good, is good. Needs 0 <= c <= n and 1 <= k <= n.
double PassAtKEstimate(int n, int c, int k);

// Upper end of the speedup reward, so that extreme values do not unsettle training.
inline constexpr double kSpeedupClip = 2.0;

struct Rewards {
  double correct = 0.0;  // R_correct: 0 or 1.
  double speedup = 0.0;  // R_speedup: in [0, clip].
};

// The rewards of one verdict; nullopt for an infrastructure error, which is no reward at all (leave
// the sample out).
std::optional<Rewards> ComputeRewards(const Verdict& verdict, double speedup_clip = kSpeedupClip);

// The uniform reward of the paper's comparison: beta * R_correct + (1 - beta) * R_speedup, beta in
// [0, 1].
double UniformReward(const Rewards& rewards, double beta);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_METRICS_H_
