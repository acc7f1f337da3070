#include "verify/verdict/verdict.h"

#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

// "TORCH_COMPUTE" -> "torch_compute".
std::string Lower(const std::string& name) { return absl::AsciiStrToLower(name); }

// The sentence of the first piece of evidence, or `fallback`.
template <typename Result>
std::string Reason(const Result& result, const std::string& fallback) {
  for (const Evidence& evidence : result.evidence()) {
    if (evidence.text().empty()) continue;
    if (evidence.line() > 0) return absl::StrCat("line ", evidence.line(), ": ", evidence.text());
    return evidence.text();
  }
  return fallback;
}

void Fail(Verdict* verdict, Layer layer, const std::string& outcome, const std::string& reason) {
  verdict->set_failed_layer(layer);
  verdict->set_outcome(outcome);
  verdict->set_reason(reason);
}

bool FunctionalityPassed(const FunctionalityResult& result) {
  return result.outcome() == FunctionalityResult::OK;
}

bool JudgeObjects(const JudgeResult& result) { return result.outcome() == JudgeResult::CHEATING; }

}  // namespace

bool IsSyntaxOk(const Verdict& verdict) { return verdict.syntax().outcome() == SyntaxResult::OK; }

bool IsValid(const Verdict& verdict) {
  return IsSyntaxOk(verdict) && FunctionalityPassed(verdict.functionality()) &&
         !JudgeObjects(verdict.judge());
}

bool IsCompiled(const Verdict& verdict) {
  return IsValid(verdict) && verdict.compiled().outcome() == CompiledResult::OK;
}

bool IsCorrect(const Verdict& verdict) {
  return IsCompiled(verdict) && verdict.correct().outcome() == CorrectResult::OK;
}

double SpeedupOf(const Verdict& verdict) {
  if (!IsCorrect(verdict) || verdict.speedup().outcome() != SpeedupResult::OK) return 0.0;
  return verdict.speedup().speedup();
}

double SpeedupLowOf(const Verdict& verdict) {
  const double speedup = SpeedupOf(verdict);
  return speedup > 0 && verdict.speedup().has_speedup_low() ? verdict.speedup().speedup_low()
                                                            : speedup;
}

bool IsInfraError(const Verdict& verdict) {
  return verdict.infra_error().kind() != InfraError::NONE;
}

std::string LayerName(Layer layer) {
  // "LAYER_SYNTAX" -> "syntax".
  return Lower(Layer_Name(layer)).substr(sizeof("layer_") - 1);
}

void Summarize(Verdict* v) {
  v->set_failed_layer(LAYER_NONE);
  if (IsInfraError(*v)) {
    v->set_outcome("inconclusive");
    v->set_reason(v->infra_error().text());
    return;
  }
  if (!IsSyntaxOk(*v)) {
    Fail(v, LAYER_SYNTAX, Lower(SyntaxResult::Outcome_Name(v->syntax().outcome())),
         Reason(v->syntax(), "the program has no valid Triton syntax"));
  } else if (!FunctionalityPassed(v->functionality())) {
    Fail(v, LAYER_FUNCTIONALITY,
         Lower(FunctionalityResult::Outcome_Name(v->functionality().outcome())),
         Reason(v->functionality(), "the kernels do not do the work"));
  } else if (v->compiled().outcome() != CompiledResult::OK) {
    const bool unfinished = v->compiled().outcome() == CompiledResult::NOT_FINISHED;
    Fail(v, LAYER_COMPILED,
         unfinished ? Lower(CorrectResult::Outcome_Name(v->correct().outcome()))
                    : Lower(CompiledResult::Outcome_Name(v->compiled().outcome())),
         unfinished ? Reason(v->correct(), "it did not finish")
                    : Reason(v->compiled(), "it does not compile"));
  } else if (v->correct().outcome() != CorrectResult::OK) {
    Fail(v, LAYER_CORRECT, Lower(CorrectResult::Outcome_Name(v->correct().outcome())),
         Reason(v->correct(), "its outputs differ from the reference's"));
  } else if (JudgeObjects(v->judge())) {
    Fail(v, LAYER_JUDGE, "cheating", Reason(v->judge(), "the judge calls it cheating"));
  } else {
    v->set_outcome("correct");
    v->set_reason(absl::StrCat("agrees with the reference on ", v->correct().trials_passed(),
                               " random inputs"));
  }
}

void SetWorkerStats(const ExecResult& result, Verdict* verdict) {
  WorkerStats* worker = verdict->mutable_worker();
  worker->set_device(result.device_name());
  worker->set_server(result.server());
  worker->set_gpu(result.gpu());
  worker->set_queue_seconds(result.queue_seconds());
  worker->set_wall_seconds(result.wall_seconds());
  worker->set_cpu_seconds(result.cpu_seconds());
  worker->set_peak_rss_bytes(result.peak_rss_bytes());
  worker->set_attempts(result.attempts() == 0 ? 1 : result.attempts());
  *worker->mutable_phase_seconds() = result.phase_seconds();
}

nlohmann::ordered_json WorkerStatsJson(const Verdict& verdict) {
  if (!verdict.has_worker()) return nullptr;
  const WorkerStats& worker = verdict.worker();
  nlohmann::ordered_json json;
  json["device"] = worker.device();
  if (!worker.server().empty()) json["server"] = worker.server();
  if (!worker.gpu().empty()) json["gpu"] = worker.gpu();
  json["queue_seconds"] = worker.queue_seconds();
  json["wall_seconds"] = worker.wall_seconds();
  json["cpu_seconds"] = worker.cpu_seconds();
  json["peak_rss_bytes"] = worker.peak_rss_bytes();
  json["attempts"] = worker.attempts();
  // Sorted: the order in a Protobuf map changes from run to run.
  const std::map<std::string, double> phases(worker.phase_seconds().begin(),
                                             worker.phase_seconds().end());
  json["phase_seconds"] = nlohmann::ordered_json::object();
  for (const auto& [phase, seconds] : phases) json["phase_seconds"][phase] = seconds;
  json["lint_seconds"] = verdict.seconds_lint();
  return json;
}

}  // namespace tritonrl
