#include "exec/executor/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl::executor {
namespace {

// Of a program that computes with threads and talks through its descriptors.
constexpr const char* kAllowed[] = {
    // Descriptors that are there.
    "read", "write", "readv", "writev", "pread64", "pwrite64", "recvfrom", "recvmsg", "sendto",
    "sendmsg", "shutdown", "poll", "ppoll", "select", "pselect6", "close", "fstat", "newfstatat",
    "lseek", "fcntl", "dup", "fallocate", "ftruncate", "eventfd2", "pipe2",
    // Memory. Some of LibTorch's operators write machine code and execute it.
    "mmap", "munmap", "mprotect", "mremap", "madvise", "brk", "mincore", "msync", "mlock",
    "munlock", "membarrier", "mbind", "get_mempolicy", "set_mempolicy",
    // Threads.
    "futex", "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "sched_yield",
    "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_getscheduler", "getcpu",
    "gettid", "exit", "exit_group", "restart_syscall",
    // Signals of its own, time, and what is harmless to know.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "nanosleep", "clock_nanosleep",
    "clock_gettime", "clock_getres", "gettimeofday", "time", "times", "getrusage", "getrlimit",
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "uname", "sysinfo", "getrandom",
    "arch_prctl"};

constexpr rlim_t kMostDescriptors = 48;
constexpr rlim_t kMostCudaDescriptors = 1024;

// NVIDIA's driver numbers its requests of /dev/nvidia* as Linux wants it, with 'F' for the kind of
// device; those of /dev/nvidia-uvm from 0, and two from 0x30000000.
constexpr scmp_datum_t kKindOfRequest = 0xFF00;
constexpr scmp_datum_t kNvidiaKind = 'F' << 8;
constexpr scmp_datum_t kAboveUvm = 0xFFFFFF00;
constexpr scmp_datum_t kUvmStart = 0x30000000;

constexpr bool kSanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

struct FreeContext {
  void operator()(void* context) const { seccomp_release(context); }
};

// Adds rules and keeps the first error.
class Rules {
 public:
  explicit Rules(scmp_filter_ctx context) : context_(context) {}

  template <typename... Comparisons>
  void Allow(const char* call, Comparisons... comparisons) {
    const int number = seccomp_syscall_resolve_name(call);
    if (number == __NR_SCMP_ERROR || error_ != 0) return;  // unknown to this libseccomp
    Add(call,
        seccomp_rule_add(context_, SCMP_ACT_ALLOW, number, sizeof...(comparisons), comparisons...));
  }
  void Fail(const char* call, int error) {
    Add(call,
        seccomp_rule_add(context_, SCMP_ACT_ERRNO(error), seccomp_syscall_resolve_name(call), 0));
  }
  absl::Status status() const {
    if (error_ == 0) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("no filter rule for ", failed_, ": ", strerror(-error_)));
  }

 private:
  void Add(const char* call, int error) {
    if (error_ != 0 || error == 0) return;
    error_ = error;
    failed_ = call;
  }

  scmp_filter_ctx context_;
  int error_ = 0;
  const char* failed_ = "";
};

void AddRules(DeviceKind device, Rules* rules) {
  for (const char* call : kAllowed) rules->Allow(call);
  // Threads, not processes. clone3 keeps its flags in memory, which a filter cannot read; libc
  // falls back to clone.
  rules->Allow("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  rules->Fail("clone3", ENOSYS);
  if (device == DeviceKind::kCuda) {
    rules->Allow("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, kKindOfRequest, kNvidiaKind));
    for (const scmp_datum_t begin : {scmp_datum_t{0}, kUvmStart}) {
      rules->Allow("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, kAboveUvm, begin));
    }
  }
  // abort() signals its own thread; libc names threads.
  rules->Allow("tgkill", SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid())));
  rules->Allow("prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
  rules->Allow("prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_VMA));
  rules->Allow("prlimit64", SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0));
}

absl::Status ForbidDebuggers() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return ErrnoStatus(errno, "set", "dumpable");
  return absl::OkStatus();
}

absl::Status DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) return ErrnoStatus(errno, "drop", "capabilities");
  return absl::OkStatus();
}

}  // namespace

absl::Status ConfineEarly(DeviceKind device) {
  const rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return ErrnoStatus(errno, "set", "the core limit");
  const rlim_t most = device == DeviceKind::kCuda ? kMostCudaDescriptors : kMostDescriptors;
  const rlimit few = {most, most};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return ErrnoStatus(errno, "set", "the file limit");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus(errno, "set", "no_new_privs");
  // The file belongs to root once the process is not dumpable.
  if (const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
    (void)!write(fd, "1000", 4);
    close(fd);
  }
  // NVIDIA's driver reads files of /proc/self when it starts.
  return device == DeviceKind::kCuda ? absl::OkStatus() : ForbidDebuggers();
}

absl::Status ConfineForGood(DeviceKind device) {
  RETURN_IF_ERROR(ForbidDebuggers());
  if (kSanitized) return absl::OkStatus();
  RETURN_IF_ERROR(DropCapabilities());
  const std::unique_ptr<void, FreeContext> context(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (context == nullptr) return absl::InternalError("libseccomp makes no filter");
  seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree by number
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_TSYNC, 1);     // threads that exist already
  Rules rules(context.get());
  AddRules(device, &rules);
  RETURN_IF_ERROR(rules.status());
  if (const int error = seccomp_load(context.get()); error != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this kernel does not enforce a system call filter (seccomp): ", strerror(-error)));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl::executor
