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

// A compiled regular expression over UTF-8 text (PCRE2 with Unicode properties) that matches like
// the Oniguruma library, which Hugging Face uses for tokenizer.json. Safe to use from several
// threads.
class Regex {
 public:
  // InvalidArgument with PCRE2's reason and the position if `pattern` is malformed.
  static absl::StatusOr<Regex> Compile(const std::string& pattern);

  // Calls `on_match(begin, end)` in byte offsets for each non-empty match from left to right.
  // `text` must be valid UTF-8.
  void ForEachMatch(absl::string_view text,
                    const std::function<void(size_t begin, size_t end)>& on_match) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

  std::shared_ptr<const Code> code_;
};

// `pattern` with \s, \S, \p{L} and \p{N} written out as Oniguruma knows them: PCRE2's \s holds
// U+180E, and its letters and numbers are those of an older Unicode. Exposed for the test.
std::string ExpandCharacterClasses(absl::string_view pattern);

// A regular expression that matches `text` literally.
std::string QuoteRegex(absl::string_view text);

// Pieces of a text in their order; merges never cross a piece.
struct Pieces {
  std::vector<absl::string_view> views;  // Into the text or into `storage`.
  std::deque<std::string> storage;
};

// The "pre_tokenizer" of tokenizer.json: ByteLevel, or a Sequence of Split and Digits that ends
// with ByteLevel.
class PreTokenizer {
 public:
  // InvalidArgument naming the part that is not supported.
  static absl::StatusOr<PreTokenizer> FromJson(const nlohmann::json& json);

  // Cuts `text` (valid UTF-8, which must outlive the result). Pieces are bytes as in the text, not
  // in the written alphabet.
  Pieces Split(absl::string_view text) const;

 private:
  struct Stage {
    bool add_prefix_space = false;
    std::optional<Regex> regex;
    bool remove_matches = false;  // Split with behavior "Removed".
    bool invert = false;          // Gaps between matches count as the matches.
  };
  absl::Status AddStage(const nlohmann::json& json);
  static void Cut(const Stage& stage, absl::string_view text, std::vector<absl::string_view>* out);

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_PRE_TOKENIZER_H_
