// bazel run //exec:check_host: prints for each confinement mechanism whether and how it is in force
// on this machine.
//
// Exit codes: 0 candidates can be confined as --sandbox says, 1 they cannot (the reason is
// printed).
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/program.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "exec/backend/backend_factory.h"
#include "exec/host_check/confinement_probe.h"
#include "exec/sandbox/sandbox.h"
#include "exec/workers/worker_pool.h"
#include "exec/workers/worker_setup.h"

ABSL_FLAG(std::string, sandbox, "bubblewrap", "confinement of candidates: bubblewrap or none");
ABSL_FLAG(std::string, device, "cpu",
          "cpu, or cuda: as a reference's worker, which gets GPU nodes");
ABSL_FLAG(bool, start_worker, false, "also start one real worker, which imports torch and Triton");

namespace tritonrl {
namespace {

void Line(const char* what, const std::string& text) { printf("%-12s %s\n", what, text.c_str()); }

std::string FirstLine(const std::vector<std::string>& argv) {
  const auto result = RunCommand(argv);
  if (!result.ok() || !result->ok()) return "does not run";
  return result->out.substr(0, result->out.find('\n'));
}

std::string Bubblewrap() {
  const std::string program = BubblewrapPath();
  if (program.empty()) return "none on PATH";
  return absl::StrCat(FirstLine({program, "--version"}), " (", program, ")");
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
  Line("bubblewrap", Bubblewrap());
  const std::vector<std::string> devices = NvidiaDevices();
  Line("gpu", HasNvidiaGpu() ? absl::StrJoin(devices, " ") : "none");
}

absl::Status PrintDefences(SandboxKind kind) {
  auto checks = ProbeConfinement(kind, absl::GetFlag(FLAGS_device));
  if (!checks.ok()) return checks.status();
  for (const ConfinementCheck& check : *checks) {
    printf("%-12s %-18s %s\n", check.in_force ? "in force" : "MISSING", check.name.c_str(),
           check.how.c_str());
  }
  return absl::OkStatus();
}

absl::Status StartWorker(SandboxKind kind) {
  WorkerPoolOptions options;
  options.sandbox = kind;
  options.device = absl::GetFlag(FLAGS_device);
  auto pool = WorkerPool::Start(options);
  if (!pool.ok()) return pool.status();
  Line("worker", absl::StrCat("started; ", (*pool)->sandbox_description()));
  return absl::OkStatus();
}

absl::Status Check() {
  auto kind = ParseSandboxKind(absl::GetFlag(FLAGS_sandbox));
  if (!kind.ok()) return kind.status();
  PrintMachine();
  absl::Status status = CheckPython();
  if (status.ok()) status = PrintDefences(*kind);
  if (status.ok() && absl::GetFlag(FLAGS_start_worker)) status = StartWorker(*kind);
  return status;
}

int Main() {
  const absl::Status status = Check();
  if (status.ok()) return 0;
  printf("%s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Says for each confinement mechanism whether it is in force here.", argc,
                         argv);
  return tritonrl::Main();
}
