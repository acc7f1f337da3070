#include "rollout/engine/engine.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {

absl::Status CheckSizes(const EngineOptions& options, int max_seqs, int64_t max_positions) {
  if (options.max_num_seqs < 1 || options.max_num_seqs > max_seqs) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_num_seqs is ", options.max_num_seqs, ", must be in [1, ", max_seqs, "]"));
  }
  if (options.max_length < 0 || options.max_length > max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("max_length is ", options.max_length,
                                                   ", but the model's max_position_embeddings is ",
                                                   max_positions));
  }
  if (options.cache_bytes < 0 || options.max_num_batched_tokens < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cache_bytes is ", options.cache_bytes, " and max_num_batched_tokens ",
                     options.max_num_batched_tokens, ", must be 0 (chosen) or more"));
  }
  return absl::OkStatus();
}

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
