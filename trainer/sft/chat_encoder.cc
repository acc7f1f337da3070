#include "trainer/sft/chat_encoder.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

// A prompt that some program rendered before would be wrapped again, its control tokens spelled as
// ordinary text.
absl::Status ChatEncoder::CheckNotRendered(const SftExample& example) const {
  for (const SftMessage& message : example.messages) {
    if (message.role == "assistant") continue;
    const std::string markers = chat_.LeadingMarkers(message.content);
    if (markers.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the prompt begins with ", markers, ", which the chat template (", chat_.source(),
        ") writes itself, so the prompt is rendered already; set policy.chat.template: \"none\" "
        "for such data, or remove the markers"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EncodedExample> ChatEncoder::Encode(const SftExample& example) const {
  RETURN_IF_ERROR(CheckNotRendered(example));
  std::vector<ChatMessage> messages;
  for (const SftMessage& message : example.messages) {
    messages.push_back({message.role, message.content, message.reasoning});
  }
  ASSIGN_OR_RETURN(EncodedConversation conversation,
                   chat_.EncodeConversation(messages, teach_ == SftConfig::ALL));
  EncodedExample encoded;
  encoded.tokens = std::move(conversation.ids);
  for (const auto& [begin, end] : conversation.taught) {
    // The first token of a sequence has no prediction.
    const TokenSpan span = {static_cast<int32_t>(std::max<int64_t>(begin, 1)),
                            static_cast<int32_t>(end)};
    if (span.begin < span.end) encoded.taught.push_back(span);
  }
  return encoded;
}

std::string ChatEncoder::CacheKey() const {
  return absl::StrCat("chat, form 2, ", chat_.CacheKey(), ", teach ", SftConfig::Teach_Name(teach_),
                      ", tokenizer ", tokenizer_hash_);
}

}  // namespace tritonrl
