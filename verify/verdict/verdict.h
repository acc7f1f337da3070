#ifndef TRITONRL_VERIFY_VERDICT_VERDICT_H_
#define TRITONRL_VERIFY_VERDICT_VERDICT_H_

#include <string>

#include "exec/messages.pb.h"
#include "nlohmann/json.hpp"
#include "verify/verdict/verdict.pb.h"

// Questions that rewards, metrics and reports ask of a Verdict, in the paper's words.
//
// Resource statistics of a run's worker, copied from ExecResult into the verdict and to JSON.

namespace tritonrl {

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

// True when the verdict says nothing about the candidate because the infrastructure failed. Such
// samples are left out of groups and metrics and counted apart.
bool IsInfraError(const Verdict& verdict);

// "syntax", "functionality", "compiled", "correct", "judge", "speedup" or "none".
std::string LayerName(Layer layer);

// Fills failed_layer, outcome and reason from the layers' results. The verifier calls it once.
void Summarize(Verdict* verdict);

// Sets verdict->worker().
void SetWorkerStats(const ExecResult& result, Verdict* verdict);

// {"device", "queue_seconds", "wall_seconds", "cpu_seconds", "peak_rss_bytes", "attempts",
// "phase_seconds", "lint_seconds"}; null when the candidate did not come to a worker.
nlohmann::ordered_json WorkerStatsJson(const Verdict& verdict);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_VERDICT_H_
