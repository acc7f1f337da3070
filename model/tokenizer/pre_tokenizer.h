// Split of a text into pieces before BPE.

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

// The pieces of a text in order. Merges never cross a piece.
struct Pieces {
  std::vector<absl::string_view> views;  // Views of the text or of `storage`.
  std::deque<std::string> storage;
};

// The "pre_tokenizer" of tokenizer.json: a sequence of Split, Digits and Metaspace, which may end
// with ByteLevel, or nothing.
class PreTokenizer {
 public:
  // Returns InvalidArgument that names an unsupported part.
  static absl::StatusOr<PreTokenizer> FromJson(const nlohmann::json& json);

  // Splits `text`, which must be valid UTF-8 and outlive the result. Pieces hold the bytes of the
  // text, not the alphabet of bpe.h. `at_start`: nothing precedes `text`, which matters to
  // Metaspace.
  Pieces Split(absl::string_view text, bool at_start = true) const;

  // Whether the model's tokens are written in the alphabet of bpe.h: the last part is ByteLevel.
  bool byte_level() const { return byte_level_; }

 private:
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
  enum class Prepend { kNever, kFirst, kAlways };
  struct Stage {
    bool add_prefix_space = false;
    std::optional<Regex> regex;
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;  // Swaps matches and the gaps between them.
    // Metaspace: the character that stands for a space, and where it is put before a piece.
    std::string metaspace;
    Prepend prepend = Prepend::kNever;
  };
  absl::Status AddStage(const nlohmann::json& json);
  static absl::StatusOr<Stage> SplitStage(const nlohmann::json& json);
  static absl::StatusOr<Stage> MetaspaceStage(const nlohmann::json& json);
  static void Cut(const Stage& stage, absl::string_view text, std::vector<absl::string_view>* out);
  static void ReplaceSpaces(const Stage& stage, bool at_start, Pieces* pieces);

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_PRE_TOKENIZER_H_
