#include "bench/model/step_measures.h"

#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "model/testing/test_util.h"

namespace tritonrl {
namespace {

constexpr int kMultiprocessors = 1;  // NVML_CLOCK_SM
constexpr int kBusIdBytes = 32;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool HasAny(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

bool IsCommunication(const std::string& name) { return HasAny(name, {"nccl"}); }

double& ShareOf(const std::string& name, StepProfile* profile) {
  if (IsCommunication(name)) return profile->communication;
  if (HasAny(name, {"sdpa", "flash", "fmha", "fprop", "bprop", "cudnn::fusion", "DecodeKernel"})) {
    return profile->attention;
  }
  if (HasAny(name, {"gemm", "ChainKernel", "nvjet", "xmma", "cutlass", "cublas"}))
    return profile->gemm;
  return profile->rest;
}

// Seconds in which at least one of the runs, sorted by start, was in flight.
double Covered(const std::vector<KernelRun>& runs, bool with_communication) {
  double covered = 0, end = -std::numeric_limits<double>::infinity();
  for (const KernelRun& run : runs) {
    if (!with_communication && IsCommunication(run.name)) continue;
    covered += std::max(0.0, run.start + run.seconds - std::max(run.start, end));
    end = std::max(end, run.start + run.seconds);
  }
  return covered;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<int64_t>>> ParseBatches(absl::string_view text) {
  std::vector<std::vector<int64_t>> batches;
  for (const absl::string_view batch : absl::StrSplit(text, ';')) {
    std::vector<int64_t>& lengths = batches.emplace_back();
    for (const absl::string_view number : absl::StrSplit(batch, ',')) {
      int64_t length = 0;
      if (!absl::SimpleAtoi(number, &length) || length < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("--lengths: \"", number, "\" is no length of a sequence; write lengths ",
                         "divided by commas, and batches by semicolons"));
      }
      lengths.push_back(length);
    }
  }
  return batches;
}

double StepFlops(const ModelConfig& config, const std::vector<int64_t>& lengths) {
  const int64_t embedding = config.tie_word_embeddings ? 0 : config.vocab_size * config.hidden_size;
  const double products = 6.0 * static_cast<double>(config.NumParameters() - embedding);
  const double attention = 6.0 * static_cast<double>(config.num_layers * config.query_size());
  double flops = 0;
  for (const int64_t length : lengths) {
    const double n = static_cast<double>(length);
    flops += n * (products + attention * n);
  }
  return flops;
}

absl::StatusOr<std::vector<nlohmann::json>> RunStepPeer(Bench* bench, PeerCommand command,
                                                        const std::string& shape,
                                                        const std::string& lengths, int steps) {
  if (bench->peer().empty()) return std::vector<nlohmann::json>();
  ASSIGN_OR_RETURN(const std::string config, ModelConfigPath(shape));
  command.arguments = {"--config=" + config, "--lengths=" + lengths, "--recompute=" + bench->peer(),
                       absl::StrCat("--steps=", steps)};
  ASSIGN_OR_RETURN(std::vector<nlohmann::json> lines, RunPeer(command));
  bench->set_peer_name(lines.front().value("peer", command.script));
  for (const nlohmann::json& line : lines) std::printf("peer: %s\n", line.dump().c_str());
  return lines;
}

nlohmann::json FastestOf(const std::vector<nlohmann::json>& lines, const nlohmann::json& lengths) {
  nlohmann::json best;
  for (const nlohmann::json& line : lines) {
    if (line.value("lengths", nlohmann::json()) != lengths || !line.contains("seconds")) continue;
    if (best.is_null() || line["seconds"] < best["seconds"]) best = line;
  }
  return best;
}

std::vector<Figure> StepProfile::Figures() const {
  if (seconds == 0) return {};
  std::vector<Figure> figures = {{"GEMM time", 1e3 * gemm, "ms"},
                                 {"attention time", 1e3 * attention, "ms"},
                                 {"rest of the kernels", 1e3 * rest, "ms"}};
  if (communication > 0) {
    figures.push_back({"communication time", 1e3 * communication, "ms"});
    figures.push_back({"exposed communication", 1e3 * exposed, "ms"});
  }
  figures.push_back({"gaps", 1e3 * gaps, "ms"});
  figures.push_back({"step under the profiler", 1e3 * seconds, "ms"});
  return figures;
}

StepProfile SummarizeRuns(std::vector<KernelRun> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const KernelRun& a, const KernelRun& b) { return a.start < b.start; });
  StepProfile profile;
  std::map<std::string, StepProfile::Kernel> by_name;
  double end = runs.empty() ? 0 : runs[0].start, worked = end;
  for (const KernelRun& run : runs) {
    // A kernel that starts while another one runs mostly waits until that one ends.
    const double last = run.start + run.seconds;
    const double seconds =
        IsCommunication(run.name) ? run.seconds : std::max(0.0, last - std::max(run.start, worked));
    if (!IsCommunication(run.name)) worked = std::max(worked, last);
    ShareOf(run.name, &profile) += seconds;
    StepProfile::Kernel& kernel = by_name[run.name];
    kernel.name = run.name;
    kernel.seconds += seconds;
    ++kernel.calls;
    end = std::max(end, last);
  }
  profile.seconds = runs.empty() ? 0 : end - runs[0].start;
  const double covered = Covered(runs, true);
  profile.gaps = profile.seconds - covered;
  profile.exposed = covered - Covered(runs, false);
  for (auto& [name, kernel] : by_name) profile.kernels.push_back(std::move(kernel));
  std::sort(profile.kernels.begin(), profile.kernels.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return profile;
}

void PrintKernels(const StepProfile& profile, int max_kernels) {
  for (int i = 0; i < max_kernels && i < static_cast<int>(profile.kernels.size()); ++i) {
    const StepProfile::Kernel& kernel = profile.kernels[i];
    std::printf("  %8.2f ms %6d  %.100s\n", 1e3 * kernel.seconds, kernel.calls,
                kernel.name.c_str());
  }
}

StepProfile ProfileStep(const std::function<void()>& work, int calls, int steps) {
  using torch::profiler::impl::ActivityType;
  using torch::profiler::impl::ProfilerConfig;
  using torch::profiler::impl::ProfilerState;
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  for (int i = 0; i < calls; ++i) work();
  c10::cuda::device_synchronize();
  const auto result = torch::autograd::profiler::disableProfiler();

  std::vector<KernelRun> runs;
  for (const auto& event : result->events()) {
    if (event.deviceType() != c10::DeviceType::CUDA || event.durationNs() == 0) continue;
    runs.push_back({event.name(),
                    1e-9 * static_cast<double>(event.startNs() - result->trace_start_ns()),
                    1e-9 * static_cast<double>(event.durationNs())});
  }
  StepProfile profile = SummarizeRuns(std::move(runs));
  for (double* seconds : {&profile.gemm, &profile.attention, &profile.rest, &profile.communication,
                          &profile.exposed, &profile.gaps, &profile.seconds}) {
    *seconds /= calls * steps;
  }
  for (StepProfile::Kernel& kernel : profile.kernels) {
    kernel.seconds /= calls;
    kernel.calls /= calls;
  }
  return profile;
}

GpuPower::GpuPower(int device) {
  char bus_id[kBusIdBytes];
  if (cudaDeviceGetPCIBusId(bus_id, kBusIdBytes, device) != cudaSuccess) return;
  // Never unloaded, because the library keeps threads and files of its own.
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto find = [library](const char* name, auto* function) {
    *reinterpret_cast<void**>(function) = dlsym(library, name);
    return *function != nullptr;
  };
  int (*start)() = nullptr;
  int (*by_bus_id)(const char*, Device*) = nullptr;
  if (!find("nvmlInit_v2", &start) || !find("nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id) ||
      !find("nvmlDeviceGetTotalEnergyConsumption", &energy_) ||
      !find("nvmlDeviceGetClockInfo", &clock_) || start() != 0 ||
      by_bus_id(bus_id, &device_) != 0) {
    device_ = nullptr;
  }
}

void GpuPower::Begin() {
  joules_ = Joules();
  seconds_ = Now();
}

double GpuPower::Watts() const {
  const double seconds = Now() - seconds_, joules = Joules();
  return seconds > 0 && joules_ > 0 && joules > 0 ? (joules - joules_) / seconds : 0;
}

double GpuPower::Megahertz() const {
  unsigned megahertz = 0;
  if (device_ == nullptr || clock_(device_, kMultiprocessors, &megahertz) != 0) return 0;
  return megahertz;
}

double GpuPower::Joules() const {
  unsigned long long millijoules = 0;
  if (device_ == nullptr || energy_(device_, &millijoules) != 0) return 0;
  return static_cast<double>(millijoules) / 1000;
}

}  // namespace tritonrl
