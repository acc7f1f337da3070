// The rewards of a sample, and the evaluation metrics over N tasks with k samples each: the paper's
// (the maximum over the k samples of a task, averaged over tasks) and unbiased pass@k.
#ifndef TRITONRL_VERIFY_VERDICT_METRICS_H_
#define TRITONRL_VERIFY_VERDICT_METRICS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// The indicators and the speedup of one sample. Each indicator implies those before it, as in the
// paper.
struct SampleScore {
  bool syntax = false;
  bool valid = false;
  bool compiled = false;
  bool correct = false;
  double speedup = 0.0;  // 0 unless correct; not clipped.
  // The speedup that fast_p compares with p (SpeedupLowOf): the lower end of its interval, or by
  // the paper's rules the speedup itself. 0 unless correct.
  double speedup_low = 0.0;
};

SampleScore ScoreOf(const Verdict& verdict);

// Means over tasks. All fractions are in [0, 1]; mean_speedup is a mean of ratios.
struct Metrics {
  double syntax = 0.0;
  double valid = 0.0;
  double compiled = 0.0;
  double correct = 0.0;
  double fast_1 = 0.0;  // correct and speedup_low > 1
  double fast_2 = 0.0;  // correct and speedup_low > 2
  double mean_speedup = 0.0;
  int tasks = 0;  // N: tasks with at least one verified sample.
  int samples = 0;
  int infra_errors = 0;    // Samples left out.
  int tasks_left_out = 0;  // Tasks whose samples were all infrastructure errors.
  bool modelled = false;   // True if any speedup comes from a model.
};

// Collects the scores of samples by task id and computes metrics from them.
class MetricsBuilder {
 public:
  // Adds one sample of verdict.task_id(). Infrastructure errors are counted and left out.
  void Add(const Verdict& verdict);

  // The paper's metrics: the maximum over all samples of each task (k = samples of that task).
  Metrics MaxOverSamples() const;

  // The same with the first k samples of each task in the order of Add; k <= 0 takes all samples.
  Metrics MaxOverFirst(int k) const;

  // The expected maximum over k samples drawn without replacement from the n samples of each task.
  // For indicators this is the unbiased estimator 1 - C(n-c, k) / C(n, k), for the speedup its
  // generalisation by order statistics. InvalidArgument, naming the task, if k < 1 or k > n.
  absl::StatusOr<Metrics> PassAtK(int k) const;

 private:
  std::map<std::string, std::vector<SampleScore>> scores_;
  int infra_errors_ = 0;
  std::map<std::string, int> infra_errors_by_task_;
  bool modelled_ = false;
};

// Returns 1 - C(n-c, k) / C(n, k), the probability that k samples drawn without replacement from n
// contain at least one of the c good ones. Requires 0 <= c <= n and 1 <= k <= n.
double PassAtKEstimate(int n, int c, int k);

// Upper limit of the speedup reward, so that extreme values do not destabilize training.
inline constexpr double kSpeedupClip = 2.0;

struct Rewards {
  double correct = 0.0;  // R_correct: 0 or 1.
  double speedup = 0.0;  // R_speedup: in [0, clip].
};

// Returns the rewards of one verdict, or nullopt for an infrastructure error: the caller must leave
// such a sample out instead of giving it reward 0.
std::optional<Rewards> ComputeRewards(const Verdict& verdict, double speedup_clip = kSpeedupClip);

// The uniform reward, with which the paper compares HRD: beta * R_correct + (1 - beta) * R_speedup,
// beta in [0, 1].
double UniformReward(const Rewards& rewards, double beta);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_METRICS_H_
