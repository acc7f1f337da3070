// Checks a teacher's samples: none, by their source, or by running them.
#ifndef TRITONRL_TOOLS_DISTILL_SAMPLE_CHECK_H_
#define TRITONRL_TOOLS_DISTILL_SAMPLE_CHECK_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/loader.h"
#include "tasks/response.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// How far samples are checked.
enum class CheckLevel {
  kNone,    // not at all
  kSyntax,  // layers that need no run: syntax, and functionality by the linter
  kFull,    // all layers of the verifier
};

// What a sample must have to be taught. Each includes those before it.
enum class KeepRule {
  kAll,       // a response that was not cut off
  kResponse,  // the response form: what the style asks for
  kSyntax,    // a Triton kernel and ModelNew
  kValid,     // the kernels do the work
  kCorrect,   // the results are right
};

// Parse "none", "syntax", "full"; and "all", "response", "syntax", "valid", "correct", where "" is
// the strictest rule that `level` can decide. InvalidArgument names the flag and its values, or a
// rule that the level cannot decide.
absl::StatusOr<CheckLevel> ParseCheckLevel(const std::string& name);
absl::StatusOr<KeepRule> ParseKeepRule(const std::string& name, CheckLevel level);
std::string CheckLevelName(CheckLevel level);

// The result of the check of one sample.
struct SampleCheck {
  bool response = false;     // its form is right
  bool no_plan_end = false;  // its form lacks the </think> that the style asks for
  bool syntax = false;
  bool valid = false;
  bool compiled = false;
  bool correct = false;
  double speedup = 0;
  bool modelled = false;    // the speedup comes from a model
  bool no_verdict = false;  // an infrastructure error, or the task's reference does not run
  std::string reason;       // why a layer was not passed; "": none failed

  bool Passes(KeepRule rule) const;
};

// Checks one response, read in this style; `done` is called exactly once, before the return or
// later on another thread. `verifier` is used for kFull only.
void CheckSample(const Task& task, const std::string& response, const ResponseStyle& style,
                 CheckLevel level, Verifier* verifier, std::function<void(SampleCheck)> done);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_DISTILL_SAMPLE_CHECK_H_
