// What a person sees while something long runs: one line with a bar and the time left.
#ifndef TRITONRL_BASE_PROGRESS_H_
#define TRITONRL_BASE_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tritonrl {

// "[######------] 12/80", `width` characters between the brackets.
std::string ProgressBar(int64_t done, int64_t total, int width);

// "43s", "4m05s", "2h03m".
std::string ShortDuration(absl::Duration duration);

struct ProgressOptions {
  std::string label;  // printed before the bar
  int64_t total = 0;  // units of work in all
  int64_t first = 0;  // units done before this run (a resumed run), left out of the rate
  std::FILE* out = stderr;
  // On a terminal Tick() rewrites one line, at most every 0.1 s. Elsewhere it prints a line of
  // its own when nothing was printed for `quiet_interval`, so that log files stay readable.
  absl::Duration quiet_interval = absl::Seconds(10);
  std::function<absl::Time()> now = absl::Now;
  int force_tty = -1;  // -1: ask isatty; 0 or 1: as given (tests)
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // ends an open terminal line

  // `done` units are ready; `text` stands behind the bar. A passing state: on a terminal it is
  // overwritten by what comes next.
  void Tick(int64_t done, const std::string& text);
  // The same as a line that stays (one training step): always printed, never overwritten.
  void Line(int64_t done, const std::string& text);
  // Another message as a line that stays, without breaking an open terminal line.
  void Print(const std::string& text);
  // The mean time a unit took in this run, times the units left; zero before the first unit.
  absl::Duration Left(int64_t done) const;

 private:
  std::string Format(int64_t done, const std::string& text) const;
  void ClearOpenLine();

  ProgressOptions options_;
  bool tty_ = false;
  bool open_line_ = false;
  absl::Time start_;
  absl::Time last_tick_ = absl::InfinitePast();
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_PROGRESS_H_
