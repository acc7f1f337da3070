#include "verify/run_call.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/interrupts.h"
#include "base/status.h"
#include "verify/batch.h"
#include "verify/html_page.h"
#include "verify/preflight_report.h"
#include "verify/report.h"
#include "verify/verdict.h"
#include "verify/verifier.h"

namespace tritonrl {
namespace {

constexpr int kSignalled = 128;

int Complain(int code, const std::string& sentence) {
  std::fprintf(stderr, "verify: %s\n", sentence.c_str());
  return code;
}

int Report(const VerifyCall& call, const Verdict& verdict, const std::string& source) {
  if (call.json) {
    std::cout << VerdictJson(verdict) << std::endl;
  } else {
    std::cout << VerdictText(verdict, source) << std::flush;
  }
  if (!IsFaultOfOurs(verdict))
    return verdict.failed_layer() == LAYER_NONE ? kCallCorrect : kCallCandidateFailed;
  const bool reference = verdict.fault_of_ours().kind() == FaultOfOurs::REFERENCE_FAILED;
  return Complain(reference ? kCallUserError : kCallFaultOfOurs, verdict.fault_of_ours().text());
}

int RunPair(const VerifyCall& call, DeviceBackend* backend, Judge* judge,
            const std::string& reference, const std::string& candidate) {
  Verifier verifier(VerifierOptionsOf(call, *backend), backend, judge);
  if (const absl::Status opened = verifier.Open(); !opened.ok()) {
    return Complain(kCallUserError, Message(opened));
  }
  const std::string task = call.reference;
  const Verdict verdict = verifier
                              .Submit({.task = {.id = task, .path = task, .source = reference},
                                       .code = candidate,
                                       .key = call.candidate})
                              .get();
  const int code = Report(call, verdict, candidate);
  const std::string page = call.html;
  if (page.empty()) return code;
  const absl::Status written =
      WritePairPage(VerdictJson(verdict), reference, candidate, UserPath(page));
  return written.ok() ? code
                      : Complain(kCallFaultOfOurs, absl::StrCat("--html: ", Message(written)));
}

int RunMany(const VerifyCall& call, DeviceBackend* backend, Judge* judge) {
  const Interrupts interrupts;
  const VerifierOptions verifier_options = VerifierOptionsOf(call, *backend);
  Verifier verifier(verifier_options, backend, judge);
  if (const absl::Status opened = verifier.Open(); !opened.ok()) {
    return Complain(kCallUserError, Message(opened));
  }
  BatchOptions options;
  options.in = UserPath(call.in);
  options.out = UserPath(call.out);
  options.window = std::max(64, 8 * verifier_options.parallel);
  options.stop = [&interrupts] { return interrupts.received() != 0; };
  const absl::StatusOr<BatchSummary> summary = RunBatch(options, &verifier);
  if (!summary.ok()) {
    const bool writing =
        absl::IsUnavailable(summary.status()) || absl::IsResourceExhausted(summary.status());
    return Complain(writing ? kCallFaultOfOurs : kCallUserError, Message(summary.status()));
  }
  std::cout << SummaryText(*summary) << std::flush;
  if (const absl::Status kept = verifier.JournalStatus(); !kept.ok()) {
    return Complain(kCallFaultOfOurs, absl::StrCat("--judge_cache: ", Message(kept)));
  }
  const std::string page = call.html;
  if (!page.empty()) {
    const absl::Status written = WriteBatchPage(options.in, options.out, UserPath(page));
    if (!written.ok())
      return Complain(kCallFaultOfOurs, absl::StrCat("--html: ", Message(written)));
  }
  if (summary->interrupted) return kSignalled + interrupts.received();
  if (summary->totals.input_errors > 0) return kCallUserError;
  return summary->totals.inconclusive > 0 ? kCallFaultOfOurs : kCallCorrect;
}

int CheckTheTasks(const VerifyCall& call, DeviceBackend* backend, const std::vector<Task>& tasks) {
  const Interrupts interrupts;
  PreflightOptions options = PreflightLike(VerifierOptionsOf(call, *backend));
  options.stop = [&interrupts] { return interrupts.received() != 0; };
  const std::string out = call.out;
  const auto checks = RunPreflight(tasks, backend, options, out.empty() ? "" : UserPath(out));
  if (!checks.ok()) return Complain(kCallFaultOfOurs, "--out: " + Message(checks.status()));
  std::cout << PreflightTable(*checks, options.mode) << std::flush;
  if (interrupts.received() != 0) return kSignalled + interrupts.received();
  const PreflightTotals totals = Count(*checks);
  if (totals.broken > 0) return kCallUserError;
  if (totals.not_checked > 0) return kCallFaultOfOurs;
  return totals.unsound > 0 ? kCallCandidateFailed : kCallCorrect;
}

}  // namespace

int ComplainOfCall(const absl::Status& status) { return Complain(kCallUserError, Message(status)); }

int RunCall(const VerifyCall& call) {
  if (const absl::Status checked = CheckCall(call); !checked.ok()) return ComplainOfCall(checked);
  const absl::StatusOr<CallInputs> inputs = ReadInputs(call);
  if (!inputs.ok()) return ComplainOfCall(inputs.status());
  auto judge = MakeCallJudge(call);
  if (!judge.ok()) return ComplainOfCall(judge.status());
  auto backend = StartCallBackend(call);
  if (!backend.ok()) {
    const absl::Status& status = backend.status();
    const bool user = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                      absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
    return Complain(user ? kCallUserError : kCallFaultOfOurs, Message(backend.status()));
  }
  if (call.preflight) return CheckTheTasks(call, backend->get(), inputs->tasks);
  if (!call.in.empty()) return RunMany(call, backend->get(), judge->get());
  return RunPair(call, backend->get(), judge->get(), inputs->reference, inputs->candidate);
}

}  // namespace tritonrl
