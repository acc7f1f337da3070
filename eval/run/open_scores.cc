#include "eval/run/open_scores.h"

#include "verify/verdict/verdict.h"

namespace tritonrl {

std::optional<SampleScore> OpenScoreOf(const Verdict& verdict) {
  if (!IsSyntaxOk(verdict) || IsValid(verdict)) return ScoreOf(verdict);
  if (ResultOf(verdict, LAYER_JUDGE).reason() == Outcome::CHEATING) {
    Verdict unjudged = verdict;
    MutableResult(LAYER_JUDGE, &unjudged)->set_reason(Outcome::OK);
    return ScoreOf(unjudged);
  }
  const Outcome::Reason reason = ResultOf(verdict, LAYER_FUNCTIONALITY).reason();
  if (reason != Outcome::DECORATION && reason != Outcome::HARD_CODED) return std::nullopt;
  SampleScore score;
  score.syntax = score.valid = score.compiled = score.correct = true;
  return score;
}

}  // namespace tritonrl
