#include "trainer/main_support.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// A signal handler can reach nothing but this.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Note(int signal) {
  if (signal == SIGINT && received_signal.load() == SIGINT) _exit(128 + SIGINT);
  received_signal.store(signal);
}

// Cores this process may run on (a Slurm job gets fewer than the machine has).
int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

std::vector<std::string> TakeOverrides(int* argc, char** argv) {
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
  std::vector<std::string> overrides = TakeOverrides(&argc, argv);
  absl::SetProgramUsageMessage(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", rest[1], "' is no flag; see --help"));
  }
  return overrides;
}

int BadUsage(const absl::Status& status) {
  std::fprintf(stderr, "error: %s\n", Message(status).c_str());
  return kExitBadUsage;
}

StopSignal::StopSignal() {
  received_signal.store(0);
  struct sigaction action = {};
  action.sa_handler = Note;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) sigaction(signal, &action, nullptr);
}

int StopSignal::received() const { return received_signal.load(); }

void StopSignal::Raise(int signal) { received_signal.store(signal); }

int ThreadsFor(int configured, const DataParallel& ranks) {
  if (configured > 0) return configured;
  // A launcher that binds ranks to cores has already divided them: then the affinity is the share.
  const int cores = UsableCores();
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < online) return cores;
  return std::max(1, cores / ranks.local_size());
}

}  // namespace tritonrl
