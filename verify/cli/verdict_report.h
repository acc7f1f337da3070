// A verdict for people and for programs.
#ifndef TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_
#define TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_

#include <string>

#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Several lines: the outcome in one sentence, then each layer with its evidence. `source` is the
// candidate's text; lines named by evidence are quoted from it. Modelled figures say "modelled".
std::string VerdictText(const Verdict& verdict, const std::string& source);

// One JSON object without line breaks: key, task, valid, compiled, correct (true, false or null
// where not reached), speedup (null unless correct), modelled, failed_layer, outcome, reason,
// infra_error (null or {kind, text}), kernels, backend, and "layers" with outcome and evidence of
// each.
std::string VerdictJson(const Verdict& verdict);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CLI_VERDICT_REPORT_H_
