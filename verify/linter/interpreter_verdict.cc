// The judgement of what forward returns.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

void Interpreter::Closure(const StorageSet& from, std::set<int>* storages,
                          std::set<int>* launches) {
  std::vector<int> pending(from.begin(), from.end());
  while (!pending.empty()) {
    const int storage = pending.back();
    pending.pop_back();
    if (!storages->insert(storage).second) continue;
    const Storage& s = storages_[storage];
    budget_.Spend(8 + s.sources.size() + s.addresses.size() + s.launches.size());
    if (!Spend()) return;
    pending.insert(pending.end(), s.sources.begin(), s.sources.end());
    pending.insert(pending.end(), s.addresses.begin(), s.addresses.end());
    for (int launch : s.launches) {
      if (!launches->insert(launch).second) continue;
      const StorageSet& arguments = launches_[launch].arguments;
      pending.insert(pending.end(), arguments.begin(), arguments.end());
    }
  }
}

bool Interpreter::OnlyArguments(const std::set<int>& storages) const {
  return !storages.empty() && std::all_of(storages.begin(), storages.end(), [this](int s) {
    return storages_[s].argument || !storages_[s].sources.empty();
  });
}

void Interpreter::JudgeReturn(const Returned& returned, bool others_have_kernel) {
  std::set<int> storages, launches;
  Closure(Reachable(returned.value), &storages, &launches);
  if (!launches.empty()) return;
  if (IsNone(returned.value) && others_have_kernel) return;
  if (others_have_kernel && returned.guarded_empty) return;
  // Dropout that is switched off gives its input back: that computes nothing, so whether it is
  // right is for the comparison of outputs to say.
  if (others_have_kernel && returned_.size() > 1 && OnlyArguments(storages)) return;
  const bool constant =
      std::all_of(storages.begin(), storages.end(), [this](int s) { return !storages_[s].input; });
  if (constant) {
    Find(LintRule::kHardCoded, returned.line, "return",
         "forward returns a value that depends neither on its inputs nor on a kernel");
  } else {
    Find(LintRule::kKernelNotUsed, returned.line, "return",
         "forward returns a value that no launched Triton kernel has written");
  }
}

void Interpreter::JudgeKernels(const std::set<int>& launches, const std::set<int>& storages,
                               int line) {
  bool loads = false, computes = false;
  std::string names;
  for (int launch : launches) {
    const KernelInfo& info = *launches_[launch].info;
    loads = loads || info.stores_loaded;
    computes = computes || info.computes;
    absl::StrAppend(&names, names.empty() ? "" : ", ", info.name);
  }
  const int kernel_line = launches.empty() ? line : launches_[*launches.begin()].info->line;
  if (!loads) {
    Find(LintRule::kHardCoded, kernel_line, names,
         "the kernels store values that do not depend on anything they load");
  } else if (!computes) {
    Find(LintRule::kTrivialKernel, kernel_line, names,
         "the kernels only copy what they load to the same place");
  }
  const bool uses_input =
      std::any_of(storages.begin(), storages.end(), [this](int s) { return storages_[s].input; });
  if (has_forward_inputs_ && !uses_input) {
    Find(LintRule::kHardCoded, line, "forward", "the result does not depend on the inputs");
  }
}

void Interpreter::JudgeResult(int line) {
  std::set<int> storages, launches;
  for (const Returned& returned : returned_)
    Closure(Reachable(returned.value), &storages, &launches);
  if (launches_.empty() || result_->launched_kernels.empty()) {
    Find(LintRule::kKernelNotUsed, line, "forward",
         "no Triton kernel is launched on the path of forward");
    return;
  }
  if (returned_.empty()) {
    Find(LintRule::kKernelNotUsed, line, "forward", "forward returns nothing");
    return;
  }
  for (const Returned& returned : returned_) JudgeReturn(returned, !launches.empty());
  if (!launches.empty()) JudgeKernels(launches, storages, returned_.back().line);
}

void Interpreter::JudgeSecondCall() {
  for (const Returned& returned : returned_) {
    std::set<int> storages, launches;
    Closure(Reachable(returned.value), &storages, &launches);
    // Wholly, or in one of the alternatives that the value may be.
    const StorageSet direct = Reachable(returned.value);
    const bool kept = std::any_of(direct.begin(), direct.end(), [this](int s) {
      const std::vector<int>& written = storages_[s].launches;
      return !written.empty() && written.back() < first_call_launches_;
    });
    const bool only_old = !launches.empty() && *launches.rbegin() < first_call_launches_;
    if ((!only_old && !kept) || returned.guarded_empty) continue;
    Find(LintRule::kHardCoded, returned.line, "kept result",
         "a second call would return what the first one computed, without a launch");
  }
}

}  // namespace tritonrl::lint
