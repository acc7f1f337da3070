#include "exec/host_check/confinement_probe.h"

#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kUnlimited = ~uint64_t{0};
constexpr uint64_t kMaxSignals = 4096;

std::string OwnNamespace(const std::string& name) {
  char target[64];
  const std::string link = absl::StrCat("/proc/self/ns/", name);
  const ssize_t n = readlink(link.c_str(), target, sizeof(target));
  return n > 0 ? std::string(target, n) : "";
}

std::string Megabytes(uint64_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

std::string Amount(uint64_t value) {
  if (value == kUnlimited) return "no limit";
  return value > (1 << 20) ? Megabytes(value) : absl::StrCat(value);
}

// Compares one job's report with the supervisor's own surroundings and the pool's limits.
class Assessment {
 public:
  Assessment(const Json& seen, const WorkerPool& pool)
      : seen_(seen), limits_(pool.limits()), description_(pool.sandbox_description()) {}

  std::vector<ConfinementCheck> All() {
    User();
    Namespaces();
    Rights();
    SystemCalls();
    Files();
    Memory();
    Processes();
    ResourceLimits();
    Leaks();
    Devices();
    return std::move(checks_);
  }

 private:
  void Add(const std::string& name, bool in_force, const std::string& how) {
    checks_.push_back({name, in_force, how});
  }

  void User() {
    const int uid = seen_.at("uid").get<int>();
    const bool groups = !seen_.at("groups").empty() && seen_.at("groups") != Json{seen_.at("gid")};
    Add("user", uid != 0 && uid != static_cast<int>(geteuid()) && !groups,
        absl::StrCat("candidates run as uid ", uid, ", the supervisor as ", geteuid(),
                     groups ? ", with its groups" : ""));
  }

  void Namespaces() {
    const char* const kinds[][3] = {
        {"user", "user namespace", "users and capabilities mean nothing outside"},
        {"mnt", "mount namespace", "a file system of its own"},
        {"pid", "process namespace", "sees and signals its own processes only; killed as a whole"},
        {"ipc", "IPC namespace", "no shared memory or queues of others"},
        {"uts", "host name", "a name of its own"}};
    for (const auto& [kind, name, how] : kinds) {
      const bool own = seen_.at("namespaces").at(kind) != OwnNamespace(kind);
      Add(name, own, own ? how : "shared with this machine");
    }
    const bool own = seen_.at("namespaces").at("net") != OwnNamespace("net");
    std::vector<std::string> open;
    for (const auto& [family, error] : seen_.at("refused_sockets").items()) {
      if (error.get<std::string>().empty()) open.push_back(family);
    }
    const std::string sockets = open.empty()
                                    ? "no inet, netlink or vsock sockets"
                                    : absl::StrCat("sockets allowed: ", absl::StrJoin(open, " "));
    Add("no network", own && open.empty(),
        absl::StrCat(own ? "a network namespace without devices" : "this machine's network", "; ",
                     sockets));
  }

  void Rights() {
    bool none = true;
    for (const auto& set : seen_.at("capabilities")) {
      if (set.get<std::string>().find_first_not_of('0') != std::string::npos) none = false;
    }
    Add("no capabilities", none, none ? "all five sets are empty" : "some set is not empty");
    const bool no_new = seen_.at("no_new_privileges").get<bool>();
    Add("no new rights", no_new, no_new ? "set-user-id programs give none" : "not set");
  }

  void SystemCalls() {
    std::vector<std::string> allowed;
    for (const auto& [call, error] : seen_.at("refused_calls").items()) {
      if (error != "EPERM") allowed.push_back(call);
    }
    const bool filter = seen_.at("seccomp").get<bool>();
    std::string how = filter ? "seccomp filter" : "no seccomp filter";
    absl::StrAppend(&how, allowed.empty() ? "; ptrace, keyctl, unshare refused" : "; allowed: ",
                    absl::StrJoin(allowed, " "));
    Add("system calls", filter && allowed.empty(), how);
  }

  void Files() {
    const Json& writable = seen_.at("writable");
    Add("read-only files", writable.empty(),
        writable.empty() ? "nothing outside /tmp and /dev/shm can be written"
                         : absl::StrCat("can be written: ", writable.dump()));
    const uint64_t tmp = seen_.at("tmp_bytes").get<uint64_t>();
    const uint64_t shm = seen_.at("shm_bytes").get<uint64_t>();
    const bool own = tmp <= static_cast<uint64_t>(limits_.tmp_bytes()) &&
                     shm <= static_cast<uint64_t>(limits_.shm_bytes());
    Add("private /tmp", own,
        own ? absl::StrCat("fresh for each job: /tmp ", Megabytes(tmp), ", /dev/shm ",
                           Megabytes(shm))
            : "this machine's /tmp and /dev/shm");
  }

  void Memory() {
    const bool group = absl::StrContains(description_, "memory");
    Add("memory", group,
        absl::StrCat(group ? "memory cgroup for worker and job together"
                           : "no writable memory cgroup: each process by itself, not their sum",
                     "; RLIMIT_DATA ", Amount(Limit("DATA"))));
  }

  void Processes() {
    const bool group = absl::StrContains(description_, "pids");
    const bool limited = Limit("NPROC") != kUnlimited;
    Add("processes", group || limited,
        absl::StrCat(group ? "pids cgroup" : "no writable pids cgroup", "; RLIMIT_NPROC ",
                     Amount(Limit("NPROC"))));
  }

  void ResourceLimits() {
    Add("other limits", Limit("FSIZE") != kUnlimited && Limit("CPU") != kUnlimited,
        absl::StrCat("rlimits: file ", Amount(Limit("FSIZE")), ", open files ",
                     Amount(Limit("NOFILE")), ", processor time ", Amount(Limit("CPU")), " s"));
    Add("kernel queues",
        Limit("SIGPENDING") <= kMaxSignals && Limit("MSGQUEUE") == 0 && Limit("RTPRIO") == 0,
        absl::StrCat("rlimits: waiting signals and timers ", Amount(Limit("SIGPENDING")),
                     ", message queues ", Amount(Limit("MSGQUEUE")), " bytes, real-time priority ",
                     Amount(Limit("RTPRIO"))));
    Add("no core dumps", Limit("CORE") <= 1,
        absl::StrCat("RLIMIT_CORE ", Amount(Limit("CORE")),
                     Limit("CORE") == 1 ? ": no file, and no core handler is started" : ""));
  }

  void Leaks() {
    const int fds = seen_.at("descriptors").get<int>();
    Add("descriptors", fds <= 5, absl::StrCat(fds, " open"));
    const int variables = seen_.at("environment").get<int>();
    Add("environment", variables <= 24,
        absl::StrCat(variables, " variables, all set by us; nothing of the supervisor's"));
  }

  void Devices() {
    std::vector<std::string> names;
    for (const auto& name : seen_.at("gpu")) names.push_back(name.get<std::string>());
    Add("GPU nodes", true, names.empty() ? "none" : absl::StrJoin(names, " "));
  }

  uint64_t Limit(const std::string& name) const {
    const int64_t value = seen_.at("limits").at(name).get<int64_t>();  // -1: RLIM_INFINITY
    return value < 0 ? kUnlimited : static_cast<uint64_t>(value);
  }

  const Json& seen_;
  const ExecLimits limits_;
  const std::string description_;
  std::vector<ConfinementCheck> checks_;
};

}  // namespace

absl::StatusOr<std::vector<ConfinementCheck>> ProbeConfinement(SandboxKind kind,
                                                               const std::string& device) {
  WorkerPoolOptions options;
  options.sandbox = kind;
  options.device = device;
  ASSIGN_OR_RETURN(const std::string probe, Runfile("exec/host_check/probe.py"));
  options.runner = "probe";
  options.extra_python_dirs = {DirName(probe)};
  ASSIGN_OR_RETURN(auto pool, WorkerPool::Start(options));
  const JobReport report = pool->Run("{}", ExecLimits(), absl::Now() + absl::Seconds(30));
  const Json seen = Json::parse(report.output, nullptr, /*allow_exceptions=*/false);
  try {
    return Assessment(seen, *pool).All();
  } catch (const Json::exception& error) {
    return absl::InternalError(absl::StrCat("the probe's report cannot be read: ", error.what(),
                                            ": ", report.output, report.detail));
  }
}

}  // namespace tritonrl
