// Data files as tokens of a policy without a chat template, for tests.
#ifndef TRITONRL_TRAINER_SFT_TEST_TOKENS_H_
#define TRITONRL_TRAINER_SFT_TEST_TOKENS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "trainer/learner/policy.h"
#include "trainer/sft/tokenise.h"

namespace tritonrl {

// Tokenises the files into the file `cache`.
inline absl::StatusOr<std::unique_ptr<TokenCache>> TokensOf(
    const Policy& policy, std::vector<std::string> paths, const std::string& cache,
    SftConfig::Teach teach = SftConfig::LAST) {
  const PlainEncoder encoder(policy.tokenizer.get(), "", policy.end_token(), teach);
  const TokeniseOptions options = {.paths = std::move(paths), .cache = cache};
  ASSIGN_OR_RETURN(const std::string key, TokenCacheKey(options, encoder));
  return TokeniseOnce(options, key, encoder);
}

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_TEST_TOKENS_H_
