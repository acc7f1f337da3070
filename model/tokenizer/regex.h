#ifndef TRITONRL_MODEL_TOKENIZER_REGEX_H_
#define TRITONRL_MODEL_TOKENIZER_REGEX_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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
std::string WriteOutClasses(absl::string_view pattern);

// A regular expression that matches `text` literally.
std::string QuoteRegex(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_REGEX_H_
