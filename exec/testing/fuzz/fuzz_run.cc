#include "exec/testing/fuzz/fuzz_run.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tritonrl {
namespace {

constexpr int kBroken = 3;  // exit code of a child that has written a message

// What a child shares with its parent.
struct Slot {
  std::atomic<uint64_t> number;  // of the input that runs, or of the next one
  std::atomic<uint64_t> done;
  char message[2000];  // ends with 0
};

// Slots that stay when a child ends.
class SharedSlots {
 public:
  explicit SharedSlots(int count) : bytes_(static_cast<size_t>(count) * sizeof(Slot)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    slots_ = static_cast<Slot*>(memory);
    for (int i = 0; i < count; ++i) new (slots_ + i) Slot();
  }
  ~SharedSlots() {
    if (slots_ != nullptr) munmap(slots_, bytes_);
  }
  SharedSlots(const SharedSlots&) = delete;
  SharedSlots& operator=(const SharedSlots&) = delete;

  bool ok() const { return slots_ != nullptr; }
  Slot& operator[](int i) { return slots_[i]; }

 private:
  const size_t bytes_;
  Slot* slots_ = nullptr;
};

[[noreturn]] void RunInputs(FuzzTarget* target, Slot* slot, uint64_t end, uint64_t step) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (uint64_t number = slot->number; number < end; number = slot->number += step) {
    const absl::Status kept = target->Run(number);
    if (!kept.ok()) {
      slot->message[kept.message().copy(slot->message, sizeof(slot->message) - 1)] = 0;
      _exit(kBroken);
    }
    ++slot->done;
  }
  _exit(0);
}

class Run {
 public:
  Run(FuzzTarget* target, const FuzzOptions& options)
      : target_(target), options_(options), slots_(options.jobs), children_(options.jobs) {}
  ~Run() {
    for (const Child& child : children_) {
      if (child.pid <= 0) continue;
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  }

  absl::StatusOr<FuzzReport> Wait() {
    if (!slots_.ok()) return absl::InternalError("no memory for the children's counts");
    for (int i = 0; i < options_.jobs; ++i) {
      slots_[i].number = options_.first + static_cast<uint64_t>(i);
      RETURN_IF_ERROR(Start(i));
    }
    bool running = true;
    while (running && report_.failures.size() < static_cast<size_t>(options_.most_failures)) {
      running = false;
      for (int i = 0; i < options_.jobs; ++i) {
        if (children_[i].pid > 0) RETURN_IF_ERROR(Look(i));
        running |= children_[i].pid > 0;
      }
      report_.done = report_.failures.size();
      for (int i = 0; i < options_.jobs; ++i) report_.done += slots_[i].done;
      if (options_.tell) options_.tell(report_.done, report_.failures.size());
      if (running) absl::SleepFor(absl::Milliseconds(200));
    }
    return report_;
  }

 private:
  struct Child {
    pid_t pid = -1;       // -1: none runs
    uint64_t number = 0;  // of the input that was seen last
    absl::Time since;     // when it was seen first
  };

  uint64_t end() const { return options_.first + options_.count; }

  absl::Status Start(int i) {
    if (slots_[i].number >= end()) return absl::OkStatus();
    const pid_t pid = fork();
    if (pid < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
    if (pid == 0) RunInputs(target_, &slots_[i], end(), static_cast<uint64_t>(options_.jobs));
    children_[i] = {pid, slots_[i].number, absl::Now()};
    return absl::OkStatus();
  }

  // Takes note of a child that ended, or that does not get on.
  absl::Status Look(int i) {
    Child& child = children_[i];
    int status = 0;
    const pid_t ended = waitpid(child.pid, &status, WNOHANG);
    if (ended == 0) {
      if (const uint64_t number = slots_[i].number; number != child.number) {
        child.number = number;
        child.since = absl::Now();
      } else if (absl::Now() - child.since > options_.limit) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
        return Failed(i, absl::StrCat("no end in ", absl::FormatDuration(options_.limit)));
      }
      return absl::OkStatus();
    }
    if (ended < 0) return absl::InternalError(absl::StrCat("waitpid: ", std::strerror(errno)));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      child.pid = -1;
      return absl::OkStatus();
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == kBroken) return Failed(i, slots_[i].message);
    ExitStatus exit;
    if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
    if (WIFEXITED(status)) exit.exit_code = WEXITSTATUS(status);
    return Failed(i, exit.ToString());
  }

  // Goes on behind the input at which the child ended.
  absl::Status Failed(int i, const std::string& reason) {
    children_[i].pid = -1;
    report_.failures.push_back({slots_[i].number, reason});
    slots_[i].number += static_cast<uint64_t>(options_.jobs);
    return Start(i);
  }

  FuzzTarget* const target_;
  const FuzzOptions options_;
  SharedSlots slots_;
  std::vector<Child> children_;
  FuzzReport report_;
};

}  // namespace

absl::StatusOr<FuzzReport> RunFuzz(FuzzTarget* target, const FuzzOptions& options) {
  return Run(target, options).Wait();
}

}  // namespace tritonrl
