// The files of a policy's folder besides its weights: tokenizer, chat template, end tokens.
#ifndef TRITONRL_TRAINER_LEARNER_TOKENIZER_FILES_H_
#define TRITONRL_TRAINER_LEARNER_TOKENIZER_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "trainer/config/config.pb.h"
#include "trainer/learner/policy.h"

namespace tritonrl {

// Sets tokenizer, chat and stop_tokens of a policy from its folder; its configuration is set.
// InvalidArgument: files that do not belong together, no token that ends a response, a template
// that cannot be rendered.
absl::Status LoadTokenizerFiles(const ChatConfig& config, Policy* policy);

// Writes the files of the tokenizer and of the chat template into `dir`, and
// generation_config.json with the policy's end token among the eos_token_id, unless config.json
// alone says so.
absl::Status SaveTokenizerFiles(const Policy& policy, const std::string& dir);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_TOKENIZER_FILES_H_
