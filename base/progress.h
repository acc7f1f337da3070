// Progress bar with the time left.
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
  int64_t first = 0;  // units done before a resumed run, not counted in the rate
  std::FILE* out = stderr;
  // On a terminal Tick() rewrites one line, at most every 0.1 s. Elsewhere it prints a new line, at
  // most every `quiet_interval`, so that log files stay readable.
  absl::Duration quiet_interval = absl::Seconds(10);
  std::function<absl::Time()> now = absl::Now;
  int force_tty = -1;  // -1: ask isatty; 0 or 1: as given (tests)
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // ends an open terminal line

  // Shows that `done` units are done, and `text` after the bar. On a terminal the next output
  // overwrites it.
  void Tick(int64_t done, const std::string& text);
  // The same as a permanent line, always printed (e.g. one line for each training step).
  void Line(int64_t done, const std::string& text);
  // Prints another message as a permanent line and keeps the terminal line whole.
  void Print(const std::string& text);
  // Mean time of a unit in this run times the units left; zero before the first unit.
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
