// Lengths of samples as in reinforcement learning, for benches: most are short, a few very long.
#ifndef TRITONRL_BENCH_ROLLOUT_LOG_NORMAL_LENGTH_H_
#define TRITONRL_BENCH_ROLLOUT_LOG_NORMAL_LENGTH_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace tritonrl {

// Tokens, from 1 to `longest`: log-normal with this median, and `sigma` as the standard deviation
// of the logarithm. Takes one normal number.
inline int64_t LogNormalLength(double median, double sigma, int64_t longest, Philox* random) {
  return std::clamp<int64_t>(std::llround(median * std::exp(sigma * random->Normal())), 1, longest);
}

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_ROLLOUT_LOG_NORMAL_LENGTH_H_
