// Trainer of a byte-level BPE vocabulary in the form of tokenizer.json.

#ifndef TRITONRL_MODEL_TOKENIZER_BPE_TRAINER_H_
#define TRITONRL_MODEL_TOKENIZER_BPE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A piece of text as symbols, and the number of times that it occurs.
struct CountedWord {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

// Learns up to `max_merges` merges. Each merge joins the most frequent pair of neighbours (the
// lowest pair of ids among equals) into symbol first_new_id, first_new_id + 1, ... Stops early if
// no pair occurs min_count times.
std::vector<std::pair<int32_t, int32_t>> LearnMerges(std::vector<CountedWord> words,
                                                     int32_t first_new_id, int max_merges,
                                                     int64_t min_count);

// Qwen's regular expression of pieces: contractions, words with one leading non-letter, single
// digits, punctuation, line ends, spaces.
extern const char kQwenSplitPattern[];

struct BpeTrainerOptions {
  // Number of ids: 256 bytes, merges and added tokens. The result has fewer if no further pair
  // occurs min_count times.
  int vocab_size = 768;
  // A pair that occurs less often is not merged.
  int64_t min_count = 2;
  std::string split_pattern = kQwenSplitPattern;
  // Added tokens; they get the ids after the merges, in this order. Decode(skip_special=true) omits
  // the special ones; as in Qwen3, <think> and </think> are not special in that sense.
  std::vector<std::string> special_tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::string> other_added_tokens = {"<think>", "</think>"};
};

// Learns a byte-level BPE vocabulary (Sennrich et al., "Neural machine translation of rare words
// with subword units", ACL 2016): repeatedly merges the most frequent pair, and the pair of the
// lowest ids among equally frequent ones. The result depends only on the counts of the pieces, not
// on the order of the texts, and equals that of the `tokenizers` library.
class BpeTrainer {
 public:
  // Returns InvalidArgument for a vocabulary that has no room for bytes and added tokens, or a
  // malformed pattern.
  static absl::StatusOr<BpeTrainer> Create(const BpeTrainerOptions& options);

  // Counts the pieces of `text`, except added tokens. Invalid UTF-8 is repaired first.
  void AddText(absl::string_view text);

  // Learns the merges and returns the text of tokenizer.json. InvalidArgument if no text was added.
  absl::StatusOr<std::string> Train() const;

  // Number of pieces counted so far, with repetitions.
  int64_t num_pieces() const { return num_pieces_; }

 private:
  explicit BpeTrainer(const BpeTrainerOptions& options) : options_(options) {}
  nlohmann::ordered_json Json(const std::vector<std::string>& tokens,
                              const std::vector<std::pair<int32_t, int32_t>>& merges) const;

  BpeTrainerOptions options_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokenFinder added_tokens_;
  // Ordered, so that the result does not depend on hashing.
  absl::btree_map<std::string, int64_t> piece_counts_;
  int64_t num_pieces_ = 0;
};

// Returns the text of a tokenizer_config.json with which the AutoTokenizer of `transformers` loads
// the folder. `eos_token` ends a turn, `pad_token` fills batches.
std::string TokenizerConfigJson(const std::string& eos_token, const std::string& pad_token);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_BPE_TRAINER_H_
