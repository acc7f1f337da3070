#include "trainer/program/training_program.h"

#include <google/protobuf/util/message_differencer.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"

namespace tritonrl {

namespace {

using ProtoMessage = google::protobuf::Message;  // not Message() of base/status.h

// Number of cores in this process's affinity mask; a Slurm job may have fewer than the machine.
int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

std::string ConfigDifferences(const ProtoMessage& before, const ProtoMessage& after) {
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_message_field_comparison(google::protobuf::util::MessageDifferencer::EQUIVALENT);
  std::string text;
  differencer.ReportDifferencesToString(&text);
  differencer.Compare(before, after);
  absl::StripAsciiWhitespace(&text);
  return absl::StrReplaceAll(text, {{"\n", "; "}});
}

absl::Status CheckSameConfigOnAllRanks(const ProtoMessage& config, ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ranks->AllGather(config.SerializeAsString()));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::unique_ptr<ProtoMessage> first(config.New()), other(config.New());
    if (!first->ParseFromString(all[0]) || !other->ParseFromString(all[rank])) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " runs another version of this program than rank 0"));
    }
    const std::string differences = ConfigDifferences(*first, *other);
    if (differences.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " has another configuration than rank 0: ", differences,
                     "; start all ranks with the same one"));
  }
  return absl::OkStatus();
}

std::vector<std::string> ExtractOverrides(int* argc, char** argv) {
  std::vector<std::string> overrides;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::StartsWith(argument, "--")) argument.remove_prefix(1);
    if (argument == "-set" && i + 1 < *argc) {
      overrides.push_back(argv[++i]);
    } else if (absl::StartsWith(argument, "-set=")) {
      overrides.push_back(std::string(argument.substr(strlen("-set="))));
    } else {
      argv[kept++] = argv[i];
    }
  }
  argv[kept] = nullptr;
  *argc = kept;
  return overrides;
}

absl::StatusOr<std::vector<std::string>> ParseArguments(const char* usage, int argc, char** argv) {
  std::vector<std::string> overrides = ExtractOverrides(&argc, argv);
  const std::vector<char*> rest = tritonrl::StartProgram(usage, argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", rest[1], "' is no flag; see --help"));
  }
  return overrides;
}

int ReportUsageError(const absl::Status& status) {
  std::fprintf(stderr, "error: %s\n", Message(status).c_str());
  return kExitBadUsage;
}

int ThreadsFor(int configured, const ProcessGroup& ranks) {
  if (configured > 0) return configured;
  // A launcher that binds ranks to cores has already divided them: the affinity mask is the share.
  const int cores = UsableCores();
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < online) return cores;
  return std::max(1, cores / ranks.local_size());
}

namespace {

// Time since this process started, from field 22 of /proc/self/stat (clock ticks after boot).
std::optional<absl::Duration> Age() {
  const auto stat = ReadFile("/proc/self/stat");
  timespec now = {};
  if (!stat.ok() || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  // The second field is the program's name in parentheses, which may itself hold spaces and
  // parentheses.
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
