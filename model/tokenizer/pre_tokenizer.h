// Split of a text into pieces by regular expressions, before BPE.

#ifndef TRITONRL_MODEL_TOKENIZER_PRE_TOKENIZER_H_
#define TRITONRL_MODEL_TOKENIZER_PRE_TOKENIZER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A compiled regular expression over UTF-8 text (PCRE2 with Unicode properties). It matches like
// the Oniguruma library, which Hugging Face uses for tokenizer.json. Thread-safe.
class Regex {
 public:
  // Returns InvalidArgument with PCRE2's reason if `pattern` is malformed.
  static absl::StatusOr<Regex> Compile(const std::string& pattern);

  // Calls `on_match(begin, end)` with byte offsets for each non-empty match from left to right.
  // `text` must be valid UTF-8. Throws std::bad_alloc or std::runtime_error if the match fails, as
  // for lack of memory.
  void ForEachMatch(absl::string_view text,
                    const std::function<void(size_t begin, size_t end)>& on_match) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

  std::shared_ptr<const Code> code_;
};

// Returns `pattern` with \s, \S, \p{L} and \p{N} expanded to Oniguruma's character sets: PCRE2's \s
// includes U+180E, and its letters and numbers are those of an older Unicode version. Exposed for
// the test.
std::string ExpandCharacterClasses(absl::string_view pattern);

// Returns a regular expression that matches `text` literally.
std::string QuoteRegex(absl::string_view text);

// The pieces of a text in order. Merges never cross a piece.
struct Pieces {
  std::vector<absl::string_view> views;  // Views of the text or of `storage`.
  std::deque<std::string> storage;
};

// The "pre_tokenizer" of tokenizer.json: ByteLevel, or a Sequence of Split and Digits that ends
// with ByteLevel.
class PreTokenizer {
 public:
  // Returns InvalidArgument that names an unsupported part.
  static absl::StatusOr<PreTokenizer> FromJson(const nlohmann::json& json);

  // Splits `text`, which must be valid UTF-8 and outlive the result. Pieces hold the bytes of the
  // text, not the alphabet of bpe.h.
  Pieces Split(absl::string_view text) const;

 private:
  struct Stage {
    bool add_prefix_space = false;
    std::optional<Regex> regex;
    bool remove_matches = false;  // Split with behavior "Removed".
    bool invert = false;          // Swaps matches and the gaps between them.
  };
  absl::Status AddStage(const nlohmann::json& json);
  static void Cut(const Stage& stage, absl::string_view text, std::vector<absl::string_view>* out);

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_PRE_TOKENIZER_H_
