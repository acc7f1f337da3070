#include "exec/candidate/ablation.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxKernels = 64;  // that a runner may name
constexpr size_t kMaxText = 400;
// Negative and beyond the usual bounds of clamps, for inputs on which a kernel has nothing to do
// (relu of positive numbers).
constexpr double kOtherScale = -3.0;

class Orders {
 public:
  Orders(const AblationSetup& setup, const AskRunner& ask) : setup_(setup), ask_(ask) {}

  AblationResult Run(const std::string& named) {
    if (!ReadKernels(named)) return Broken("it did not name its kernels");
    if (result_.kernels.empty() || setup_.trials <= 0) return Finish();
    std::string text;
    result_.all = Try("all", &text);
    if (result_.kernels.size() == 1 || result_.all != ABLATION_CHANGED) {
      for (KernelAblation& kernel : result_.kernels) Note(result_.all, text, &kernel);
      return Finish();
    }
    for (int i = 0; i < static_cast<int>(result_.kernels.size()); ++i) {
      KernelAblation& kernel = result_.kernels[i];
      text.clear();
      if (i >= kMostAblations) {
        Note(ABLATION_NOT_TRIED, absl::StrCat("only ", kMostAblations, " kernels are tried"),
             &kernel);
      } else {
        const AblationEffect effect = Try(i, &text);
        Note(effect, text, &kernel);
      }
    }
    return Finish();
  }

 private:
  // How one call ended.
  struct Call {
    enum class End { kOutput, kRaised, kLate, kProcessEnded, kBroken } end = End::kBroken;
    std::vector<Leaf> leaves;  // kOutput
    std::string text;
    int64_t left_out = 0;  // launches
  };
  using End = Call::End;

  static void Note(AblationEffect effect, const std::string& text, KernelAblation* kernel) {
    kernel->set_effect(effect);
    kernel->set_text(text);
  }

  AblationResult Broken(const std::string& what) {
    result_.violation = absl::InvalidArgumentError(what);
    return std::move(result_);
  }

  AblationResult Finish() { return std::move(result_); }

  bool ReadKernels(const std::string& named) {
    const Json json = Json::parse(named, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.size() != 1 || !json.contains("kernels")) return false;
    const Json& kernels = json["kernels"];
    if (!kernels.is_array() || kernels.size() > kMaxKernels) return false;
    for (const Json& kernel : kernels) {
      if (!kernel.is_array() || kernel.size() != 2 || !kernel[0].is_string() ||
          !kernel[1].is_number_integer()) {
        return false;
      }
      const int64_t line = kernel[1].get<int64_t>();
      std::string name = kernel[0].get<std::string>();
      if (line < 0 || line > std::numeric_limits<int32_t>::max() || name.size() > kMaxText) {
        return false;
      }
      KernelAblation* added = &result_.kernels.emplace_back();
      added->set_name(std::move(name));
      added->set_line(static_cast<int32_t>(line));
    }
    return true;
  }

  // Forward on the inputs of `trial` times `scale`, without what `skip` says: "all", "none", or a
  // kernel's place in the list.
  Call Order(int trial, const Json& skip, double scale, int pattern) {
    const double seconds = absl::ToDoubleSeconds(setup_.until - absl::Now());
    if (over_) return {End::kProcessEnded, {}, "its process had ended before"};
    if (seconds <= 0) return {End::kLate, {}, "no time was left for it"};
    setup_.provide(trial);
    const std::optional<std::string> answer = ask_(Json{
        {"ablate",
         {{"trial", trial},
          {"skip", skip},
          {"scale", scale},
          {"pattern", pattern},
          {"seconds", seconds}}}}.dump());
    if (!answer.has_value()) {
      over_ = result_.ended = true;
      result_.ended_in_all = calls_ == 0;
      return {End::kProcessEnded, {}, kProcessEnded};
    }
    Call call = Read(*answer);
    ++calls_;
    if (call.end == End::kBroken) {
      over_ = true;
      result_.violation = absl::InvalidArgumentError(call.text);
    }
    return call;
  }

  Call Read(const std::string& answer) const {
    const std::string what = absl::StrCat("an answer is not the result of ablated call ", calls_);
    const Json json = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
    bool whole = json.is_object() && json.size() == 5;
    for (const char* name : {"ablated", "output", "raised", "late", "left_out"}) {
      whole = whole && json.contains(name);
    }
    if (!whole || json["ablated"] != calls_ || !json["raised"].is_string() ||
        !json["late"].is_boolean() || !json["left_out"].is_number_integer()) {
      return {End::kBroken, {}, what};
    }
    std::string text = json["raised"].get<std::string>();
    if (text.size() > kMaxText) return {End::kBroken, {}, what};
    if (json["late"].get<bool>()) return {End::kLate, {}, std::move(text)};
    if (json["output"].is_null()) return {End::kRaised, {}, std::move(text)};
    auto leaves = ParseLayout(json["output"], setup_.memory_bytes);
    if (!leaves.ok()) return {End::kBroken, {}, Message(leaves.status())};
    return {End::kOutput, *std::move(leaves), "", json["left_out"].get<int64_t>()};
  }

  // The effect of a call that gave no output.
  static AblationEffect WithoutOutput(const Call& call, std::string* text) {
    *text = call.text;
    const bool tried = call.end == End::kRaised || call.end == End::kProcessEnded;
    return tried ? ABLATION_CHANGED : ABLATION_NOT_TRIED;
  }

  int NextTrial() {
    last_trial_ = (last_trial_ + 1) % setup_.trials;
    return last_trial_;
  }

  AblationEffect Try(const Json& skip, std::string* text) {
    if (over_) {
      *text = "its process had ended before";
      return ABLATION_NOT_TRIED;
    }
    const Call call = Order(NextTrial(), skip, 1, 0);
    if (call.end != End::kOutput) return WithoutOutput(call, text);
    if (skip != "all" && call.left_out == 0) {
      *text = "it was launched in earlier calls only";
      return ABLATION_NOT_TRIED;
    }
    if (!setup_.is_right(last_trial_, call.leaves)) return ABLATION_CHANGED;
    return Confirm(skip, text);
  }

  // It looks unchanged. Also with another pattern in fresh memory, and to within a share of its
  // size instead of the tolerance?
  AblationEffect Confirm(const Json& skip, std::string* text) {
    const int trial = NextTrial();
    const Call call = Order(trial, skip, 1, 1);
    if (call.end == End::kRaised) return ABLATION_CHANGED;
    if (call.end != End::kOutput) return Unclear(call, text);
    if (!setup_.is_right(trial, call.leaves)) return ABLATION_CHANGED;
    setup_.keep(call.leaves);
    const Call whole = Order(trial, "none", 1, 0);
    if (whole.end != End::kOutput) return Unclear(whole, text);
    if (!setup_.same_as_kept(whole.leaves)) return ABLATION_CHANGED;
    return TryOtherInputs(skip, text);
  }

  // Right on the task's own inputs without the kernels: is it the same on others as well?
  AblationEffect TryOtherInputs(const Json& skip, std::string* text) {
    const int trial = NextTrial();
    const Call call = Order(trial, skip, kOtherScale, 1);
    if (call.end == End::kLate || call.end == End::kProcessEnded) return Unclear(call, text);
    if (call.end == End::kOutput) setup_.keep(call.leaves);
    const Call whole = Order(trial, "none", kOtherScale, 0);
    if (whole.end == End::kLate || whole.end == End::kProcessEnded) return Unclear(whole, text);
    if (call.end != whole.end) return ABLATION_CHANGED;
    if (call.end == End::kRaised) return ABLATION_UNCHANGED;  // on these inputs it always does
    return setup_.same_as_kept(whole.leaves) ? ABLATION_UNCHANGED : ABLATION_CHANGED;
  }

  // The result looked unchanged, and then a call that was to confirm it gave none.
  static AblationEffect Unclear(const Call& call, std::string* text) {
    *text = absl::StrCat("looked unchanged, but a call that was to confirm it failed: ", call.text);
    return ABLATION_UNCLEAR;
  }

  const AblationSetup& setup_;
  const AskRunner& ask_;
  AblationResult result_;
  int calls_ = 0;
  int last_trial_ = -1;  // the first call is on trial 0, as the one before was on the last
  bool over_ = false;
};

}  // namespace

AblationResult Ablate(const AblationSetup& setup, const std::string& named, const AskRunner& ask) {
  return Orders(setup, ask).Run(named);
}

}  // namespace tritonrl
