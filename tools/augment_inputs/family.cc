#include "tools/augment_inputs/family.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

namespace {

// Reasons of a task that ran, or that only needs more than the limits here.
constexpr absl::string_view kNotBroken[] = {
    "ok",         "timeout",     "out_of_memory", "random_result", "constant_result",
    "not_finite", kSandboxError,
};

// The findings of a program with dropout or a constant result. All its variants share them.
constexpr absl::string_view kOwnResult[] = {"random_result", "constant_result"};

// Whether the task itself has the result for which its variant would be left out.
bool IsTasksOwn(const Family& family, const TaskFinding& finding) {
  return finding.reason == family.original.reason &&
         std::find(std::begin(kOwnResult), std::end(kOwnResult), finding.reason) !=
             std::end(kOwnResult);
}

// "float32 of 2 dimensions" for "float32[16, 256]": what all variants have in common.
std::string TypeOf(const std::string& input) {
  const size_t bracket = input.find('[');
  if (bracket == std::string::npos) return input;
  const bool scalar = input[bracket + 1] == ']';
  const int64_t dimensions = scalar ? 0 : 1 + std::count(input.begin(), input.end(), ',');
  return absl::StrCat(input.substr(0, bracket), " of ", dimensions, " dimensions");
}

}  // namespace

bool Family::broken() const {
  return checked && std::find(std::begin(kNotBroken), std::end(kNotBroken), original.reason) ==
                        std::end(kNotBroken);
}

int Family::kept() const {
  return static_cast<int>(
      std::count_if(variants.begin(), variants.end(),
                    [](const Variant& variant) { return variant.left_out.empty(); }));
}

std::string CompareInputs(const std::vector<std::string>& original,
                          const std::vector<std::string>& variant) {
  if (original.size() != variant.size()) {
    return absl::StrCat("other inputs: ", variant.size(), " instead of ", original.size());
  }
  for (size_t i = 0; i < original.size(); ++i) {
    if (TypeOf(original[i]) != TypeOf(variant[i])) {
      return absl::StrCat("other inputs: input ", i, " is ", TypeOf(variant[i]), " instead of ",
                          TypeOf(original[i]));
    }
  }
  return original == variant ? "same shapes" : "";
}

std::string ReasonToLeaveOut(const Family& family, const TaskFinding& finding) {
  if (!finding.ok() && !IsTasksOwn(family, finding))
    return absl::StrCat(finding.reason, ": ", finding.message);
  std::vector<const std::vector<std::string>*> known;
  if (!family.inputs.empty()) known.push_back(&family.inputs);
  for (const Variant& variant : family.variants) {
    if (variant.left_out.empty()) known.push_back(&variant.finding.inputs);
  }
  for (const std::vector<std::string>* inputs : known) {
    std::string reason = CompareInputs(*inputs, finding.inputs);
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace tritonrl
