#include "trainer/sft/example_encoder.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "model/chat/thought.h"

namespace tritonrl {
namespace {

constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "vocab.json", "merges.txt",
                                           "tokenizer_config.json"};

}  // namespace

absl::StatusOr<EncodedExample> PlainEncoder::Encode(const SftExample& example) const {
  EncodedExample encoded;
  const std::vector<int32_t>& prefix = tokenizer_->special_prefix();
  const auto append = [&](absl::string_view text, bool prompt) {
    const std::vector<int32_t> ids = tokenizer_->Encode(text);
    // A prompt that a template rendered may bring the begin tokens with it.
    const bool again = prompt && encoded.tokens.empty() && ids.size() >= prefix.size() &&
                       std::equal(prefix.begin(), prefix.end(), ids.begin());
    if (encoded.tokens.empty() && !again) encoded.tokens = prefix;
    encoded.tokens.insert(encoded.tokens.end(), ids.begin(), ids.end());
  };
  std::string before;
  for (const SftMessage& message : example.messages) {
    if (message.role != "assistant") {
      before += message.content;
      continue;
    }
    append(before, /*prompt=*/true);
    ASSIGN_OR_RETURN(const std::string answer,
                     AnswerAfter(before, message.content, message.reasoning));
    before.clear();
    const int32_t begin = static_cast<int32_t>(encoded.tokens.size());
    append(answer, /*prompt=*/false);
    const int32_t written = static_cast<int32_t>(encoded.tokens.size());
    if (written == begin || encoded.tokens.back() != end_token_) {
      encoded.tokens.push_back(end_token_);
    }
    const bool taught = teach_ == SftConfig::ALL || &message == &example.messages.back();
    // The first token of a sequence has no prediction.
    if (taught && begin > 0) {
      encoded.taught.push_back({begin, static_cast<int32_t>(encoded.tokens.size())});
    }
  }
  return encoded;
}

std::string PlainEncoder::CacheKey() const {
  return absl::StrCat("plain, form 2, end token ", end_token_, ", teach ",
                      SftConfig::Teach_Name(teach_), ", tokenizer ", tokenizer_hash_);
}

absl::StatusOr<std::string> HashTokenizerFiles(const std::string& dir) {
  Sha256 hash;
  for (const char* const name : kTokenizerFiles) {
    const std::string path = JoinPath(dir, name);
    if (!FileExists(path)) continue;
    ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
    hash.Update(absl::StrCat(name, " ", contents.size(), "\n"));
    hash.Update(contents);
  }
  return absl::BytesToHexString(hash.Finish());
}

}  // namespace tritonrl
