// Functions on a Verdict: its layers, the paper's predicates (syntax, valid, compiled, correct) and
// its JSON form.
#ifndef TRITONRL_VERIFY_VERDICT_VERDICT_H_
#define TRITONRL_VERIFY_VERDICT_VERDICT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Returns the layer's result, or an empty result with reason UNSPECIFIED if it was not reached.
const LayerResult& ResultOf(const Verdict& verdict, Layer layer);

// Returns the layer's result; adds an empty one if there is none.
LayerResult* MutableResult(Layer layer, Verdict* verdict);

// Adds evidence with this rule and text to a layer's result.
Evidence* AddEvidence(LayerResult* result, const std::string& rule, const std::string& text);

// syntax(o): the program parses and has a Triton kernel and a class ModelNew.
bool IsSyntaxOk(const Verdict& verdict);

// valid(o) = syntax(o) * func(o): the linter and the run-time audit passed, and the judge did not
// object, if it was asked.
bool IsValid(const Verdict& verdict);

// compiled(o); implies valid(o), because layers are walked in order.
bool IsCompiled(const Verdict& verdict);

// correct(g, o) * valid(o).
bool IsCorrect(const Verdict& verdict);

// speedup(g, o) = time(reference) / time(candidate), not clipped; 0 unless IsCorrect.
double SpeedupOf(const Verdict& verdict);
// The lower end of the speedup's interval; a speedup without an interval itself, i.e. a modelled
// one or one measured by the paper's rules.
double SpeedupLowOf(const Verdict& verdict);

// True if there is no verdict because the infrastructure or the task's reference failed. Such
// samples are left out of groups and metrics and counted separately.
bool IsInfraError(const Verdict& verdict);

// "syntax", "functionality", "compiled", "correct", "judge", "speedup" or "none".
std::string LayerName(Layer layer);

// Sets outcome, failed_layer, valid, compiled and correct from the layers' results. Changes nothing
// if the outcome is an infrastructure error. The verifier calls it once per verdict.
void Summarize(Verdict* verdict);

// The JSON form of a verdict in journals, sample records, batches and --json: one line without a
// line break, with the names of verdict.proto and without unset fields. Invalid UTF-8 becomes
// U+FFFD.
std::string VerdictToJson(Verdict verdict);

// Parses VerdictToJson's form. InvalidArgument for other text, e.g. with an unknown field.
absl::StatusOr<Verdict> VerdictFromJson(absl::string_view json);

// Sets verdict->worker() from the worker's measurements in `result`.
void SetWorkerStats(const ExecResult& result, Verdict* verdict);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_VERDICT_H_
