#ifndef TRITONRL_MODEL_TOKENIZER_PRE_TOKENIZER_H_
#define TRITONRL_MODEL_TOKENIZER_PRE_TOKENIZER_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/regex.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

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
