#include "exec/device/cuda/compile_workers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tritonrl::device {
namespace {

constexpr char kScript[] = "exec/device/cuda/compile_worker.py";
constexpr size_t kMaxAnswer = size_t{256} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 32;
constexpr size_t kMostDescriptors = 64;
constexpr size_t kMaxTensorMapRank = 5;

Json OptionsJson(const KernelOptions& options) {
  Json json = {{"num_warps", options.num_warps},
               {"num_stages", options.num_stages},
               {"num_ctas", options.num_ctas},
               {"enable_fp_fusion", options.fp_fusion},
               {"launch_cooperative_grid", options.cooperative},
               {"launch_pdl", options.pdl}};
  if (options.maxnreg > 0) json["maxnreg"] = options.maxnreg;
  return json;
}

absl::StatusOr<TensorMapPlan> PlanOf(const Json& json) {
  TensorMapPlan plan;
  ASSIGN_OR_RETURN(const int64_t swizzle, IntegerField(json, "swizzle", 0, 16));
  ASSIGN_OR_RETURN(const int64_t bytes, IntegerField(json, "elem_size", 1, 8));
  ASSIGN_OR_RETURN(const int64_t type, IntegerField(json, "elem_type", 0, 15));
  ASSIGN_OR_RETURN(plan.fp4_padded, BoolField(json, "fp4_padded"));
  ASSIGN_OR_RETURN(const Json* block, ListField(json, "block_size", kMaxTensorMapRank));
  for (const Json& size : *block) {
    ASSIGN_OR_RETURN(const int64_t number, IntegerOf(size, "block_size", 1, 1 << 20));
    plan.block.push_back(static_cast<uint32_t>(number));
  }
  plan.swizzle = static_cast<int>(swizzle);
  plan.element_bytes = static_cast<int>(bytes);
  plan.element_type = static_cast<int>(type);
  return plan;
}

absl::StatusOr<CompiledKernel> KernelOf(const Json& json) {
  CompiledKernel kernel;
  ASSIGN_OR_RETURN(const std::string cubin, TextField(json, "cubin", kMaxAnswer));
  if (!absl::Base64Unescape(cubin, &kernel.cubin)) return Hostile("a bad cubin");
  ASSIGN_OR_RETURN(kernel.name, TextField(json, "name", 10'000));
  ASSIGN_OR_RETURN(kernel.shared_bytes, IntegerField(json, "shared", 0, kMostBytes));
  ASSIGN_OR_RETURN(kernel.num_warps, IntegerField(json, "num_warps", 1, 64));
  ASSIGN_OR_RETURN(kernel.num_ctas, IntegerField(json, "num_ctas", 1, 64));
  ASSIGN_OR_RETURN(kernel.global_scratch_bytes,
                   IntegerField(json, "global_scratch_size", 0, kMostBytes));
  ASSIGN_OR_RETURN(kernel.global_scratch_align,
                   IntegerField(json, "global_scratch_align", 1, kMostBytes));
  ASSIGN_OR_RETURN(kernel.profile_scratch_bytes,
                   IntegerField(json, "profile_scratch_size", 0, kMostBytes));
  ASSIGN_OR_RETURN(kernel.cooperative, BoolField(json, "launch_cooperative_grid"));
  ASSIGN_OR_RETURN(kernel.pdl, BoolField(json, "launch_pdl"));
  if (json.contains("tensordesc_meta")) {
    ASSIGN_OR_RETURN(const Json* plans, ListField(json, "tensordesc_meta", kMostDescriptors));
    for (const Json& plan : *plans) {
      ASSIGN_OR_RETURN(kernel.descriptors.emplace_back(), PlanOf(plan));
    }
  }
  return kernel;
}

// Without confinement. Any error ends it.
class PlainProcess : public CompileProcess {
 public:
  static absl::StatusOr<std::unique_ptr<CompileProcess>> Start(const std::string& script) {
    ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoStatus(errno, "connect", script);
    }
    SubprocessOptions options;
    options.argv = {python.interpreter, script};
    options.env = python.Environment();
    options.env.emplace_back("PATH", "/usr/local/bin:/usr/bin:/bin");
    options.clear_env = true;
    options.in = Stdio::Descriptor(ends[1]);
    options.out = Stdio::Descriptor(ends[1]);
    options.err = Stdio::Null();
    auto process = Subprocess::Start(options);
    close(ends[1]);
    if (!process.ok()) {
      close(ends[0]);
      return process.status();
    }
    std::unique_ptr<PlainProcess> started(new PlainProcess(*std::move(process), ends[0]));
    // It says its version when it is ready.
    RETURN_IF_ERROR(started->Receive(absl::Now() + absl::Seconds(60)).status());
    return started;
  }
  ~PlainProcess() override { close(socket_); }

  absl::StatusOr<std::string> Ask(const std::string& request, absl::Time deadline) override {
    absl::Status sent = Send(absl::StrCat(request, "\n"), deadline);
    absl::StatusOr<std::string> answer = sent.ok() ? Receive(deadline) : std::move(sent);
    alive_ = answer.ok();
    return answer;
  }
  bool alive() const override { return alive_; }

 private:
  PlainProcess(Subprocess process, int socket) : process_(std::move(process)), socket_(socket) {}

  absl::Status WaitFor(int16_t events, absl::Time deadline) const {
    while (true) {
      const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
      if (left <= 0) return absl::DeadlineExceededError("the compiler needs too long");
      pollfd wanted{socket_, events, 0};
      const int ready = poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno != EINTR) return absl::UnavailableError("the compiler cannot be read");
    }
  }

  absl::Status Send(absl::string_view text, absl::Time deadline) {
    while (!text.empty()) {
      RETURN_IF_ERROR(WaitFor(POLLOUT, deadline));
      const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        text.remove_prefix(static_cast<size_t>(sent));
      } else if (errno != EAGAIN && errno != EINTR) {
        return absl::UnavailableError("the compiler crashed");
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Receive(absl::Time deadline) {
    std::string line;
    std::vector<char> buffer(1 << 16);
    while (line.empty() || line.back() != '\n') {
      RETURN_IF_ERROR(WaitFor(POLLIN, deadline));
      const ssize_t got = recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got == 0) return absl::UnavailableError("the compiler crashed");
      if (got < 0 && errno != EAGAIN && errno != EINTR) {
        return absl::UnavailableError("the compiler crashed");
      }
      if (got > 0) line.append(buffer.data(), static_cast<size_t>(got));
      if (line.size() > kMaxAnswer)
        return absl::UnavailableError("the compiler's answer is too long");
    }
    return line;
  }

  Subprocess process_;
  int socket_;
  bool alive_ = true;
};

}  // namespace

CompileWorkers::CompileWorkers(const Options& options, std::string script, int may_start)
    : options_(options), script_(std::move(script)), may_start_(may_start) {}

CompileWorkers::~CompileWorkers() = default;

absl::StatusOr<std::unique_ptr<CompileWorkers>> CompileWorkers::Create(const Options& options) {
  ASSIGN_OR_RETURN(std::string script, Runfile(kScript));
  RETURN_IF_ERROR(FindPythonEnv().status());
  if (!options.cache_folder.empty()) RETURN_IF_ERROR(CreateDirectories(options.cache_folder));
  return std::unique_ptr<CompileWorkers>(
      new CompileWorkers(options, std::move(script), options.workers));
}

absl::StatusOr<std::unique_ptr<CompileWorkers>> CompileWorkers::CreateOver(
    const Options& options, std::vector<std::unique_ptr<CompileProcess>> processes) {
  ASSIGN_OR_RETURN(std::string script, Runfile(kScript));
  if (!options.cache_folder.empty()) RETURN_IF_ERROR(CreateDirectories(options.cache_folder));
  std::unique_ptr<CompileWorkers> workers(
      new CompileWorkers(options, std::move(script), /*may_start=*/0));
  workers->running_ = static_cast<int>(processes.size());
  workers->idle_ = std::move(processes);
  return workers;
}

// Waits for an idle process, or starts one.
absl::StatusOr<std::unique_ptr<CompileProcess>> CompileWorkers::TakeProcess() {
  {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](CompileWorkers* self) {
          return !self->idle_.empty() || self->running_ < self->may_start_ || self->running_ == 0;
        },
        this));
    if (!idle_.empty()) {
      std::unique_ptr<CompileProcess> process = std::move(idle_.back());
      idle_.pop_back();
      return process;
    }
    if (running_ >= may_start_) return absl::InternalError("no compiler is left");
    ++running_;
  }
  auto started = PlainProcess::Start(script_);
  if (started.ok()) return started;
  GiveBack(nullptr);
  return absl::InternalError(absl::StrCat("no compiler: ", started.status().message()));
}

// Null: it ended.
void CompileWorkers::GiveBack(std::unique_ptr<CompileProcess> process) {
  const absl::MutexLock lock(&mutex_);
  if (process == nullptr) {
    --running_;
  } else {
    idle_.push_back(std::move(process));
  }
}

absl::StatusOr<Json> CompileWorkers::Ask(const std::string& request) {
  ASSIGN_OR_RETURN(std::unique_ptr<CompileProcess> process, TakeProcess());
  const auto line = process->Ask(request, absl::Now() + options_.deadline);
  if (!process->alive()) process.reset();
  GiveBack(std::move(process));
  if (absl::IsInternal(line.status())) return line.status();
  if (!line.ok()) return absl::InvalidArgumentError(line.status().message());
  ASSIGN_OR_RETURN(Json answer, ParseJson(*line));
  if (!answer.is_object()) return Hostile("an answer of the compiler that is no object");
  if (answer.contains("error") && answer["error"].is_string()) {
    return absl::InvalidArgumentError(answer["error"].get<std::string>());
  }
  return answer;
}

absl::StatusOr<Json> CompileWorkers::AskCached(const std::string& request) {
  if (options_.cache_folder.empty()) return Ask(request);
  ASSIGN_OR_RETURN(const std::string script, ReadFile(script_));
  const std::string path = JoinPath(
      options_.cache_folder, absl::StrCat(Sha256Hex(absl::StrCat(script, request)), ".json"));
  if (const auto kept = ReadFile(path); kept.ok()) {
    Json answer = Json::parse(*kept, nullptr, /*allow_exceptions=*/false);
    if (answer.is_object()) {
      const absl::MutexLock lock(&mutex_);
      ++cache_hits_;
      return answer;
    }
  }
  ASSIGN_OR_RETURN(Json answer, Ask(request));
  RETURN_IF_ERROR(WriteFileAtomic(path, answer.dump()));
  return answer;
}

absl::StatusOr<CompiledKernel> CompileWorkers::Compile(const std::string& ttir,
                                                       const KernelOptions& options, int arch) {
  const Json request = {
      {"do", "compile"}, {"ttir", ttir}, {"arch", arch}, {"options", OptionsJson(options)}};
  ASSIGN_OR_RETURN(const Json answer, AskCached(WriteJson(request)));
  return KernelOf(answer);
}

absl::StatusOr<std::string> CompileWorkers::Flatten(const std::string& ttir) {
  ASSIGN_OR_RETURN(const Json answer, Ask(WriteJson({{"do", "flatten"}, {"ttir", ttir}})));
  return TextField(answer, "ttir", kMaxAnswer);
}

int CompileWorkers::running() const {
  const absl::MutexLock lock(&mutex_);
  return running_;
}

int64_t CompileWorkers::cache_hits() const {
  const absl::MutexLock lock(&mutex_);
  return cache_hits_;
}

}  // namespace tritonrl::device
