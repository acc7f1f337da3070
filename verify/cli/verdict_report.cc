#include "verify/cli/verdict_report.h"

#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

// Pieces of evidence shown for one layer; the rest is counted.
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

template <typename Result>
void AppendEvidence(const Result& result, const std::string& source, std::string* text) {
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

// One layer: its name, "ok" with a remark, or FAILED with the outcome and evidence.
template <typename Result>
void AppendLayer(const std::string& name, const Result& result, const std::string& remark,
                 const std::string& source, std::string* text) {
  absl::StrAppendFormat(text, "  %-14s ", name);
  if (result.outcome() == Result::NOT_REACHED) {
    absl::StrAppend(text, "not reached\n");
  } else if (result.outcome() == Result::OK) {
    absl::StrAppend(text, "ok", remark.empty() ? "" : ", ", remark, "\n");
  } else {
    absl::StrAppend(text, "FAILED, ", absl::AsciiStrToLower(Result::Outcome_Name(result.outcome())),
                    "\n");
    AppendEvidence(result, source, text);
  }
}

// "kernels: f, g (g changes nothing)".
std::string KernelsRemark(const FunctionalityResult& functionality) {
  if (functionality.kernels().empty()) return "";
  std::string remark = absl::StrCat("kernels: ", absl::StrJoin(functionality.kernels(), ", "));
  for (const Evidence& e : functionality.evidence()) {
    if (e.rule() == "changes_nothing") {
      absl::StrAppend(&remark, " (", e.kernel(), " changes nothing here)");
    } else if (e.rule() == "ablation_not_tried") {
      absl::StrAppend(&remark, " (", e.kernel(), " was not left out to see if it matters)");
    }
  }
  return remark;
}

std::string SpeedupRemark(const SpeedupResult& speedup) {
  std::string text =
      absl::StrFormat("%.2fx (%s: reference %s, candidate %s", speedup.speedup(),
                      speedup.modelled() ? "modelled" : "measured",
                      Duration(speedup.reference_seconds()), Duration(speedup.candidate_seconds()));
  if (speedup.has_speedup_low()) {
    absl::StrAppendFormat(&text, "; 95 %% interval %.3f to %.3f of %d blocks",
                          speedup.speedup_low(), speedup.speedup_high(), speedup.blocks());
  }
  if (speedup.has_paper_speedup()) {
    absl::StrAppendFormat(&text, "; with launches, mean of 10 each: %.2fx",
                          speedup.paper_speedup());
  }
  if (speedup.has_sm_mhz_low()) {
    absl::StrAppendFormat(&text, "; %.0f to %.0f MHz", speedup.sm_mhz_low(), speedup.sm_mhz_high());
  }
  if (speedup.gpu_throttled()) absl::StrAppend(&text, "; the GPU held its clocks down");
  if (speedup.gpu_shared()) absl::StrAppend(&text, "; other programs were on the GPU");
  return text + ")";
}

// What is known of a measured speedup beyond the number.
Json TimingJson(const SpeedupResult& speedup) {
  if (!speedup.has_speedup_low()) return nullptr;
  Json json = {{"speedup_low", speedup.speedup_low()},
               {"speedup_high", speedup.speedup_high()},
               {"paper_speedup", nullptr},
               {"blocks", speedup.blocks()},
               {"sm_mhz", nullptr},
               {"gpu_shared", speedup.gpu_shared()},
               {"gpu_throttled", speedup.gpu_throttled()}};
  if (speedup.has_paper_speedup()) json["paper_speedup"] = speedup.paper_speedup();
  if (speedup.has_sm_mhz_low()) {
    json["sm_mhz"] = {speedup.sm_mhz_low(), speedup.sm_mhz_high()};
  }
  return json;
}

template <typename Result>
Json LayerJson(const Result& result) {
  Json layer = {{"outcome", absl::AsciiStrToLower(Result::Outcome_Name(result.outcome()))}};
  Json evidence = Json::array();
  for (const Evidence& e : result.evidence()) {
    Json piece = {{"rule", e.rule()}, {"text", e.text()}};
    if (e.line() > 0) piece["line"] = e.line();
    if (!e.name().empty()) piece["name"] = e.name();
    if (!e.kernel().empty()) piece["kernel"] = e.kernel();
    if (e.value() != 0 && std::isfinite(e.value())) piece["value"] = e.value();
    evidence.push_back(piece);
  }
  layer["evidence"] = evidence;
  return layer;
}

// true, false, or null when the layer was not reached.
template <typename Result>
Json Reached(const Result& result) {
  if (result.outcome() == Result::NOT_REACHED) return nullptr;
  return result.outcome() == Result::OK;
}

Json ValidJson(const Verdict& v) {
  const bool unknown =
      v.syntax().outcome() == SyntaxResult::NOT_REACHED ||
      (IsSyntaxOk(v) && v.functionality().outcome() == FunctionalityResult::NOT_REACHED) ||
      v.judge().outcome() == JudgeResult::UNAVAILABLE;
  if (unknown) return nullptr;
  return IsValid(v);
}

}  // namespace

std::string VerdictText(const Verdict& v, const std::string& source) {
  std::string text;
  if (IsInfraError(v)) {
    text = absl::StrCat("No verdict: ", v.reason(), ".\n");
  } else if (v.failed_layer() == LAYER_NONE) {
    text = absl::StrCat("Correct: ", v.reason(), ".\n");
  } else {
    text = absl::StrCat("Failed at ", LayerName(v.failed_layer()), " (", v.outcome(),
                        "): ", v.reason(), ".\n");
  }
  AppendLayer("syntax", v.syntax(), "", source, &text);
  AppendLayer("functionality", v.functionality(), KernelsRemark(v.functionality()), source, &text);
  AppendLayer("compiled", v.compiled(), "", source, &text);
  AppendLayer(
      "correct", v.correct(),
      absl::StrFormat("%d of %d %s inputs, largest error %.3g", v.correct().trials_passed(),
                      v.correct().trials(), v.correct().robust() ? "robust mode's" : "random",
                      v.correct().max_abs_error()),
      source, &text);
  if (v.judge().outcome() == JudgeResult::OFF) {
    absl::StrAppendFormat(&text, "  %-14s off\n", "judge");
  } else {
    AppendLayer("judge", v.judge(), "", source, &text);
  }
  AppendLayer("speedup", v.speedup(), SpeedupRemark(v.speedup()), source, &text);
  return text;
}

std::string VerdictJson(const Verdict& v) {
  Json json;
  json["id"] = v.key();
  json["task"] = v.task_id();
  json["valid"] = ValidJson(v);
  json["compiled"] = Reached(v.compiled());
  json["correct"] = Reached(v.correct());
  if (IsCorrect(v) && v.speedup().outcome() == SpeedupResult::OK) {
    json["speedup"] = v.speedup().speedup();
  } else {
    json["speedup"] = nullptr;
  }
  for (const char* name : {"speedup_low", "speedup_high", "paper_speedup"}) {
    const Json timing = IsCorrect(v) ? TimingJson(v.speedup()) : Json();
    json[name] = timing.is_object() ? timing[name] : Json();
  }
  json["modelled"] = v.modelled();
  json["failed_layer"] = LayerName(v.failed_layer());
  json["outcome"] = v.outcome();
  json["reason"] = v.reason();
  json["infra_error"] = nullptr;
  if (IsInfraError(v)) {
    const std::string kind = absl::AsciiStrToLower(InfraError::Kind_Name(v.infra_error().kind()));
    json["infra_error"] = {{"kind", kind}, {"text", v.infra_error().text()}};
  }
  json["kernels"] = Json::array();
  for (const std::string& kernel : v.functionality().kernels()) json["kernels"].push_back(kernel);
  json["backend"] = v.backend();
  json["layers"] = {
      {"syntax", LayerJson(v.syntax())},     {"functionality", LayerJson(v.functionality())},
      {"compiled", LayerJson(v.compiled())}, {"correct", LayerJson(v.correct())},
      {"judge", LayerJson(v.judge())},       {"speedup", LayerJson(v.speedup())}};
  if (IsCorrect(v)) {
    json["layers"]["speedup"]["reference_seconds"] = v.speedup().reference_seconds();
    json["layers"]["speedup"]["candidate_seconds"] = v.speedup().candidate_seconds();
    json["layers"]["speedup"]["timing"] = TimingJson(v.speedup());
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tritonrl
