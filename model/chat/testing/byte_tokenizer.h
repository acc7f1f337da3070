// A tokenizer for tests: each byte is the token with its value as id, control tokens begin at 256.
#ifndef TRITONRL_MODEL_CHAT_TESTING_BYTE_TOKENIZER_H_
#define TRITONRL_MODEL_CHAT_TESTING_BYTE_TOKENIZER_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// The tokenizer.json. `special` tokens get the ids 256, 257, ...; `plain` tokens, which are added
// but not special, follow.
inline nlohmann::json ByteTokenizerJson(const std::vector<std::string>& special,
                                        const std::vector<std::string>& plain = {}) {
  nlohmann::json vocab = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string written;
    AppendUtf8(ByteToChar(static_cast<uint8_t>(byte)), &written);
    vocab[written] = byte;
  }
  nlohmann::json added = nlohmann::json::array();
  int id = 256;
  for (const auto* list : {&special, &plain}) {
    for (const std::string& content : *list) {
      added.push_back({{"id", id++},
                       {"content", content},
                       {"special", list == &special},
                       {"normalized", false}});
    }
  }
  return {
      {"added_tokens", added},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
}

inline Tokenizer ByteTokenizer(const std::vector<std::string>& special,
                               const std::vector<std::string>& plain = {}) {
  const nlohmann::json json = ByteTokenizerJson(special, plain);
  return Tokenizer::FromJson(json.dump(), "byte tokenizer").value();
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_TESTING_BYTE_TOKENIZER_H_
