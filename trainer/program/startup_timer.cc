#include "trainer/program/startup_timer.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"

namespace tritonrl {
namespace {

// Time since this process was started: field 22 of /proc/self/stat, in clock ticks after boot.
std::optional<absl::Duration> Age() {
  const auto stat = ReadFile("/proc/self/stat");
  timespec now = {};
  if (!stat.ok() || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  // The second field, a name in brackets, may hold spaces and brackets itself.
  const size_t end = stat->rfind(')');
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(stat->substr(end + 1), ' ', absl::SkipEmpty());
  int64_t ticks = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &ticks)) return std::nullopt;
  return absl::DurationFromTimespec(now) - absl::Seconds(ticks) / sysconf(_SC_CLK_TCK);
}

}  // namespace

StartupTimer::StartupTimer() : StartupTimer(Age().value_or(absl::ZeroDuration()), absl::Now) {}

StartupTimer::StartupTimer(absl::Duration age, std::function<absl::Time()> now)
    : now_(std::move(now)), last_(now_() - std::max(absl::ZeroDuration(), age)) {
  EndPhase("launch");
}

void StartupTimer::EndPhase(const std::string& what) {
  const absl::Time now = now_();
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const auto& part) { return part.first == what; });
  if (found != parts_.end()) {
    found->second += now - last_;
  } else {
    parts_.emplace_back(what, now - last_);
  }
  last_ = now;
}

std::string StartupTimer::Summary() const {
  absl::Duration total, rest;
  std::string parts;
  for (const auto& [name, time] : parts_) {
    total += time;
    if (time < absl::Milliseconds(50)) {
      rest += time;
    } else {
      absl::StrAppendFormat(&parts, "%s %.1f s, ", name, absl::ToDoubleSeconds(time));
    }
  }
  return absl::StrFormat("first step begins %.1f s after the launch: %sthe rest %.1f s",
                         absl::ToDoubleSeconds(total), parts, absl::ToDoubleSeconds(rest));
}

}  // namespace tritonrl
