// A progress bar with the estimated remaining time.
#ifndef TRITONRL_BASE_PROGRESS_H_
#define TRITONRL_BASE_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tritonrl {

// Returns e.g. "[##----------] 12/80", with `width` characters between the brackets.
std::string ProgressBar(int64_t done, int64_t total, int width);

// Returns e.g. "43s", "4m05s", "2h03m"; rounds to seconds below an hour, cuts to minutes above.
std::string ShortDuration(absl::Duration duration);

struct ProgressOptions {
  std::string label;  // printed before the bar
  int64_t total = 0;  // units of work in all
  int64_t first = 0;  // units that an earlier run did; not counted in the rate
  std::FILE* out = stderr;
  // On a terminal, Tick() rewrites one line, at most every 0.1 s. Otherwise it prints a new line,
  // at most every `quiet_interval`, so that log files stay short.
  absl::Duration quiet_interval = absl::Seconds(10);
  std::function<absl::Time()> now = absl::Now;
  int force_tty = -1;  // for tests: 0 (no terminal) or 1 (terminal); -1 calls isatty
};

// Prints the progress of one loop. Not thread-safe.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // ends an open terminal line

  // Shows the bar at `done` units with `text` behind it. On a terminal, the next call overwrites
  // this line.
  void Tick(int64_t done, const std::string& text);
  // Prints the same as a permanent line, without a minimum interval (e.g. per training step).
  void Line(int64_t done, const std::string& text);
  // Prints `text` alone as a permanent line, in place of an open terminal line.
  void Print(const std::string& text);
  // Removes an open terminal line, before another writer prints a line.
  void ClearOpenLine();
  // Mean time per unit of this run times the remaining units; zero before the first unit.
  absl::Duration Left(int64_t done) const;

 private:
  std::string Format(int64_t done, const std::string& text) const;

  ProgressOptions options_;
  bool tty_ = false;
  bool open_line_ = false;
  absl::Time start_;
  absl::Time last_tick_ = absl::InfinitePast();
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_PROGRESS_H_
