#include "bench/model/step_profile.h"

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace tritonrl {
namespace {

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

// Seconds in which at least one of the runs, sorted by start, was under way.
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

StepProfile SummarizeRuns(std::vector<KernelRun> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const KernelRun& a, const KernelRun& b) { return a.start < b.start; });
  StepProfile profile;
  std::map<std::string, StepProfile::Kernel> by_name;
  double end = runs.empty() ? 0 : runs[0].start, worked = end;
  for (const KernelRun& run : runs) {
    // A kernel that began while another one still ran has mostly waited for it until that ended.
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

StepProfile ProfileStep(const std::function<void()>& work, int times) {
  using torch::profiler::impl::ActivityType;
  using torch::profiler::impl::ProfilerConfig;
  using torch::profiler::impl::ProfilerState;
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  for (int i = 0; i < times; ++i) work();
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
    *seconds /= times;
  }
  for (StepProfile::Kernel& kernel : profile.kernels) {
    kernel.seconds /= times;
    kernel.calls /= times;
  }
  return profile;
}

}  // namespace tritonrl
