#ifndef TRITONRL_TRAINER_GRPO_PLAN_TOKENS_H_
#define TRITONRL_TRAINER_GRPO_PLAN_TOKENS_H_

#include <cstdint>
#include <span>

#include "model/tokenizer/tokenizer.h"
#include "tasks/response.h"

namespace tritonrl {

// Number of plan tokens of a response: [0, n) are plan tokens, [n, size) code tokens. The tokens
// are split by the bytes of their text (tasks/response.h), so that the result agrees with
// ReadResponse on the decoded text, whether `</think>` is one added token or ordinary text.
int PlanTokens(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
               const ResponseStyle& style);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_PLAN_TOKENS_H_
