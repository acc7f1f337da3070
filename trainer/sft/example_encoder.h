// Examples as tokens, with the tokens that are taught.
#ifndef TRITONRL_TRAINER_SFT_EXAMPLE_ENCODER_H_
#define TRITONRL_TRAINER_SFT_EXAMPLE_ENCODER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/tokenizer.h"
#include "trainer/config/config.pb.h"
#include "trainer/sft/sft_example.h"

namespace tritonrl {

// The tokens [begin, end) of an example.
struct TokenSpan {
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const TokenSpan&) const = default;
};

struct EncodedExample {
  std::vector<int32_t> tokens;
  std::vector<TokenSpan> taught;  // in order, not overlapping; empty: nothing can be learned
};

class ExampleEncoder {
 public:
  virtual ~ExampleEncoder() = default;
  // Thread-safe. InvalidArgument or FailedPrecondition: the example cannot be encoded, and why; any
  // other error is not caused by the example.
  virtual absl::StatusOr<EncodedExample> Encode(const SftExample& example) const = 0;
  // A text that is equal for encoders which give equal tokens: for the key of a cache. The number
  // of its form changes whenever the code gives other tokens than before.
  virtual std::string CacheKey() const = 0;
};

// The encoder of a policy without a chat template. The begin tokens of tokenizer.json come first,
// as in the prompts of GRPO, once if the text begins with them too. The contents before an
// assistant's turn are joined without separators, as in prompts. The turn follows, then the end
// token, unless the turn ends in it. Reasoning that the file has separately is written before the
// content (AnswerAfter in model/chat/thought.h). The parts are encoded separately; control tokens
// in them are recognized.
class PlainEncoder : public ExampleEncoder {
 public:
  // `tokenizer` must outlive the encoder. `tokenizer_hash`: of its files (HashTokenizerFiles).
  PlainEncoder(const Tokenizer* tokenizer, std::string tokenizer_hash, int32_t end_token,
               SftConfig::Teach teach)
      : tokenizer_(tokenizer),
        tokenizer_hash_(std::move(tokenizer_hash)),
        end_token_(end_token),
        teach_(teach) {}

  absl::StatusOr<EncodedExample> Encode(const SftExample& example) const override;
  std::string CacheKey() const override;

 private:
  const Tokenizer* const tokenizer_;
  const std::string tokenizer_hash_;
  const int32_t end_token_;
  const SftConfig::Teach teach_;
};

// Returns a hash of the files of the model folder `dir` that its tokenizer is made of.
absl::StatusOr<std::string> HashTokenizerFiles(const std::string& dir);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_EXAMPLE_ENCODER_H_
