#include "verify/cli/verdict_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "exec/device_backend.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

// Maximum number of evidence entries shown for one layer; the rest is counted.
constexpr int kShown = 6;

// 0.00000513 -> "5.13 us".
std::string Duration(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g s", seconds);
}

std::string SourceLine(const std::string& source, int line) {
  std::vector<absl::string_view> lines = absl::StrSplit(source, '\n');
  if (line < 1 || line > static_cast<int>(lines.size())) return "";
  return std::string(absl::StripAsciiWhitespace(lines[line - 1]));
}

void AppendEvidence(const LayerResult& result, const std::string& source, std::string* text) {
  int shown = 0;
  for (const Evidence& e : result.evidence()) {
    if (shown++ >= kShown) continue;
    const std::string where = e.line() > 0 ? absl::StrCat("line ", e.line(), ": ") : "";
    absl::StrAppend(text, "                 ", where, absl::StripTrailingAsciiWhitespace(e.text()),
                    "\n");
    const std::string quoted = e.line() > 0 ? SourceLine(source, e.line()) : "";
    if (!quoted.empty()) absl::StrAppend(text, "                   > ", quoted, "\n");
  }
  if (shown > kShown) absl::StrAppend(text, "                 and ", shown - kShown, " more\n");
}

// Returns e.g. "kernels: f, g (g changes nothing here)".
std::string KernelsRemark(const Verdict& v) {
  if (v.kernels().empty()) return "";
  std::string remark = absl::StrCat("kernels: ", absl::StrJoin(v.kernels(), ", "));
  for (const Evidence& e : ResultOf(v, LAYER_FUNCTIONALITY).evidence()) {
    if (e.rule() == "changes_nothing") {
      absl::StrAppend(&remark, " (", e.kernel(), " changes nothing here)");
    } else if (e.rule() == "ablation_not_tried") {
      absl::StrAppend(&remark, " (", e.kernel(), " was not left out to see if it matters)");
    }
  }
  return remark;
}

std::string CorrectnessRemark(const Correctness& correctness) {
  return absl::StrFormat("%d of %d %s inputs, largest error %.3g", correctness.trials_passed(),
                         correctness.trials(), correctness.robust() ? "robust rules'" : "random",
                         correctness.max_abs_error());
}

std::string SpeedupRemark(const Speedup& speedup) {
  std::string text =
      absl::StrFormat("%.2fx (%s: reference %s, candidate %s", speedup.speedup(),
                      speedup.modelled() ? "modelled" : "measured",
                      Duration(speedup.reference_seconds()), Duration(speedup.candidate_seconds()));
  if (!speedup.has_timing()) return text + ")";
  const MeasuredTiming& timing = speedup.timing();
  if (speedup.mean_of_calls()) {
    absl::StrAppend(&text, "; means of ten calls each");
  } else {
    absl::StrAppendFormat(&text, "; 95 %% interval %.3f to %.3f of %d blocks", timing.speedup_low(),
                          timing.speedup_high(), timing.block_ratios_size());
  }
  if (timing.has_paper_speedup() && !speedup.mean_of_calls()) {
    absl::StrAppendFormat(&text, "; with launches, mean of 10 each: %.2fx", timing.paper_speedup());
  }
  if (timing.has_sm_mhz_low()) {
    absl::StrAppendFormat(&text, "; %.0f to %.0f MHz", timing.sm_mhz_low(), timing.sm_mhz_high());
  }
  if (timing.gpu_throttled()) absl::StrAppend(&text, "; the GPU held its clocks down");
  if (timing.gpu_shared()) absl::StrAppend(&text, "; other programs were on the GPU");
  return text + ")";
}

// The remark on a layer that passed.
std::string Remark(const Verdict& v, Layer layer) {
  switch (layer) {
    case LAYER_FUNCTIONALITY:
      return KernelsRemark(v);
    case LAYER_CORRECT:
      return CorrectnessRemark(v.correctness());
    case LAYER_SPEEDUP:
      return SpeedupRemark(v.speedup());
    default:
      return "";
  }
}

}  // namespace

std::string VerdictText(const Verdict& v, const std::string& source) {
  const Outcome& outcome = v.outcome();
  std::string text;
  if (IsInfraError(v)) {
    text = absl::StrCat("No verdict: ", outcome.message(), ".\n");
  } else if (v.failed_layer() == LAYER_NONE) {
    text = absl::StrCat("Correct: ", outcome.message(), ".\n");
  } else {
    text = absl::StrCat("Failed at ", LayerName(v.failed_layer()), " (",
                        ReasonName(outcome.reason()), "): ", outcome.message(), ".\n");
  }
  for (int i = LAYER_SYNTAX; i <= LAYER_SPEEDUP; ++i) {
    const Layer layer = static_cast<Layer>(i);
    const LayerResult& result = ResultOf(v, layer);
    absl::StrAppendFormat(&text, "  %-14s ", LayerName(layer));
    if (result.reason() == Outcome::UNSPECIFIED) {
      absl::StrAppend(&text, layer == LAYER_JUDGE ? "not asked\n" : "not reached\n");
    } else if (result.reason() == Outcome::OK) {
      const std::string remark = Remark(v, layer);
      absl::StrAppend(&text, "ok", remark.empty() ? "" : ", ", remark, "\n");
    } else {
      absl::StrAppend(&text, "FAILED, ", ReasonName(result.reason()), "\n");
      AppendEvidence(result, source, &text);
    }
  }
  return text;
}

}  // namespace tritonrl
