// A limit on what may be started within any minute, as endpoints set it for requests and tokens.
#ifndef TRITONRL_BASE_ENDPOINT_WINDOW_LIMIT_H_
#define TRITONRL_BASE_ENDPOINT_WINDOW_LIMIT_H_

#include <cstdint>
#include <deque>

#include "absl/time/time.h"

namespace tritonrl {

// Counts amounts over a sliding window. Not thread-safe.
class WindowLimit {
 public:
  // At most `limit` within any `window`; 0: no limit.
  explicit WindowLimit(int64_t limit, absl::Duration window = absl::Minutes(1))
      : limit_(limit), window_(window) {}

  // The time from which `amount` fits; `now` if it fits at once. An amount above the limit fits
  // into an empty window, because it could never start otherwise.
  absl::Time EarliestStart(int64_t amount, absl::Time now);

  // Counts `amount` at `now`, and returns its number for Correct. Without a limit it counts
  // nothing.
  int64_t Add(int64_t amount, absl::Time now);
  // Replaces an estimated amount by the true one. Has no effect once it has left the window.
  void Correct(int64_t number, int64_t amount);

 private:
  struct Entry {
    absl::Time time;
    int64_t amount = 0;
  };
  void Forget(absl::Time now);

  const int64_t limit_;
  const absl::Duration window_;
  std::deque<Entry> entries_;  // numbered from first_ on
  int64_t first_ = 0;
  int64_t sum_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_WINDOW_LIMIT_H_
