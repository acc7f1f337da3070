#include "exec/candidate/follow_up.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"

namespace tritonrl {
namespace {

constexpr double kShareOfLimit = 0.25;
constexpr double kMarginSeconds = 2;

void Profile(const FollowUpSetup& setup, const AskRunner& ask, FollowUpResult* found) {
  const double seconds = absl::ToDoubleSeconds(setup.ablation.until - absl::Now());
  if (seconds <= 0) {
    found->profile.note = "no time was left for it";
    return;
  }
  setup.ablation.provide(0);
  const std::optional<std::string> answer = ask(ProfileOrder(0, seconds));
  if (!answer.has_value()) {
    found->profile.note = "its process ended in the profiled call";
    found->ended = true;
    return;
  }
  absl::StatusOr<GpuProfile> profile = ParseGpuProfile(*answer, setup.ablation.memory_bytes);
  if (!profile.ok()) {
    found->violation = profile.status();
    return;
  }
  found->profile = *std::move(profile);
  const std::optional<std::vector<Leaf>>& output = found->profile.output;
  found->profile_wrong = output.has_value() && !setup.judge_profiled(*output);
}

}  // namespace

absl::Time FollowUpDeadline(absl::Time begin, const ExecLimits& limits) {
  const double wall = limits.wall_seconds();
  return std::min(absl::Now() + absl::Seconds(wall * kShareOfLimit),
                  begin + absl::Seconds(wall - kMarginSeconds));
}

FollowUpResult RunFollowUp(const FollowUpSetup& setup, const std::string& named,
                           const AskRunner& ask) {
  FollowUpResult found;
  if (setup.profile) Profile(setup, ask, &found);
  if (!setup.ablate || found.profile_wrong || found.ended || !found.violation.ok()) return found;
  found.ablation = Ablate(setup.ablation, named, ask);
  found.ended = found.ablation.ended;
  found.violation = found.ablation.violation;
  return found;
}

bool MayHaveHarmedDevice(const FollowUpResult& found) {
  if (found.ended || absl::StrContains(found.profile.note, "CUDA")) return true;
  for (const KernelAblation& kernel : found.ablation.kernels) {
    // "a kernel touched memory that is not its own: CUDA error: ..."
    if (absl::StrContains(kernel.text(), "CUDA")) return true;
  }
  return false;
}

void DescribeFollowUp(const FollowUpResult& found, ExecResult* result) {
  result->set_ablation_all(found.ablation.all);
  for (const KernelAblation& kernel : found.ablation.kernels) *result->add_ablations() = kernel;
  for (const GpuKernel& kernel : found.profile.kernels) *result->add_gpu_kernels() = kernel;
  result->set_gpu_profile_note(found.profile.note);
}

void ForgetEnd(JobReport* report, FollowUpResult* found) {
  if (report->end == JobEnd::kTimeout || report->end == JobEnd::kDeadline) {
    AblationResult& ablation = found->ablation;
    if (ablation.all == ABLATION_CHANGED && ablation.ended_in_all) {
      ablation.all = ABLATION_NOT_TRIED;
    }
    for (KernelAblation& kernel : ablation.kernels) {
      if (kernel.text() != kProcessEnded) continue;
      kernel.set_effect(ABLATION_NOT_TRIED);
      kernel.set_text("without it forward did not end in time");
    }
  }
  if (report->end == JobEnd::kWorkerDied) return;
  report->end = JobEnd::kExit;
  report->exit_code = report->signal = 0;
  report->out_of_memory = report->refused_forks = false;
}

}  // namespace tritonrl
