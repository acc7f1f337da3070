#include "model/step_profile.h"

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace tritonrl {
namespace {

bool HasAny(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return name.find(word) != std::string::npos;
  });
}

double& ShareOf(const std::string& name, StepProfile* profile) {
  if (HasAny(name, {"sdpa", "flash", "fmha", "fprop", "bprop"})) return profile->attention;
  if (HasAny(name, {"gemm", "nvjet", "xmma", "cutlass"})) return profile->gemm;
  return profile->rest;
}

}  // namespace

StepProfile ProfileStep(const std::function<void()>& work) {
  using torch::profiler::impl::ActivityType;
  using torch::profiler::impl::ProfilerConfig;
  using torch::profiler::impl::ProfilerState;
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  work();
  c10::cuda::device_synchronize();
  const auto result = torch::autograd::profiler::disableProfiler();

  StepProfile profile;
  std::map<std::string, StepProfile::Kernel> by_name;
  std::vector<std::array<double, 2>> spans;
  for (const auto& event : result->events()) {
    if (event.deviceType() != c10::DeviceType::CUDA || event.durationNs() == 0) continue;
    const double seconds = 1e-9 * static_cast<double>(event.durationNs());
    const double start = 1e-9 * static_cast<double>(event.startNs() - result->trace_start_ns());
    spans.push_back({start, start + seconds});
    ShareOf(event.name(), &profile) += seconds;
    StepProfile::Kernel& kernel = by_name[event.name()];
    kernel.name = event.name();
    kernel.seconds += seconds;
    ++kernel.calls;
  }
  std::sort(spans.begin(), spans.end());
  double end = spans.empty() ? 0 : spans[0][0];
  for (const auto& span : spans) {
    profile.gaps += std::max(0.0, span[0] - end);
    end = std::max(end, span[1]);
  }
  profile.seconds = spans.empty() ? 0 : end - spans[0][0];
  for (auto& [name, kernel] : by_name) profile.kernels.push_back(kernel);
  std::sort(profile.kernels.begin(), profile.kernels.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return profile;
}

}  // namespace tritonrl
