// From tokens to text.

#ifndef TRITONRL_MODEL_TOKENIZER_DECODER_H_
#define TRITONRL_MODEL_TOKENIZER_DECODER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/regex.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// The "decoder" of tokenizer.json: ByteLevel, Metaspace, ByteFallback, Fuse, Replace and Strip, or
// a Sequence of these.
class Decoder {
 public:
  // Returns InvalidArgument that names an unsupported part, or that there is no decoder.
  static absl::StatusOr<Decoder> FromJson(const nlohmann::json& json);

  // Returns the bytes that `token`, as the file writes it, stands for inside a text (maybe part of
  // a character). At the start of a text Decode may leave out a space.
  std::string TokenBytes(const std::string& token) const;

  // Whether the text of tokens is always the concatenation of their bytes.
  bool concatenates() const;

  // Returns the text of `tokens`.
  std::string Decode(std::vector<std::string> tokens) const;

 private:
  enum class Kind { kByteLevel, kMetaspace, kByteFallback, kFuse, kReplace, kStrip };
  struct Step {
    Kind kind = Kind::kByteLevel;
    std::string text;  // Metaspace: the replacement; Replace: the content; Strip: the character
    bool strips_first = false;   // Metaspace: the first token has no spaces.
    std::optional<Regex> regex;  // Replace
    int start = 0, stop = 0;     // Strip: the most characters to remove at each end
  };
  absl::Status AddStep(const nlohmann::json& json);
  static std::string Apply(const Step& step, const std::string& token);

  std::vector<Step> steps_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_DECODER_H_
