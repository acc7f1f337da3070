// bazel run //exec:server -- --register=RUN_DIR: runs candidates for clients over the network.
//
// bazel run //exec:server -- --status --register=RUN_DIR: prints the status of the servers
// registered there.
//
// Exit codes: 0 ended by SIGTERM or SIGINT with all jobs answered, 1 some jobs were not answered
// within --drain_seconds, 2 an invalid flag, 3 the server cannot run here (no sandbox, no GPU, port
// taken); with --status: some server does not answer.
#include <google/protobuf/stubs/logging.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/program.h"
#include "base/status.h"
#include "exec/backend/backend_factory.h"
#include "exec/service/dispatcher.h"
#include "exec/service/exec_server.h"
#include "exec/service/server_registry.h"

ABSL_FLAG(std::string, backend, "auto", "auto, native or cuda");
ABSL_FLAG(std::string, role, "both",
          "both; check: correctness only; time: one job at a time on each GPU");
ABSL_FLAG(
    std::string, gpus, "",
    "GPUs to use, as 0,1 (counted within CUDA_VISIBLE_DEVICES), each with workers of its own; "
    "empty: the first");
ABSL_FLAG(int, workers, 0,
          "jobs that run at the same time on each GPU, or without a GPU on all cores; 0: one for "
          "each GPU or core");
ABSL_FLAG(std::string, interface, "lo", "network interface to listen on");
ABSL_FLAG(int, port, 0, "port to listen on; 0: any free one");
ABSL_FLAG(std::string, register, "",
          "folder through which clients find this server: DIR/servers/HOST-PID.json");
ABSL_FLAG(std::string, token_file, "",
          "file with the token that clients must send; created if it is missing. Empty: the server "
          "creates a token and passes it on through --register only");
ABSL_FLAG(int, queue, 256,
          "jobs that may wait; the server refuses further jobs and says when to retry");
ABSL_FLAG(double, memory_budget_gib, 0,
          "memory that jobs on one GPU (or on the host) may need together; 0: no limit");
ABSL_FLAG(double, job_memory_gib, 0,
          "memory estimate for a job that names none; 0: an equal share of the budget");
ABSL_FLAG(std::string, sandbox, "bubblewrap", "bubblewrap, or none: run jobs without confinement");
ABSL_FLAG(double, time_limit, 0, "maximum seconds of one job; 0: the backend's default");
ABSL_FLAG(double, memory_gb, 0, "maximum host memory of one job in GiB; 0: the backend's default");
ABSL_FLAG(bool, status, false,
          "start no server: print the state that the servers below --register report (or, with "
          "--token_file, the one at --port of --interface)");
ABSL_FLAG(bool, json, false, "with --status: one line of JSON for each server");
ABSL_FLAG(double, drain_seconds, 120,
          "on SIGTERM, seconds that waiting and running jobs have to finish");

namespace tritonrl {
namespace {

constexpr absl::Duration kStatusPatience = absl::Seconds(5);
constexpr int kEnded = 0, kLeftWork = 1, kUserError = 2, kCannotWork = 3;

int Complain(const absl::Status& status) {
  fprintf(stderr, "server: %s\n", Message(status).c_str());
  const bool user = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                    absl::IsPermissionDenied(status);
  return user ? kUserError : kCannotWork;
}

int64_t Gibibytes(double value) { return static_cast<int64_t>(value * (int64_t{1} << 30)); }

// Returns the GPU of each worker pool, in the form of WorkerPoolOptions::gpu.
absl::StatusOr<std::vector<std::string>> ChooseGpus() {
  const std::string flag = absl::GetFlag(FLAGS_gpus);
  if (flag.empty()) return std::vector<std::string>{""};
  std::vector<std::string> visible;
  const char* given = getenv("CUDA_VISIBLE_DEVICES");
  if (given != nullptr) visible = absl::StrSplit(given, ',', absl::SkipEmpty());
  std::vector<std::string> chosen;
  for (const absl::string_view text : absl::StrSplit(flag, ',')) {
    int index = -1;
    if (!absl::SimpleAtoi(text, &index) || index < 0 ||
        (given != nullptr && index >= static_cast<int>(visible.size()))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--gpus: \"", text, "\" is not the number of a GPU",
          given != nullptr ? absl::StrCat(" (CUDA_VISIBLE_DEVICES names ", visible.size(), ")")
                           : ""));
    }
    chosen.push_back(given != nullptr ? visible[index] : absl::StrCat(index));
  }
  return chosen;
}

absl::StatusOr<std::vector<std::unique_ptr<DeviceBackend>>> StartBackends(
    const std::vector<std::string>& gpus) {
  BackendOptions options;
  ASSIGN_OR_RETURN(options.kind, ParseBackendKind(absl::GetFlag(FLAGS_backend)));
  options.workers = absl::GetFlag(FLAGS_workers);
  options.sandbox = absl::GetFlag(FLAGS_sandbox);
  if (absl::GetFlag(FLAGS_time_limit) > 0) {
    options.pool.limits.set_wall_seconds(absl::GetFlag(FLAGS_time_limit));
  }
  if (absl::GetFlag(FLAGS_memory_gb) > 0) {
    options.pool.limits.set_memory_bytes(Gibibytes(absl::GetFlag(FLAGS_memory_gb)));
  }
  std::vector<std::unique_ptr<DeviceBackend>> backends;
  for (const std::string& gpu : gpus) {
    options.pool.gpu = gpu;
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceBackend> backend, MakeBackend(options));
    if (!absl::GetFlag(FLAGS_gpus).empty() && backend->modelled()) {
      return absl::InvalidArgumentError("--gpus needs the backend cuda");
    }
    backends.push_back(std::move(backend));
  }
  return backends;
}

absl::Status CheckFlags() {
  if (absl::GetFlag(FLAGS_register).empty() && absl::GetFlag(FLAGS_token_file).empty()) {
    return absl::InvalidArgumentError(
        "give --register or --token_file: without one no client could know the token");
  }
  const int port = absl::GetFlag(FLAGS_port);
  if (port < 0 || port > 65535) return absl::InvalidArgumentError("--port must be 0 to 65535");
  const int queue = absl::GetFlag(FLAGS_queue);
  if (queue < 0 || queue > 4096) return absl::InvalidArgumentError("--queue must be 0 to 4096");
  if (!(absl::GetFlag(FLAGS_memory_budget_gib) >= 0) ||
      !(absl::GetFlag(FLAGS_job_memory_gib) >= 0)) {
    return absl::InvalidArgumentError("--memory_budget_gib and --job_memory_gib: not below 0");
  }
  return ParseServerRole(absl::GetFlag(FLAGS_role)).status();
}

absl::StatusOr<std::string> Token() {
  const std::string file = absl::GetFlag(FLAGS_token_file);
  return file.empty() ? NewToken() : TokenFromFile(UserPath(file), /*create=*/true);
}

absl::StatusOr<std::unique_ptr<ServerRegistration>> Register(const ServerEntry& entry) {
  const std::string dir = absl::GetFlag(FLAGS_register);
  if (dir.empty()) return std::unique_ptr<ServerRegistration>();
  return ServerRegistration::Create(UserPath(dir), entry);
}

absl::StatusOr<int> Serve() {
  RETURN_IF_ERROR(CheckFlags());
  const SignalHandler interrupts;
  ASSIGN_OR_RETURN(const ServerRole role, ParseServerRole(absl::GetFlag(FLAGS_role)));
  ASSIGN_OR_RETURN(const std::string token, Token());
  RETURN_IF_ERROR(InterfaceAddress(absl::GetFlag(FLAGS_interface)).status());
  ASSIGN_OR_RETURN(const std::vector<std::string> gpus, ChooseGpus());
  ASSIGN_OR_RETURN(auto backends, StartBackends(gpus));
  Dispatcher dispatcher({.role = role,
                         .queue = absl::GetFlag(FLAGS_queue),
                         .memory_budget_bytes = Gibibytes(absl::GetFlag(FLAGS_memory_budget_gib)),
                         .job_bytes = Gibibytes(absl::GetFlag(FLAGS_job_memory_gib)),
                         .gpus = gpus},
                        std::move(backends));
  ASSIGN_OR_RETURN(auto server, ExecServer::Start({.interface = absl::GetFlag(FLAGS_interface),
                                                   .port = absl::GetFlag(FLAGS_port),
                                                   .token = token},
                                                  &dispatcher));
  ASSIGN_OR_RETURN(
      auto registration,
      Register({.address = server->address(), .token = token, .role = absl::GetFlag(FLAGS_role)}));
  const ServerDescription description = dispatcher.Describe();
  // On standard output: scripts read the address there.
  printf("server: %s, %s, %d at a time, %s%s%s\n", server->address().c_str(),
         description.backend().c_str(), description.concurrency(), description.sandbox().c_str(),
         registration == nullptr ? "" : "; registered as ",
         registration == nullptr ? "" : registration->file().c_str());
  fflush(stdout);
  while (interrupts.received() == 0) absl::SleepFor(absl::Milliseconds(50));
  registration.reset();  // so that no client finds this server any more
  const ServerDescription last = dispatcher.Describe();
  Log(LogLevel::kInfo,
      absl::StrCat("server: signal ", interrupts.received(), "; finishing ", last.running(),
                   " jobs that run and ", last.waiting(), " that wait"));
  const bool finished = server->Drain(absl::Seconds(absl::GetFlag(FLAGS_drain_seconds)));
  Log(finished ? LogLevel::kInfo : LogLevel::kWarning,
      absl::StrCat("server: ended after ", dispatcher.Describe().finished(), " jobs",
                   finished ? "" : "; some had no answer in time"));
  // Destructors would wait for the running jobs. The workers end with this process.
  if (!finished) _exit(kLeftWork);
  return kEnded;
}

// Returns the servers that --status asks.
absl::StatusOr<std::vector<ServerEntry>> KnownServers() {
  const std::string dir = absl::GetFlag(FLAGS_register);
  if (dir.empty()) {
    ASSIGN_OR_RETURN(const std::string token,
                     TokenFromFile(UserPath(absl::GetFlag(FLAGS_token_file)),
                                   /*create=*/false));
    ASSIGN_OR_RETURN(const std::string host, InterfaceAddress(absl::GetFlag(FLAGS_interface)));
    return std::vector<ServerEntry>{
        {.address = absl::StrCat(host, ":", absl::GetFlag(FLAGS_port)), .token = token}};
  }
  std::vector<std::string> problems;
  ASSIGN_OR_RETURN(std::vector<ServerEntry> servers, ReadServerRegistry(UserPath(dir), &problems));
  for (const std::string& problem : problems) fprintf(stderr, "server: %s\n", problem.c_str());
  if (servers.empty()) {
    return absl::NotFoundError(absl::StrCat("no server is registered below ", dir));
  }
  return servers;
}

absl::StatusOr<int> ShowStatus() {
  RETURN_IF_ERROR(CheckFlags());
  ASSIGN_OR_RETURN(const std::vector<ServerEntry> servers, KnownServers());
  int code = kEnded;
  for (const ServerEntry& server : servers) {
    const auto description = AskServer(server, absl::Now() + kStatusPatience);
    if (!description.ok()) {
      fprintf(stderr, "server: %s: %s\n", server.address.c_str(),
              Message(description.status()).c_str());
      code = kCannotWork;
      continue;
    }
    const auto show = absl::GetFlag(FLAGS_json) ? StatusJson : StatusText;
    fputs(show(server.address, *description).c_str(), stdout);
  }
  return code;
}

int Main() {
  const absl::StatusOr<int> code = absl::GetFlag(FLAGS_status) ? ShowStatus() : Serve();
  return code.ok() ? *code : Complain(code.status());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Checks candidates for others over the network.", argc, argv);
  // gRPC logs at length the errors that this program reports in one sentence.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Protobuf would log a line for each malformed message, and any stranger may send those.
  google::protobuf::SetLogHandler(nullptr);
  return tritonrl::Main();
}
