// bazel run //exec:check_host: says how candidates can be confined on this machine.
//
// Exit codes: 0 they can be confined, 1 they cannot (what is missing is printed).
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/python_env.h"
#include "base/subprocess.h"
#include "exec/cgroup.h"
#include "exec/make_backend.h"
#include "exec/sandbox.h"
#include "exec/worker_pool.h"
#include "exec/worker_setup.h"

ABSL_FLAG(bool, start_worker, false, "also start one real worker, which imports torch and Triton");

namespace tritonrl {
namespace {

void Line(const char* what, const std::string& text) { printf("%-12s %s\n", what, text.c_str()); }

std::string FirstLine(const std::vector<std::string>& argv) {
  const auto result = RunCommand(argv);
  if (!result.ok() || !result->ok()) return "missing";
  return result->out.substr(0, result->out.find('\n'));
}

absl::Status CheckPython() {
  auto env = FindPythonEnv();
  if (!env.ok()) return env.status();
  Line("python", absl::StrCat(env->interpreter, ", packages in ",
                              env->site_packages.empty() ? "itself" : env->site_packages));
  return CheckReadableByAll(env->site_packages.empty() ? env->interpreter : env->site_packages);
}

void PrintMachine() {
  utsname system;
  uname(&system);
  Line("kernel", absl::StrCat(system.sysname, " ", system.release));
  Line("user", geteuid() == 0 ? absl::StrCat("root; candidates run as uid ", kSandboxUid)
                              : absl::StrCat("uid ", geteuid(), "; candidates run as the same"));
  Line("bubblewrap", FirstLine({"bwrap", "--version"}));
  Line("setpriv", FirstLine({"setpriv", "--version"}));
  const WorkerCgroup group = WorkerCgroup::Create("check", int64_t{1} << 30, 64);
  Line("memory", group.limits_memory() ? absl::StrCat("limited by ", group.description())
                                       : "limited by RLIMIT_DATA for each process (no writable "
                                         "memory cgroup)");
  Line("processes", group.limits_processes()
                        ? absl::StrCat("limited by ", group.description(), " and RLIMIT_NPROC")
                        : "limited by RLIMIT_NPROC");
  const std::vector<std::string> devices = NvidiaDevices();
  Line("gpu", HasNvidiaGpu() ? absl::StrJoin(devices, " ") : "none");
}

absl::Status StartWorker() {
  auto pool = WorkerPool::Start({});
  if (!pool.ok()) return pool.status();
  Line("worker", absl::StrCat("started; ", (*pool)->sandbox_description()));
  return absl::OkStatus();
}

int Main() {
  PrintMachine();
  absl::Status status = CheckPython();
  if (status.ok()) status = CheckSandbox(SandboxKind::kBubblewrap);
  Line("sandbox", status.ok() ? "works: namespaces for user, pid, mount, network, IPC and host "
                                "name; no capabilities; read-only system"
                              : std::string(status.message()));
  if (status.ok() && absl::GetFlag(FLAGS_start_worker)) {
    status = StartWorker();
    if (!status.ok()) Line("worker", std::string(status.message()));
  }
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Says how candidates can be confined on this machine.");
  absl::ParseCommandLine(argc, argv);
  return tritonrl::Main();
}
