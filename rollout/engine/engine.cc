#include "rollout/engine/engine.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {

const char kLogitsNotFinite[] = "the model's logits are not finite: its weights are damaged";

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kFailed:
      return "failed";
  }
  return "unknown";
}

absl::Status FailureOf(const Sample& sample) {
  if (sample.finish_reason != FinishReason::kFailed) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("sample ", sample.index, ", after ", sample.tokens.size(),
                                          " tokens: ", kLogitsNotFinite));
}

}  // namespace tritonrl
