#include "exec/candidate/ablation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxText = 400;
// Negative and beyond the usual bounds of clamps, for inputs on which a kernel has nothing to do
// (relu of positive numbers).
constexpr double kOtherScale = -3.0;

class Calls {
 public:
  Calls(const AblationSetup& setup, std::vector<KernelAblation> kernels) : setup_(setup) {
    result_.kernels = std::move(kernels);
  }

  AblationResult Run() {
    if (result_.kernels.empty() || setup_.trials <= 0) return std::move(result_);
    std::string text;
    result_.all = Try({.all = true}, &text);
    if (result_.kernels.size() == 1 || result_.all != ABLATION_CHANGED) {
      for (KernelAblation& kernel : result_.kernels) Note(result_.all, text, &kernel);
      return std::move(result_);
    }
    for (int i = 0; i < static_cast<int>(result_.kernels.size()); ++i) {
      KernelAblation& kernel = result_.kernels[i];
      text.clear();
      if (i >= kMostAblations) {
        Note(ABLATION_NOT_TRIED, absl::StrCat("only ", kMostAblations, " kernels are tried"),
             &kernel);
      } else {
        const AblationEffect effect = Try({.kernel = i}, &text);
        Note(effect, text, &kernel);
      }
    }
    return std::move(result_);
  }

 private:
  using Made = absl::StatusOr<AblatedOutput>;

  static void Note(AblationEffect effect, const std::string& text, KernelAblation* kernel) {
    kernel->set_effect(effect);
    kernel->set_text(text);
  }

  Made Call(AblatedCall call, int trial, double scale, bool pattern) const {
    if (absl::Now() >= setup_.until) {
      return absl::DeadlineExceededError("no time was left for it");
    }
    call.trial = trial;
    call.scale = scale;
    call.pattern = pattern;
    return setup_.call(call);
  }

  static bool Late(const Made& made) { return absl::IsDeadlineExceeded(made.status()); }
  static std::string Text(const Made& made) { return Message(made.status()).substr(0, kMaxText); }

  int NextTrial() {
    last_trial_ = (last_trial_ + 1) % setup_.trials;
    return last_trial_;
  }

  // The effect of leaving out what `call` says.
  AblationEffect Try(const AblatedCall& call, std::string* text) {
    const int trial = NextTrial();
    const Made made = Call(call, trial, 1, false);
    if (!made.ok()) {
      *text = Text(made);
      return Late(made) ? ABLATION_NOT_TRIED : ABLATION_CHANGED;
    }
    if (!call.all && made->left_out == 0) {
      *text = "it was launched in earlier calls only";
      return ABLATION_NOT_TRIED;
    }
    if (!setup_.is_right(trial, made->leaves)) return ABLATION_CHANGED;
    return Confirm(call, text);
  }

  // It looks unchanged. Also with another pattern in fresh memory, and to within a share of its
  // size instead of the tolerance?
  AblationEffect Confirm(const AblatedCall& call, std::string* text) {
    const int trial = NextTrial();
    const Made made = Call(call, trial, 1, true);
    if (!made.ok()) return Late(made) ? Unclear(made, text) : ABLATION_CHANGED;
    if (!setup_.is_right(trial, made->leaves)) return ABLATION_CHANGED;
    setup_.keep(made->leaves);
    const Made whole = Call({}, trial, 1, false);
    if (!whole.ok()) return Unclear(whole, text);
    if (!setup_.same_as_kept(whole->leaves)) return ABLATION_CHANGED;
    return TryOtherInputs(call, text);
  }

  // Right on the task's own inputs without the kernels: is it the same on others as well?
  AblationEffect TryOtherInputs(const AblatedCall& call, std::string* text) {
    const int trial = NextTrial();
    const Made made = Call(call, trial, kOtherScale, true);
    if (Late(made)) return Unclear(made, text);
    if (made.ok()) setup_.keep(made->leaves);
    const Made whole = Call({}, trial, kOtherScale, false);
    if (Late(whole)) return Unclear(whole, text);
    if (made.ok() != whole.ok()) return ABLATION_CHANGED;
    if (!made.ok()) return ABLATION_UNCHANGED;  // on these inputs it always fails
    return setup_.same_as_kept(whole->leaves) ? ABLATION_UNCHANGED : ABLATION_CHANGED;
  }

  // The result looked unchanged, and then a call that was to confirm it gave none.
  static AblationEffect Unclear(const Made& made, std::string* text) {
    *text =
        absl::StrCat("looked unchanged, but a call that was to confirm it failed: ", Text(made));
    return ABLATION_UNCLEAR;
  }

  const AblationSetup& setup_;
  AblationResult result_;
  int last_trial_ = -1;  // the first call is on trial 0, as the one before was on the last
};

}  // namespace

AblationResult Ablate(const AblationSetup& setup, std::vector<KernelAblation> kernels) {
  return Calls(setup, std::move(kernels)).Run();
}

}  // namespace tritonrl
