// Examples as tokens of a conversation in the policy's chat template.
#ifndef TRITONRL_TRAINER_SFT_CHAT_ENCODER_H_
#define TRITONRL_TRAINER_SFT_CHAT_ENCODER_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/chat/chat_template.h"
#include "trainer/config/config.pb.h"
#include "trainer/sft/example_encoder.h"

namespace tritonrl {

// The encoder of a policy with a chat template. A turn of the assistant is taught as the template
// writes it, with the end of turn (ChatTemplate::EncodeConversation). An example whose first
// message begins with control tokens of the template is refused.
class ChatEncoder : public ExampleEncoder {
 public:
  // `chat` must not be plain(). `tokenizer_hash`: HashTokenizerFiles.
  ChatEncoder(ChatTemplate chat, std::string tokenizer_hash, SftConfig::Teach teach)
      : chat_(std::move(chat)), tokenizer_hash_(std::move(tokenizer_hash)), teach_(teach) {}

  absl::StatusOr<EncodedExample> Encode(const SftExample& example) const override;
  std::string CacheKey() const override;

 private:
  absl::Status CheckNotRendered(const SftExample& example) const;

  const ChatTemplate chat_;
  const std::string tokenizer_hash_;
  const SftConfig::Teach teach_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_CHAT_ENCODER_H_
