#include "tools/augment_inputs/family_checker.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "tools/augment_inputs/input_functions.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<FamilyChecker>> FamilyChecker::Start(
    const TaskCheckerOptions& options, const std::string& journal) {
  std::unique_ptr<FamilyChecker> checker(new FamilyChecker());
  ASSIGN_OR_RETURN(checker->version_, TaskChecker::Version(options));
  ASSIGN_OR_RETURN(checker->journal_, FindingsJournal::Open(journal));
  ASSIGN_OR_RETURN(checker->checker_, TaskChecker::Start(options));
  return checker;
}

absl::Status FamilyChecker::Check(int wanted, const std::function<bool()>& stop, Family* family) {
  const auto stopped = [&] { return stop() ? absl::CancelledError("stopped") : absl::OkStatus(); };
  if (!family->checked) {
    RETURN_IF_ERROR(stopped());
    RETURN_IF_ERROR(CheckOriginal(family));
  }
  const std::vector<std::string> proposals = std::exchange(family->proposals, {});
  for (const std::string& function : proposals) {
    if (family->broken() || family->kept() >= wanted) break;
    RETURN_IF_ERROR(stopped());
    absl::StatusOr<std::string> source = ReplaceInputs(family->task->source, function);
    if (!source.ok()) return AddContext(source.status(), family->task->path);
    Variant variant = {.function = function, .source = *std::move(source)};
    ASSIGN_OR_RETURN(variant.finding, Find(KeyOf("task", variant.source),
                                           [&] { return checker_->Run(variant.source); }));
    variant.left_out = ReasonToLeaveOut(*family, variant.finding);
    if (variant.finding.reason == kSandboxError) family->lost = true;
    family->variants.push_back(std::move(variant));
  }
  return absl::OkStatus();
}

absl::Status FamilyChecker::CheckOriginal(Family* family) {
  const std::string& source = family->task->source;
  ASSIGN_OR_RETURN(family->original,
                   Find(KeyOf("task", source), [&] { return checker_->Run(source); }));
  family->inputs = family->original.inputs;
  family->lost = family->original.reason == kSandboxError;
  family->checked = true;
  if (family->broken() || !family->inputs.empty()) return absl::OkStatus();
  // The run was ended before it could report its inputs.
  ASSIGN_OR_RETURN(const TaskFinding alone,
                   Find(KeyOf("inputs", source), [&] { return checker_->RunInputs(source); }));
  family->inputs = alone.inputs;
  if (alone.reason == kSandboxError) family->lost = true;
  return absl::OkStatus();
}

absl::StatusOr<TaskFinding> FamilyChecker::Find(
    const std::string& key, absl::FunctionRef<absl::StatusOr<TaskFinding>()> run) {
  if (const TaskFinding* known = journal_->Find(key); known != nullptr) return *known;
  absl::StatusOr<TaskFinding> finding = run();
  if (!finding.ok()) return TaskFinding{kSandboxError, Message(finding.status()), {}};
  RETURN_IF_ERROR(journal_->Append(key, *finding));
  return finding;
}

// A changed checker or limit gives another key: the same program may then end differently.
std::string FamilyChecker::KeyOf(const std::string& what, const std::string& source) const {
  return Sha256Hex(absl::StrCat(version_, "\n", what, "\n", source)).substr(0, 32);
}

}  // namespace tritonrl
