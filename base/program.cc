#include "base/program.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/version.h"

ABSL_FLAG(std::string, log_level, "info", "least level logged: debug, info, warning, error or off");
ABSL_FLAG(std::string, log_format, "text", "form of a log line: text or json");

namespace tritonrl {

namespace {

// --help shows the flags of these files: the program's main file, the bench harness, this file, and
// the flags that the data tools share.
bool IsOwnFlagFile(absl::string_view file) {
  return absl::EndsWith(file, "_main.cc") || absl::EndsWith(file, "endpoint_flags.cc") ||
         absl::EndsWith(file, "bench/harness/harness.cc") ||
         absl::EndsWith(file, "base/program.cc");
}

}  // namespace

std::string Version() { return kVersion; }

std::string VersionLine() { return absl::StrCat("TritonRL ", kVersion, "\n"); }

absl::Status SetUpLogFromFlags() {
  return SetUpLog(
      {.level = absl::GetFlag(FLAGS_log_level), .format = absl::GetFlag(FLAGS_log_format)});
}

std::vector<char*> StartProgram(const std::string& usage, int argc, char** argv) {
  absl::FlagsUsageConfig config;
  config.contains_help_flags = IsOwnFlagFile;
  config.contains_helpshort_flags = IsOwnFlagFile;
  config.version_string = VersionLine;
  absl::SetFlagsUsageConfig(config);
  absl::SetProgramUsageMessage(usage);
  std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  const absl::Status log = SetUpLogFromFlags();
  if (!log.ok()) {
    std::fprintf(stderr, "ERROR: %s\n", std::string(log.message()).c_str());
    std::exit(1);
  }
  return rest;
}

namespace {

// A signal handler gets only the signal's number, so it can write only to a global variable.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Note(int signal) { received_signal.store(signal); }

void Install(const std::vector<int>& signals, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : signals) sigaction(signal, &action, nullptr);
}

}  // namespace

SignalHandler::SignalHandler(std::vector<int> ends_if_repeated, std::vector<int> repeatable)
    : ends_if_repeated_(std::move(ends_if_repeated)), repeatable_(std::move(repeatable)) {
  received_signal.store(0);
  // SA_RESETHAND: the first signal restores the default action, so that the second ends the
  // process.
  Install(ends_if_repeated_, &Note, SA_RESETHAND | SA_RESTART);
  Install(repeatable_, &Note, SA_RESTART);
}

SignalHandler::~SignalHandler() {
  Install(ends_if_repeated_, SIG_DFL, 0);
  Install(repeatable_, SIG_DFL, 0);
}

int SignalHandler::received() const { return received_signal.load(); }

}  // namespace tritonrl
