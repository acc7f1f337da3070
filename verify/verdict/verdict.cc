#include "verify/verdict/verdict.h"

#include <google/protobuf/util/json_util.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "exec/device_backend.h"

namespace tritonrl {
namespace {

bool Passed(const Verdict& verdict, Layer layer) {
  return ResultOf(verdict, layer).reason() == Outcome::OK;
}

bool Reached(const Verdict& verdict, Layer layer) {
  return ResultOf(verdict, layer).reason() != Outcome::UNSPECIFIED;
}

// The first layer that the candidate failed; LAYER_NONE if it is correct.
Layer FailedLayer(const Verdict& verdict) {
  const bool cheating = ResultOf(verdict, LAYER_JUDGE).reason() == Outcome::CHEATING;
  for (const Layer layer : {LAYER_SYNTAX, LAYER_FUNCTIONALITY, LAYER_COMPILED, LAYER_CORRECT}) {
    // The judge counts as functionality, so it comes before compilation.
    if (layer == LAYER_COMPILED && cheating) return LAYER_JUDGE;
    if (!Passed(verdict, layer)) return layer;
  }
  return LAYER_NONE;
}

// The text of the first evidence that has one, or the reason's name.
std::string SentenceOf(const LayerResult& result) {
  for (const Evidence& evidence : result.evidence()) {
    if (evidence.text().empty()) continue;
    if (evidence.line() > 0) return absl::StrCat("line ", evidence.line(), ": ", evidence.text());
    return evidence.text();
  }
  return ReasonName(result.reason());
}

}  // namespace

const LayerResult& ResultOf(const Verdict& verdict, Layer layer) {
  for (const LayerResult& result : verdict.layers()) {
    if (result.layer() == layer) return result;
  }
  return LayerResult::default_instance();
}

LayerResult* MutableResult(Layer layer, Verdict* verdict) {
  for (LayerResult& result : *verdict->mutable_layers()) {
    if (result.layer() == layer) return &result;
  }
  LayerResult* result = verdict->add_layers();
  result->set_layer(layer);
  return result;
}

Evidence* AddEvidence(LayerResult* result, const std::string& rule, const std::string& text) {
  Evidence* evidence = result->add_evidence();
  evidence->set_rule(rule);
  evidence->set_text(text);
  return evidence;
}

bool IsSyntaxOk(const Verdict& verdict) { return Passed(verdict, LAYER_SYNTAX); }

bool IsValid(const Verdict& verdict) {
  return IsSyntaxOk(verdict) && Passed(verdict, LAYER_FUNCTIONALITY) &&
         ResultOf(verdict, LAYER_JUDGE).reason() != Outcome::CHEATING;
}

bool IsCompiled(const Verdict& verdict) {
  return IsValid(verdict) && Passed(verdict, LAYER_COMPILED);
}

bool IsCorrect(const Verdict& verdict) {
  return IsCompiled(verdict) && Passed(verdict, LAYER_CORRECT);
}

double SpeedupOf(const Verdict& verdict) {
  return IsCorrect(verdict) ? verdict.speedup().speedup() : 0.0;
}

double SpeedupLowOf(const Verdict& verdict) {
  const double speedup = SpeedupOf(verdict);
  const bool has_interval = verdict.speedup().has_timing() && !verdict.speedup().mean_of_calls();
  return speedup > 0 && has_interval ? verdict.speedup().timing().speedup_low() : speedup;
}

bool IsInfraError(const Verdict& verdict) {
  return verdict.outcome().status() == Outcome::STATUS_INFRA_ERROR ||
         verdict.outcome().status() == Outcome::STATUS_TASK_FAILED;
}

std::string LayerName(Layer layer) {
  return absl::AsciiStrToLower(absl::StripPrefix(Layer_Name(layer), "LAYER_"));
}

void Summarize(Verdict* v) {
  if (IsInfraError(*v)) return;
  const Layer failed = FailedLayer(*v);
  v->set_failed_layer(failed);
  if (failed == LAYER_NONE) {
    SetOutcome(Outcome::OK,
               absl::StrCat("agrees with the reference on ", v->correctness().trials_passed(),
                            " random inputs"),
               v->mutable_outcome());
  } else {
    const LayerResult& result = ResultOf(*v, failed);
    SetOutcome(result.reason(), SentenceOf(result), v->mutable_outcome());
  }
  v->set_valid(IsValid(*v));
  if (Reached(*v, LAYER_COMPILED)) v->set_compiled(Passed(*v, LAYER_COMPILED));
  if (Reached(*v, LAYER_CORRECT)) v->set_correct(Passed(*v, LAYER_CORRECT));
}

std::string VerdictToJson(Verdict verdict) { return MessageToJson(&verdict); }

absl::StatusOr<Verdict> VerdictFromJson(absl::string_view json) {
  Verdict verdict;
  const auto status =
      google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &verdict);
  if (!status.ok()) return absl::InvalidArgumentError("not a verdict of this version");
  return verdict;
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

}  // namespace tritonrl
