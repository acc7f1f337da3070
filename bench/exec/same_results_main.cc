// Programs whose kernels run on the CPU (exec/ttir/run) and on a GPU with the same inputs: the
// candidate's process runs once and talks to a session on the CPU. A session on the GPU then gets
// the same messages.
//
//   same_results --in=PROGRAMS.jsonl --out=differences.csv
//
// The launches of both are the same: the process chooses configurations by the CPU's answers. Both
// are told of the same device. All programs run on the CPU first, as both have their memory at the
// same addresses.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/program.h"
#include "base/secret_key.h"
#include "base/status.h"
#include "exec/client_run/client_job.h"
#include "exec/client_run/layout_values.h"
#include "exec/device/arena.h"
#include "exec/device/cuda/compile_workers.h"
#include "exec/device/cuda/context.h"
#include "exec/device/cuda/cuda_arena.h"
#include "exec/device/cuda/cuda_compiler.h"
#include "exec/device/session.h"
#include "exec/device/testing/last_place.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/device/ttir_compiler.h"
#include "exec/device_backend.h"
#include "exec/reference/reference_runner.h"
#include "exec/workers/worker_pool.h"
#include "verify/cli/case_reader.h"

ABSL_FLAG(std::string, in, "", "Programs, as for //verify/cli:verify.");
ABSL_FLAG(std::string, out, "", "CSV file: one line a program.");
ABSL_FLAG(std::string, sandbox, "bubblewrap", "Confinement of the programs: bubblewrap or none.");

namespace tritonrl {
namespace {

using device::Frame;
using device::SessionOptions;
using device::SessionResult;
using device::Value;

constexpr absl::Duration kTimeLimit = absl::Seconds(60);

// Records all messages of the process.
class KeepingChannel : public device::Channel {
 public:
  explicit KeepingChannel(int socket) : channel_(socket) {}
  absl::StatusOr<Frame> Receive(absl::Time deadline) override {
    absl::StatusOr<Frame> frame = channel_.Receive(deadline);
    if (frame.ok()) frames_.push_back(*frame);
    return frame;
  }
  absl::Status Send(const Frame& frame, absl::Time deadline) override {
    return channel_.Send(frame, deadline);
  }
  std::vector<Frame> TakeFrames() { return std::move(frames_); }

 private:
  device::SocketChannel channel_;
  std::vector<Frame> frames_;
};

// How far two results are apart.
struct Difference {
  int64_t elements = 0;
  int64_t unequal = 0;
  double worst_units = 0;  // of the last place, of the larger of the two numbers
  double worst_share = 0;  // of the largest number of the tensor
};

void Compare(const at::Tensor& cpu, const at::Tensor& gpu, Difference* difference) {
  difference->elements += cpu.numel();
  if (cpu.numel() == 0) return;
  const bool floats = cpu.is_floating_point();
  const at::Tensor x = cpu.to(at::kDouble).flatten();
  const at::Tensor y = gpu.to(at::kDouble).flatten();
  const at::Tensor equal = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));
  const int64_t unequal = cpu.numel() - equal.sum().item<int64_t>();
  difference->unequal += unequal;
  if (unequal == 0) return;
  if (!floats) {
    difference->worst_units = difference->worst_share = INFINITY;
    return;
  }
  const at::Tensor apart = x.sub(y).abs().masked_fill(equal, 0).nan_to_num(INFINITY);
  const at::Tensor larger = x.abs().maximum(y.abs());
  // A unit of the last place is one of the number's power of two.
  const at::Tensor power = larger.clamp_min(1e-300).log2().floor().exp2();
  const double units =
      apart.div(power.mul(device::LastPlaceOf(cpu.scalar_type()))).max().item<double>();
  const double most = larger.nan_to_num(0, 0, 0).max().item<double>();
  difference->worst_units = std::max(difference->worst_units, units);
  difference->worst_share =
      std::max(difference->worst_share, apart.max().item<double>() / std::max(most, 1e-300));
}

// What kernels of the program do that may differ: order of sums, approximations.
std::string ReasonsOf(const std::vector<std::string>& kernels) {
  const std::pair<const char*, const char*> kinds[] = {
      {"tt.dot", "dot"},          {"tt.reduce", "reduction"},
      {"tt.scan", "scan"},        {"tt.atomic", "atomics"},
      {"math.", "mathematics"},   {"tt.extern_elementwise", "libdevice"},
      {"arith.mulf", "products"}, {"tt.precise", "precise"},
      {"arith.divf", "division"}, {"scf.for", "loop"},
  };
  std::string reasons;
  for (const auto& kind : kinds) {
    const bool has = std::any_of(kernels.begin(), kernels.end(), [&](const std::string& kernel) {
      return absl::StrContains(kernel, kind.first);
    });
    if (has) absl::StrAppend(&reasons, reasons.empty() ? "" : " ", kind.second);
  }
  return reasons;
}

// What ran on the CPU.
struct Done {
  std::string id;
  SessionOptions options;
  std::shared_ptr<const ReferenceResult> reference;  // has the inputs' memory
  std::vector<Frame> frames;
  SessionResult result;
};

class Machine {
 public:
  absl::Status Start() {
    WorkerPoolOptions options;
    ASSIGN_OR_RETURN(options.sandbox, ParseSandboxKind(absl::GetFlag(FLAGS_sandbox)));
    ASSIGN_OR_RETURN(const WorkerPoolOptions reference_options, ReferencePoolOptions(options));
    ASSIGN_OR_RETURN(references_, WorkerPool::Start(reference_options));
    ASSIGN_OR_RETURN(options, ClientPoolOptions(std::move(options)));
    ASSIGN_OR_RETURN(clients_, WorkerPool::Start(options));
    return absl::OkStatus();
  }

  absl::Status StartGpu() {
    ASSIGN_OR_RETURN(workers_, device::CompileWorkers::Create({}));
    ASSIGN_OR_RETURN(context_, device::CudaContext::Create());
    ASSIGN_OR_RETURN(gpu_arena_, device::CudaArena::Create(context_.get()));
    gpu_compiler_ = std::make_unique<device::CudaCompiler>(context_.get(), workers_.get(),
                                                           gpu_arena_->tag_distance());
    return absl::OkStatus();
  }

  absl::StatusOr<Done> OnCpu(const Case& program) {
    ExecRequest request;
    request.set_task_id(program.id);
    request.set_reference_source(program.reference_source);
    request.set_candidate_source(program.candidate_source);
    request.set_trials(1);
    request.set_skip_timing(true);
    JobContext context{request, "cpu", DeriveSeeds(key_, 0, 1)};
    context.time_limit_seconds = kTimeLimit / absl::Seconds(1);
    Done done;
    done.id = program.id;
    done.reference =
        RunReference(context, references_.get(), references_->limits(), absl::Now() + kTimeLimit);
    if (!done.reference->ok()) {
      return absl::InvalidArgumentError(MessageOf(done.reference->run.outcome()));
    }
    ASSIGN_OR_RETURN(
        const VisibleValues visible,
        ReadVisibleValues(done.reference->visible_layout, done.reference->visible.view()));
    done.options = Options(program, visible, context.seeds);
    ASSIGN_OR_RETURN(done.result, RunOnCpu(program, done.options, &done.frames));
    if (done.result.failure.has_value() || done.result.outputs.empty()) {
      return absl::FailedPreconditionError(
          done.result.failure.has_value() ? done.result.failure->text : "no output");
    }
    return done;
  }

  // One line of the table, without the name.
  absl::StatusOr<std::string> OnGpu(Done done) {
    done.options.deadline = absl::Now() + kTimeLimit;
    device::ScriptedChannel kept(done.frames);
    device::Session session(done.options, gpu_arena_.get(), gpu_compiler_.get());
    ASSIGN_OR_RETURN(const SessionResult gpu, session.Run(kept));
    if (gpu.outputs.empty()) return absl::FailedPreconditionError("no output on the GPU");
    return Row(done.frames, done.result, gpu);
  }

  int64_t kernels() const { return static_cast<int64_t>(texts_.size()); }
  bool broken() const { return context_->poisoned(); }

 private:
  static SessionOptions Options(const Case& program, const VisibleValues& visible,
                                const JobSeeds& seeds) {
    SessionOptions options;
    options.source = program.candidate_source;
    options.init_args = visible.args;
    options.init_kwargs = visible.kwargs;
    options.init_seed = seeds.weights;
    options.state = visible.state;
    options.calls.resize(1);
    options.calls[0].args = visible.inputs[0];
    options.calls[0].kwargs.kind = Value::Kind::kDict;
    options.calls[0].seed = seeds.forward[0];
    options.may_compute = true;
    options.device.capability_major = 9;
    options.device.capability_minor = 0;
    options.device.shared_bytes = 232'448;
    options.device.multiprocessors = 132;
    options.deadline = absl::Now() + kTimeLimit;
    options.threads = 4;
    return options;
  }

  absl::StatusOr<SessionResult> RunOnCpu(const Case& program, const SessionOptions& options,
                                         std::vector<Frame>* frames) {
    ASSIGN_OR_RETURN(const std::unique_ptr<device::Arena> arena, device::Arena::Create());
    device::TtirCompiler compiler;
    ASSIGN_OR_RETURN(std::unique_ptr<ClientJob> job,
                     ClientJob::Start(clients_.get(), program.id, program.candidate_source,
                                      clients_->limits(), options.deadline));
    KeepingChannel channel(job->socket());
    device::Session session(options, arena.get(), &compiler);
    absl::StatusOr<SessionResult> result = session.Run(channel);
    if (!result.ok()) job->Cancel();
    job->Finish();
    *frames = channel.TakeFrames();
    return result;
  }

  absl::StatusOr<std::string> Row(const std::vector<Frame>& frames, const SessionResult& cpu,
                                  const SessionResult& gpu) {
    std::vector<std::string> kernels;
    int64_t launches = 0;
    for (const Frame& frame : frames) {
      const auto json = nlohmann::json::parse(frame.header, nullptr, false);
      if (!json.is_object()) continue;
      const std::string what = json.value("do", "");
      if (what == "kernel") kernels.push_back(json.value("ttir", ""));
      if (what == "launch") ++launches;
    }
    texts_.insert(kernels.begin(), kernels.end());
    const std::vector<at::Tensor> a = TensorsOf(cpu.outputs[0]);
    const std::vector<at::Tensor> b = TensorsOf(gpu.outputs[0]);
    if (a.size() != b.size()) return absl::InternalError("other tensors on the GPU");
    Difference difference;
    for (size_t i = 0; i < a.size(); ++i) Compare(a[i], b[i], &difference);
    return absl::StrCat(kernels.size(), ",", launches, ",", difference.elements, ",",
                        difference.unequal, ",", difference.worst_units, ",",
                        difference.worst_share, ",", ReasonsOf(kernels), ",");
  }

  const SecretKey key_{};
  std::unique_ptr<WorkerPool> references_, clients_;
  std::unique_ptr<device::CompileWorkers> workers_;
  std::unique_ptr<device::CudaContext> context_;
  std::unique_ptr<device::CudaArena> gpu_arena_;
  std::unique_ptr<device::CudaCompiler> gpu_compiler_;
  std::set<std::string> texts_;  // of kernels, each once
};

std::string ErrorRow(const absl::Status& status) {
  std::string error = Message(status).substr(0, 200);
  for (char& letter : error) {
    if (letter == ',' || letter == '\n') letter = ' ';
  }
  return absl::StrCat(",,,,,,,", error);
}

absl::Status Main() {
  Machine machine;
  RETURN_IF_ERROR(machine.Start());
  ASSIGN_OR_RETURN(const std::unique_ptr<CaseReader> cases,
                   CaseReader::Open(absl::GetFlag(FLAGS_in)));
  std::ofstream table(absl::GetFlag(FLAGS_out));
  table << "program,kernels,launches,elements,unequal,worst_units,worst_share,has,error\n";
  std::vector<Done> all;
  int exact = 0;
  int failed = 0;
  const auto add = [&](const std::string& id, const absl::StatusOr<std::string>& row) {
    table << id << "," << (row.ok() ? *row : ErrorRow(row.status())) << std::endl;
    failed += row.ok() ? 0 : 1;
    exact += row.ok() && absl::StrContains(*row, ",0,0,0,") ? 1 : 0;
  };
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Case> program, cases->Next());
    if (!program.has_value()) break;
    absl::StatusOr<Done> done = machine.OnCpu(*program);
    if (done.ok()) {
      all.push_back(*std::move(done));
    } else {
      add(program->id, done.status());
    }
  }
  RETURN_IF_ERROR(machine.StartGpu());
  for (Done& done : all) {
    const std::string id = done.id;
    add(id, machine.OnGpu(std::move(done)));
    if (machine.broken()) return absl::InternalError("the GPU's context is lost");
  }
  printf("%ld programs, %ld kernels, %d equal bit for bit, %d not compared\n",
         static_cast<long>(cases->total()), static_cast<long>(machine.kernels()), exact, failed);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Results of kernels on the CPU and on a GPU, with the same inputs.", argc,
                         argv);
  const absl::Status status = tritonrl::Main();
  if (!status.ok()) std::fprintf(stderr, "same_results: %s\n", tritonrl::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
