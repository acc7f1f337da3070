// Regular expressions of tokenizer.json.

#ifndef TRITONRL_MODEL_TOKENIZER_REGEX_H_
#define TRITONRL_MODEL_TOKENIZER_REGEX_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

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

// Returns `pattern` with \s, \S and properties such as \p{L} and \p{P} expanded to Oniguruma's
// character sets: PCRE2's \s includes U+180E, and its properties are those of an older Unicode
// version. Exposed for the test.
std::string ExpandCharacterClasses(absl::string_view pattern);

// Returns a regular expression that matches `text` literally.
std::string QuoteRegex(absl::string_view text);

// Returns `text` (valid UTF-8) with each match replaced by `content`.
std::string ReplaceMatches(const Regex& regex, absl::string_view text, absl::string_view content);

// Compiles a "pattern" of tokenizer.json: {"Regex": ...} or {"String": ...}, which matches
// literally. InvalidArgument that begins with `what` for another form or a malformed expression.
absl::StatusOr<Regex> CompilePattern(const nlohmann::json& pattern, const std::string& what);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_REGEX_H_
