#include "exec/sandbox/seccomp_policy.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// Calls that no Triton kernel, compiler or driver needs in a job, grouped by purpose.
constexpr const char* kRefused[] = {
    // Other processes: their memory, descriptors, registers.
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    // Key rings: no namespace separates the session's ring, which holds the supervisor's keys.
    "add_key", "request_key", "keyctl",
    // Mounts, roots, namespaces.
    "mount", "umount", "umount2", "pivot_root", "chroot", "setns", "unshare", "open_tree",
    "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    // Access to files outside the mount namespace.
    "name_to_handle_at", "open_by_handle_at", "fanotify_init", "lookup_dcookie",
    // Large, new or rarely used parts of the kernel.
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "memfd_secret", "modify_ldt", "personality", "uselib", "nfsservctl",
    "remap_file_pages", "vmsplice",
    // The host: modules, boot, swap, accounting, I/O ports, log, clock, names.
    "init_module", "finit_module", "delete_module", "create_module", "query_module",
    "get_kernel_syms", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct",
    "quotactl", "quotactl_fd", "iopl", "ioperm", "vhangup", "sysfs", "_sysctl", "ustat", "syslog",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname",
    "setdomainname",
    // System V and POSIX IPC objects, which outlive a process if it has no IPC namespace.
    "shmget", "msgget", "semget", "mq_open", "mq_unlink"};

// The first call number after Linux 6.13: kRefused does not cover the calls from here on. From 424
// on all architectures share the numbers.
constexpr uint32_t kFirstUnknownCall = 463;
constexpr uint32_t kX32Bit = 0x40000000;

struct FreeContext {
  void operator()(void* context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, FreeContext>;

// Adds rules to a filter and keeps the first error.
class Rules {
 public:
  explicit Rules(scmp_filter_ctx context) : context_(context) {}

  void Refuse(const char* call, int error = EPERM) { Add(call, error, {}); }
  // Refuses `call` if (argument `index` & `mask`) == `value`. For arguments of 32 bits: the kernel
  // ignores the upper half of the register, so `mask` must leave it out.
  void RefuseArgument(const char* call, unsigned index, uint32_t mask, uint32_t value) {
    Add(call, EPERM, {SCMP_CMP64(index, SCMP_CMP_MASKED_EQ, mask, value)});
  }
  void Add(const char* call, int error, const std::vector<scmp_arg_cmp>& arguments) {
    const int number = seccomp_syscall_resolve_name(call);
    if (number == __NR_SCMP_ERROR || error_ != 0) return;  // unknown to this libseccomp
    error_ = seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(error), number, arguments.size(),
                                    arguments.data());
    if (error_ != 0) failed_ = call;
  }
  absl::Status status() const {
    if (error_ == 0) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("no filter rule for ", failed_, ": ", strerror(-error_)));
  }

 private:
  scmp_filter_ctx context_;
  int error_ = 0;
  std::string failed_;
};

void RefuseByArgument(const SeccompPolicyOptions& options, Rules* rules) {
  // clone can make namespaces without unshare. clone3 takes its flags in memory, which a filter
  // cannot read; libc falls back to clone on ENOSYS.
  for (const uint32_t flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                              CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
    rules->RefuseArgument("clone", 0, flag, flag);
  }
  rules->Refuse("clone3", ENOSYS);

  // A network namespace confines vsock, netlink and other families only partly or not at all.
  if (options.unix_sockets) {
    rules->Add("socket", EAFNOSUPPORT, {SCMP_CMP64(0, SCMP_CMP_NE, AF_UNIX)});
  } else {
    rules->Refuse("socket", EAFNOSUPPORT);
  }

  // These requests insert input into a terminal.
  for (const uint32_t request : {TIOCSTI, TIOCLINUX}) {
    rules->RefuseArgument("ioctl", 1, 0xffffffff, request);
  }
  for (const uint32_t type : {S_IFCHR, S_IFBLK}) {
    rules->RefuseArgument("mknod", 1, S_IFMT, type);
    rules->RefuseArgument("mknodat", 2, S_IFMT, type);
  }
  // The limits of other processes, and the job's core limit: it is 1, because the kernel starts a
  // core handler under a limit of 0 but not under 1.
  rules->Add("prlimit64", EPERM, {SCMP_CMP64(0, SCMP_CMP_NE, 0)});
  rules->Add(
      "prlimit64", EPERM,
      {SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, 0xffffffff, RLIMIT_CORE), SCMP_CMP64(2, SCMP_CMP_NE, 0)});
  rules->RefuseArgument("setrlimit", 0, 0xffffffff, RLIMIT_CORE);
}

// Instructions in front of the filter: a call from kFirstUnknownCall on returns ENOSYS, as if the
// kernel did not have it. x32 numbers pass on to the filter, which kills the process.
std::string UnknownCalls() {
  const sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstUnknownCall, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
  };
  return std::string(reinterpret_cast<const char*>(steps), sizeof(steps));
}

absl::StatusOr<std::string> Export(scmp_filter_ctx context) {
  const int fd = memfd_create("seccomp", MFD_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "make", "a memory file");
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  if (const int error = seccomp_export_bpf(context, fd); error != 0) {
    return ErrnoStatus(-error, "export", "a system call filter");
  }
  const off_t size = lseek(fd, 0, SEEK_END);
  std::string program(size, '\0');
  if (pread(fd, program.data(), size, 0) != size) return ErrnoStatus(errno, "read", "a filter");
  return program;
}

// Runs in a child between fork and exit, so it makes only system calls. Returns 0 if the kernel
// enforces the filter, else the number of the failed step.
int TryFilter(const sock_fprog& program) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) return 2;
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 || errno != EPERM) return 3;
  if (getppid() <= 0) return 4;
  return 0;
}

}  // namespace

absl::StatusOr<std::string> BuildSeccompPolicy(const SeccompPolicyOptions& options) {
  const Context context(seccomp_init(SCMP_ACT_ALLOW));
  if (context == nullptr) return absl::InternalError("libseccomp makes no filter");
  seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree by number
  Rules rules(context.get());
  for (const char* call : kRefused) rules.Refuse(call);
  RefuseByArgument(options, &rules);
  RETURN_IF_ERROR(rules.status());
  ASSIGN_OR_RETURN(const std::string program, Export(context.get()));
  return UnknownCalls() + program;
}

absl::Status CheckSeccompPolicy() {
  ASSIGN_OR_RETURN(std::string program, BuildSeccompPolicy({}));
  const sock_fprog steps = {static_cast<unsigned short>(program.size() / sizeof(sock_filter)),
                            reinterpret_cast<sock_filter*>(program.data())};
  const pid_t child = fork();
  if (child < 0) return ErrnoStatus(errno, "fork", "a process that tries the filter");
  if (child == 0) _exit(TryFilter(steps));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this kernel does not enforce a system call filter (seccomp): step ",
      WIFEXITED(status) ? WEXITSTATUS(status) : -1, "; it needs CONFIG_SECCOMP_FILTER"));
}

}  // namespace tritonrl
