// The worker's figures of a run, from the result into the verdict and into JSON.
#ifndef TRITONRL_VERIFY_FIGURES_H_
#define TRITONRL_VERIFY_FIGURES_H_

#include "exec/messages.pb.h"
#include "nlohmann/json.hpp"
#include "verify/verdict.pb.h"

namespace tritonrl {

// Sets verdict->worker().
void NoteFigures(const ExecResult& result, Verdict* verdict);

// {"device", "queue_seconds", "wall_seconds", "cpu_seconds", "peak_rss_bytes", "attempts",
// "phase_seconds", "lint_seconds"}; null when the candidate did not come to a worker.
nlohmann::ordered_json FiguresJson(const Verdict& verdict);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_FIGURES_H_
