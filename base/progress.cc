#include "base/progress.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tritonrl {

std::string ProgressBar(int64_t done, int64_t total, int width) {
  done = std::clamp<int64_t>(done, 0, std::max<int64_t>(total, 0));
  int filled = total > 0 ? static_cast<int>(done * width / total) : 0;
  return absl::StrCat("[", std::string(filled, '#'), std::string(width - filled, '-'), "] ", done,
                      "/", total);
}

std::string ShortDuration(absl::Duration duration) {
  int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration + absl::Milliseconds(500)));
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  return absl::StrFormat("%dh%02dm", seconds / 3600, seconds / 60 % 60);
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  tty_ = options_.force_tty >= 0 ? options_.force_tty == 1 : isatty(fileno(options_.out)) == 1;
  start_ = options_.now();
}

Progress::~Progress() {
  if (open_line_) std::fputc('\n', options_.out);
  std::fflush(options_.out);
}

absl::Duration Progress::Left(int64_t done) const {
  int64_t here = done - options_.first;
  if (here <= 0) return absl::ZeroDuration();
  return (options_.now() - start_) / here * (options_.total - done);
}

std::string Progress::Format(int64_t done, const std::string& text) const {
  std::string left;
  if (done >= options_.total) {
    left = absl::StrCat("took ", ShortDuration(options_.now() - start_));
  } else if (done > options_.first) {
    left = absl::StrCat(ShortDuration(Left(done)), " left");
  }
  std::string line = options_.label.empty() ? "" : options_.label + " ";
  absl::StrAppend(&line, ProgressBar(done, options_.total, 16));
  if (!left.empty()) absl::StrAppend(&line, " ", left);
  if (!text.empty()) absl::StrAppend(&line, "  ", text);
  return line;
}

void Progress::ClearOpenLine() {
  if (open_line_) std::fputs("\r\033[K", options_.out);
  open_line_ = false;
}

void Progress::Tick(int64_t done, const std::string& text) {
  absl::Time now = options_.now();
  absl::Duration interval = tty_ ? absl::Milliseconds(100) : options_.quiet_interval;
  if (now - last_tick_ < interval) return;
  last_tick_ = now;
  ClearOpenLine();
  std::fputs(Format(done, text).c_str(), options_.out);
  if (tty_) {
    open_line_ = true;
  } else {
    std::fputc('\n', options_.out);
  }
  std::fflush(options_.out);
}

void Progress::Line(int64_t done, const std::string& text) { Print(Format(done, text)); }

void Progress::Print(const std::string& text) {
  ClearOpenLine();
  last_tick_ = options_.now();
  std::fputs((text + "\n").c_str(), options_.out);
  std::fflush(options_.out);
}

}  // namespace tritonrl
