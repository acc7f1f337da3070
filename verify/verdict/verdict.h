// Questions that rewards, metrics and reports ask of a Verdict, in the paper's words, and its JSON
// form.
#ifndef TRITONRL_VERIFY_VERDICT_VERDICT_H_
#define TRITONRL_VERIFY_VERDICT_VERDICT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// The layer's result; an empty one with the reason UNSPECIFIED when it was not reached.
const LayerResult& ResultOf(const Verdict& verdict, Layer layer);

// Adds the layer's result, or finds it.
LayerResult* MutableResult(Layer layer, Verdict* verdict);

// Adds a piece of evidence to a layer's result.
Evidence* AddEvidence(LayerResult* result, const std::string& rule, const std::string& text);

// syntax(o): a program with a Triton kernel and a model class.
bool IsSyntaxOk(const Verdict& verdict);

// valid(o) = syntax(o) * func(o): linter passed, nothing seen at run time that contradicts it, and
// the judge, if there is one and it was reached, agreed.
bool IsValid(const Verdict& verdict);

// compiled(o), which needs valid(o): layers are walked in order.
bool IsCompiled(const Verdict& verdict);

// correct(g, o) * valid(o).
bool IsCorrect(const Verdict& verdict);

// speedup(g, o) = time(reference) / time(candidate), not clipped; 0 unless IsCorrect.
double SpeedupOf(const Verdict& verdict);
// The lower end of its interval; of a modelled speedup, which has none, the speedup itself.
double SpeedupLowOf(const Verdict& verdict);

// True when there is no verdict, as the infrastructure or the task's reference failed. Such
// samples are left out of groups and metrics and counted apart.
bool IsInfraError(const Verdict& verdict);

// "syntax", "functionality", "compiled", "correct", "judge", "speedup" or "none".
std::string LayerName(Layer layer);

// Fills outcome, failed_layer, valid, compiled and correct from the layers' results; an outcome
// that says that there is no verdict stays. The verifier calls it once.
void Summarize(Verdict* verdict);

// The one JSON form of a verdict, for journals, sample records, batches and --json: a line without
// a line break, names as in verdict.proto, unset fields left out. Bytes that are not UTF-8 become
// U+FFFD.
std::string VerdictToJson(Verdict verdict);

// InvalidArgument for anything else, also for a field that verdict.proto does not have.
absl::StatusOr<Verdict> VerdictFromJson(absl::string_view json);

// Sets verdict->worker().
void SetWorkerStats(const ExecResult& result, Verdict* verdict);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_VERDICT_H_
